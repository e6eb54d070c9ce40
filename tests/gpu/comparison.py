# SPDX-License-Identifier: Apache-2.0
"""What every comparison with PyTorch shares and that needs no PyTorch: asking memscape-cli, reading its answers, the arithmetic
of rounds, and files that are whole whenever the run is cut off.

A comparison is made in rounds: in each, memscape-cli measures once and PyTorch measures once, so that a clock that sinks and a
GPU that warms up meet both. A round gives every side one median; the ratio of two sides is the median over the rounds of the
ratios within a round."""
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import cublaslt

NO_GPU = 3  # a script's exit status


class Budget:
    """Seconds that a script may take; none given: no end."""

    def __init__(self, seconds):
        self.ends = None if seconds is None else time.monotonic() + seconds

    def left(self):
        return None if self.ends is None else max(0.0, self.ends - time.monotonic())

    def is_over(self):
        return self.left() == 0


def command(cli, verb, experiment, assignments, device, out):
    words = [f"{key}={value}" for key, value in assignments.items()]
    return [str(cli), verb, experiment, *words, "--device", device, "-o", str(out)]


def sweep(values):
    """As a sweep of these values alone, one of them too: beside a single value an experiment has an axis of its own."""
    return ",".join(map(str, values)) if len(values) > 1 else f"{values[0]}:{values[0]}"


def last_words(text):
    """The line of an output that says what went wrong."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    wrong = [line for line in lines if "error" in line.lower()]
    return (wrong or lines or ["it said nothing"])[-1]


def environment():
    """This one's, with the cuBLASLt that PyTorch uses, so that both multiply with the same library."""
    own = dict(os.environ)
    if not own.get(cublaslt.VARIABLE):
        file = cublaslt.find()
        if file:
            own[cublaslt.VARIABLE] = file
    return own


def ask(cli, verb, experiment, assignments, device="cuda:0", timeout=None):
    """{"answer", "provenance"} of a record, or {"error"}."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "record.json"
        try:
            done = subprocess.run(command(cli, verb, experiment, assignments, device, out), capture_output=True, text=True,
                                  check=False, timeout=timeout, env=environment())
        except subprocess.TimeoutExpired:
            return {"error": f"memscape-cli took more than {timeout:.0f} s"}
        except OSError as error:
            return {"error": f"{cli} does not start: {error.strerror}"}
        if done.returncode:
            return {"error": f"memscape-cli ended with {done.returncode}: {last_words(done.stderr)}"}
        return read_record(out, verb)


def read_record(path, verb):
    try:
        record = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
        return {"answer": record["measured" if verb == "measure" else "predicted"], "provenance": record.get("provenance") or {}}
    except (OSError, ValueError, KeyError, TypeError) as error:
        return {"error": f"the record cannot be read: {type(error).__name__} {error}"}


def series(answer, key):
    """y by x; points without a number are left out."""
    for one in answer.get("series", []):
        if one["key"] == key:
            return {x: y for x, y in zip(one["x"]["values"], one["y"]["values"]) if is_number(y)}
    return {}


def figure(answer, key):
    found = answer.get("figures", {}).get(key)
    return found["value"] if found and is_number(found["value"]) else None


def batches(answer, *within):
    """Launches in one sample by x: what PyTorch's samples must hold as well. `within`: keys inside a point's detail."""
    found = {}
    for point in (answer.get("detail") or {}).get("points", []):
        inner = point
        for key in within:
            inner = inner.get(key, {})
        found[point["x"]] = max(1, int(inner.get("batch", 1)))
    return found


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


class Rounds:
    """Medians of all sides, round by round."""

    def __init__(self):
        self.rounds = []
        self.errors = {}

    def begin(self):
        self.rounds.append({})

    def add(self, side, seconds):
        """The median of this round; a side that has none (None) is left out of it."""
        if is_number(seconds) and seconds > 0:
            self.rounds[-1][side] = seconds

    def fail(self, side, text):
        self.errors[side] = text

    def sides(self):
        return list(dict.fromkeys(side for one in self.rounds for side in one))

    def seconds(self, side):
        values = [one[side] for one in self.rounds if side in one]
        return statistics.median(values) if values else None

    def ratio(self, above, below):
        """The median over the rounds that have both; None when there is no such round."""
        ratios = [one[above] / one[below] for one in self.rounds if above in one and below in one]
        return statistics.median(ratios) if ratios else None

    def spread(self, side):
        """(largest - smallest) / median of a side's rounds: how far the GPU drifted."""
        values = [one[side] for one in self.rounds if side in one]
        return (max(values) - min(values)) / statistics.median(values) if values else None

    def to_json(self):
        return {"rounds": self.rounds, "seconds": {side: self.seconds(side) for side in self.sides()},
                "spread": {side: self.spread(side) for side in self.sides()}, "errors": self.errors}


def write(path, document):
    """Whole or not at all: what a run that is cut off leaves can be read."""
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(path.name + ".part")
    scratch.write_text(json.dumps(document, indent=1), encoding="utf-8")
    os.replace(scratch, path)


def say(text):
    print(text, flush=True)


def no_gpu():
    print("PyTorch sees no GPU here: nothing to compare", file=sys.stderr)
    return NO_GPU


def add_common(parser, rounds=3):
    parser.add_argument("cli", help="memscape-cli")
    parser.add_argument("out", type=pathlib.Path, help="JSON that is written after every case")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--budget", type=float, metavar="SECONDS", help="ends early with what there is")
    parser.add_argument("--check", action="store_true", help="needs no GPU: predictions, and PyTorch's loop on the CPU")
