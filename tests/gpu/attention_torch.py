#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Our flash attention beside PyTorch's FLASH and CUDNN backends, on this GPU, in one session.

    attention_torch.py CLI OUT.json [--only WORD…] [--lengths N…] [--versions V…] [--rounds R] [--budget SECONDS] [--check]

Hidden size 2048 and 16384 tokens, as in the FlashAttention papers: 2048 / d heads, a batch of 16384 / N, bfloat16, inputs from a
normal distribution. Forward and backward, full and causal. In every round memscape-cli measures the best version of a case (and
those of --versions, of the forward pass alone: versions 4 to 6 share one backward kernel), and both backends of
scaled_dot_product_attention, each named and alone allowed, are timed in turn by the same protocol (memscape_probe/timer.py): caches flushed
before every sample, as many launches in a sample as memscape-cli took. Rates count 4 B H N² d operations forward and 2.5 times that
backward, the triangle with its diagonal when causal. Ends with 1 when a run fails, with 3 when there is no GPU; what is slower
than the goals is said, not failed.

--check needs no GPU: the operations of every case are compared with memscape-cli's prediction, and the timing loop runs the MATH
backend on the CPU on small shapes, against attention written out in double."""
import argparse
import sys

import torch

import probe_path
from comparison import Budget, Rounds, add_common, ask, batches, figure, no_gpu, say, series, sweep, write
from memscape_probe.attention import Attention, worst_error
from memscape_probe.timer import STANDARD, Timer, first_line, has_gpu, plain_cpu

LENGTHS = (512, 1024, 2048, 4096, 8192, 16384)
TOKENS, HIDDEN = 16384, 2048
BACKENDS = {"torch FLASH": "flash", "torch CUDNN": "cudnn"}
GOALS = {("forward", 128, False): 0.85, ("backward", 128, False): 0.60}  # of torch FLASH at 8192


def operations(case):
    """Multiply-adds as two."""
    length = case["sequence"]
    scores = case["batch"] * case["heads"] * (length * (length + 1) / 2 if case["causal"] else length * length)
    return 4 * scores * case["head_dim"] * {"forward": 1, "backward": 2.5}[case["pass"]]


def cases(lengths, only=()):
    """The ones that matter most come first: a run may be cut off."""
    for length in sorted(lengths, key=lambda length: (length != 8192, length)):
        for head_dim in (128, 64):
            for causal in (False, True):
                for which in ("forward", "backward"):
                    case = {"batch": max(1, TOKENS // length), "heads": HIDDEN // head_dim, "sequence": length,
                            "head_dim": head_dim, "causal": causal, "pass": which}
                    if not only or any(word in name_of(case) for word in only):
                        yield case


def name_of(case):
    return f"d{case['head_dim']}-{'causal' if case['causal'] else 'full'}-{case['pass']}-{case['sequence']}"


def words_of(case):
    return {key: str(value).lower() for key, value in case.items()} | {"dtype": "bfloat16", "implementation": "flash"}


def ours(options, case, versions, budget):
    """(seconds by version, launches in a sample, error); version 0 is the best."""
    words = words_of(case) | {"version": sweep(versions)}
    record = ask(options.cli, "measure", "attention", words, options.device, budget.left())
    if "error" in record:
        return {}, 1, record["error"]
    times, counted = series(record["answer"], "flash_time"), batches(record["answer"], "flash")
    lost = None if 0 in times else "the best version was skipped"
    return {int(version): seconds for version, seconds in times.items()}, counted.get(0, 1), lost


def theirs(timer, case, backends, dtype, batch, pacing=STANDARD):
    """Seconds and errors by backend, in one round."""
    attention, works, errors = Attention(case, timer.device, dtype), {}, {}
    for name, backend in backends.items():
        try:
            works[name] = attention.work(backend)
        except RuntimeError as error:
            errors[name] = first_line(error)
    medians, failed, _ = timer.medians(works, cold=True, batches={name: batch for name in works}, pacing=pacing)
    return medians, errors | failed


def compare(options, case, budget):
    timer, rounds = Timer(), Rounds()
    versions = [0, *options.versions] if case["pass"] == "forward" else [0]
    for _ in range(options.rounds):
        rounds.begin()
        seconds, batch, lost = ours(options, case, versions, budget)
        for version, value in seconds.items():
            rounds.add("ours" if version == 0 else f"v{version}", value)
        if lost:
            rounds.fail("ours", lost)
        timer.spin()
        medians, errors = theirs(timer, case, BACKENDS, torch.bfloat16, batch)
        for name, value in medians.items():
            rounds.add(name, value)
        for name, text in errors.items():
            rounds.fail(name, text)
        if budget.is_over():
            break
    torch.cuda.empty_cache()
    return rounds


def row_of(case, rounds):
    work = operations(case)
    row = {"case": case, "name": name_of(case), **rounds.to_json()}
    row["tflops"] = {side: work / rounds.seconds(side) / 1e12 for side in rounds.sides()}
    row["of"] = {name: ratio for name in BACKENDS if (ratio := rounds.ratio(name, "ours")) is not None}
    return row


def verdict(row):
    case = row["case"]
    text = ", ".join(f"{side} {rate:.0f}" for side, rate in row["tflops"].items()) + " TFLOP/s"
    text += "".join(f"; {share:.0%} of {name.split()[1]}" for name, share in row["of"].items())
    goal = GOALS.get((case["pass"], case["head_dim"], case["causal"]))
    share = row["of"].get("torch FLASH")
    if goal and share and case["sequence"] == 8192:
        text += f" (goal {goal:.0%}: {'reached' if share >= goal else 'MISSED'})"
    return f"{row['name']}: {text}" + "".join(f"\n    {side}: {error}" for side, error in row["errors"].items())


def faults_of(options, case):
    """What is wrong with the prediction and with the loop."""
    found = []
    record = ask(options.cli, "predict", "attention", words_of(case) | {"version": sweep([0])}, "nvidia-h200")
    predicted = figure(record.get("answer", {}), "flash_flops")
    if predicted is None or abs(predicted / operations(case) - 1) > 1e-12:
        found.append(f"{name_of(case)}: {record.get('error') or predicted} instead of {operations(case)}")
    small = case | {"batch": 1, "heads": 2, "kv_heads": 2, "sequence": 33}
    medians, errors = theirs(Timer("cpu"), small, {"torch MATH": "math"}, torch.float32, 2,
                             STANDARD._replace(samples=1, seconds=0))
    worst, bound = worst_error("math", small, "cpu", torch.float32)
    if not medians.get("torch MATH", 0) > 0 or not worst <= bound:
        found.append(f"{name_of(case)}: the loop does not run: {errors}, off by {worst}")
    return found


def check(options):
    plain_cpu()
    asked = list(cases(options.lengths, options.only))
    faults = [fault for case in asked for fault in faults_of(options, case)]
    for fault in faults:
        say(fault)
    say(f"{len(faults)} of {2 * len(asked)} checks failed")
    return 1 if faults or not asked else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_common(parser, rounds=2)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--lengths", nargs="+", type=int, default=LENGTHS)
    parser.add_argument("--versions", nargs="*", type=int, default=[], help="beside the best, of the forward pass")
    options = parser.parse_args()
    if options.check:
        return check(options)
    if not has_gpu():
        return no_gpu()
    budget, rows, failed = Budget(options.budget), [], False
    asked = list(cases(options.lengths, options.only))
    document = {**Timer().describe(), "rows": rows, "whole": False}
    for case in asked:
        if budget.is_over():
            break
        rows.append(row_of(case, compare(options, case, budget)))
        failed = failed or "ours" not in rows[-1]["seconds"]
        say(verdict(rows[-1]))
        write(options.out, document)
    document["whole"] = len(rows) == len(asked)
    write(options.out, document)
    return 1 if failed or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
