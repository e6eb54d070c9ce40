#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Our copy of 1 and 2 GiB beside PyTorch's, device to device, in the same rounds.

    torch_copy.py CLI OUT.json [--sizes GIB…] [--rounds R] [--budget SECONDS] [--check]

In every round memscape-cli measures `hierarchy operation=copy` over working sets of both arrays, and PyTorch times Tensor.copy_ of
arrays as large by the same protocol (memscape_probe/timer.py): single launches, the caches as the launch before left them. Bytes read and
written are counted. Ends with 1 when ours reaches less than 95 % at any size or a side fails, with 3 when there is no GPU.

--check needs no GPU: memscape-cli predicts the copies, and PyTorch's loop copies on the CPU."""
import argparse
import sys

import torch

import probe_path
from comparison import Budget, Rounds, add_common, ask, no_gpu, say, series, sweep, write
from memscape_probe.layout import Copy
from memscape_probe.timer import Timer, first_line, has_gpu

GIB = 1 << 30
GOAL = 0.95


def ours(options, verb, device, budget):
    """Bytes per second by working set, or an error."""
    words = {"operation": "copy", "working_set": sweep([2 * int(size * GIB) for size in options.sizes])}
    record = ask(options.cli, verb, "hierarchy", words, device, budget.left())
    return (series(record["answer"], "bandwidth"), None) if "answer" in record else ({}, record["error"])


def theirs(timer, array_bytes):
    """Seconds of a round; raises what PyTorch says, and when the copy is wrong."""
    copy = Copy(torch.randn(array_bytes // 4, device=timer.device))
    medians, errors, _ = timer.medians({"copy": copy}, batches={"copy": 1})
    if errors or not copy.is_right():
        raise RuntimeError(errors.get("copy") or "PyTorch's copy is not equal to its source")
    return medians["copy"]


def compare(options, budget):
    timer, rounds = Timer(), {size: Rounds() for size in options.sizes}
    for _ in range(options.rounds):
        rates, error = ours(options, "measure", options.device, budget)
        timer.spin()
        for size, seen in rounds.items():
            moved = 2 * int(size * GIB)
            seen.begin()
            if rates.get(moved):
                seen.add("ours", moved / rates[moved])
            else:
                seen.fail("ours", error or "this size was skipped")
            try:
                seen.add("torch", theirs(timer, moved // 2))
            except RuntimeError as raised:
                seen.fail("torch", first_line(raised))
        torch.cuda.empty_cache()
        if budget.is_over():
            break
    return [row_of(size, seen) for size, seen in rounds.items()]


def row_of(size, seen):
    moved = 2 * int(size * GIB)
    rates = {side: moved / seen.seconds(side) for side in seen.sides()}
    return {"working_set": moved, "bytes_per_second": rates, "share": seen.ratio("torch", "ours"), **seen.to_json()}


def verdict(row):
    name = f"copy of {row['working_set'] / 2 / GIB:g} GiB"
    if row["share"] is None:
        return f"{name}: " + "; ".join(f"{side}: {text}" for side, text in row["errors"].items())
    rates = ", ".join(f"{side} {rate / 1e12:.3f} TB/s" for side, rate in row["bytes_per_second"].items())
    return f"{name}: {rates}, {row['share']:.1%} (goal {GOAL:.0%}: {'reached' if row['share'] >= GOAL else 'MISSED'})"


def check(options, budget):
    rates, error = ours(options, "predict", "nvidia-h200", budget)
    faults = [f"{size:g} GiB: {error or 'no bandwidth'}" for size in options.sizes if not rates.get(2 * int(size * GIB))]
    if not theirs(Timer("cpu"), 1 << 20) > 0:
        faults.append("the loop takes no time")
    for fault in faults:
        say(fault)
    say(f"{len(faults)} of {len(options.sizes) + 1} checks failed")
    return 1 if faults else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_common(parser)
    parser.add_argument("--sizes", nargs="+", type=float, default=[1, 2], metavar="GIB", help="of one array")
    options = parser.parse_args()
    budget = Budget(options.budget)
    if options.check:
        return check(options, budget)
    if not has_gpu():
        return no_gpu()
    rows = compare(options, budget)
    for row in rows:
        say(verdict(row))
    write(options.out, {"goal": GOAL, **Timer().describe(), "rows": rows})
    return 0 if all(row["share"] and row["share"] >= GOAL for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
