#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Our matrix products beside PyTorch's, format by format, on this GPU, in one session.

    matmul_torch.py CLI OUT.json [--sizes N…] [--formats F…] [--rounds R] [--budget SECONDS] [--check]

Square products. In every round memscape-cli measures all sizes of a format and PyTorch times the same ones by the same protocol
(memscape_probe/timer.py): warm, back to back, as many launches in a sample as memscape-cli took, a product in FP32 after every sample as
memscape-cli's speed-up has it, operands in ±1 (INT8: ±127) drawn on the GPU. memscape-cli is given the cuBLASLt that PyTorch
uses (MEMSCAPE_CUBLASLT), and the record says which it took. PyTorch multiplies by torch.matmul (FP64, FP32 with TF32 forbidden,
TF32 with it allowed, FP16, BF16), torch._scaled_mm (FP8, result in BF16) and torch._int_mm (INT8).

A ratio is PyTorch's time over ours: 1 is as fast, the goal is 0.95 with cuBLASLt. Ends with 1 when a run fails, with 3 when there is
no GPU; what is slower than the goal is said, not failed.

--check needs no GPU: every format and size is a prediction that memscape-cli gives with 2 n³ operations, and the timing loop runs
on the CPU where PyTorch has the product there, against the product in double."""
import argparse
import sys

import torch

import probe_path
from comparison import Budget, Rounds, add_common, ask, batches, no_gpu, say, series, sweep, write
from memscape_probe.precision import TYPES, Product
from memscape_probe.timer import Timer, first_line, has_gpu, plain_cpu

SIZES = (1024, 2048, 4096, 8192)
GOAL = 0.95


def ours(options, fmt, sizes, budget):
    """A round of memscape-cli's over all sizes."""
    return ask(options.cli, "measure", "precision", {"format": fmt, "m": sweep(sizes)}, options.device, budget.left())


def theirs(timer, fmt, size, batch):
    """Seconds of one round, or raises what PyTorch says."""
    works = {fmt: Product(fmt, (size,) * 3, timer.device)}
    if fmt != "fp32":
        works["fp32"] = Product("fp32", (size,) * 3, timer.device)
    medians, errors, _ = timer.medians(works, batches={fmt: batch})
    if fmt in errors:
        raise RuntimeError(errors[fmt])
    return medians[fmt]


def compare(options, fmt, budget):
    """A row; the rounds of every size in it."""
    timer = Timer()
    rounds = {size: Rounds() for size in options.sizes}
    row = {"format": fmt, "sizes": rounds, "cublaslt": None, "cublaslt_of_torch": None}
    for _ in range(options.rounds):
        record = ours(options, fmt, options.sizes, budget)
        times = series(record["answer"], "time") if "answer" in record else {}
        counted = batches(record["answer"]) if "answer" in record else {}
        row["cublaslt"] = record.get("provenance", {}).get("cublaslt") or row["cublaslt"]
        timer.spin()
        for size, seen in rounds.items():
            seen.begin()
            seen.add("ours", times.get(size))
            if size not in times:
                seen.fail("ours", record.get("error") or "this size was skipped")
            try:
                seen.add("torch", theirs(timer, fmt, size, counted.get(size, 1)))
            except (RuntimeError, NotImplementedError, ValueError) as error:
                seen.fail("torch", first_line(error))
        if budget.is_over():
            break
    torch.cuda.empty_cache()
    row["samples_taken_again"] = timer.retaken
    return row


def verdict(row):
    """What is printed of a row, and its ratios by size."""
    parts, ratios = [], {}
    for size, seen in row["sizes"].items():
        ratio = seen.ratio("torch", "ours")
        if ratio is None:
            parts.append(f"{size}: {'; '.join(f'{side}: {text}' for side, text in seen.errors.items()) or 'not measured'}")
            continue
        ratios[size] = ratio
        parts.append(f"{size}: {ratio:.2f} of torch's {2 * size**3 / seen.seconds('torch') / 1e12:.4g} T/s")
    worst = min(ratios.values(), default=None)
    goal = "" if worst is None else f"; at least {worst:.2f} (goal {GOAL}: {'reached' if worst >= GOAL else 'MISSED'})"
    library = row["cublaslt"]
    by = f"; by cuBLASLt {library['version']}" if library else "; without cuBLASLt"
    return f"{row['format']}: " + ", ".join(parts) + goal + by, ratios


def to_json(row, ratios):
    return row | {"sizes": {size: seen.to_json() for size, seen in row["sizes"].items()}, "ratio": ratios}


def check_predictions(options, fmt):
    """Faults that are seen without a GPU, and how many things were looked at."""
    record = ask(options.cli, "predict", "precision", {"format": fmt, "m": sweep(options.sizes)}, "nvidia-h200")
    answer = record.get("answer", {})
    times, rates = series(answer, "time"), series(answer, "flop_rate")
    faults = [f"{fmt} {size}: {times[size] * rates[size]} operations" for size in times
              if abs(times[size] * rates[size] / (2 * size**3) - 1) > 1e-9]
    if list(times) != list(options.sizes) or list(rates) != list(options.sizes):
        faults.append(f"{fmt}: {record.get('error') or 'no time for every size'}")
    return faults, len(options.sizes) + 1


def check_product(fmt):
    try:
        seconds = theirs(Timer("cpu"), fmt, 64, 2)
    except (RuntimeError, NotImplementedError, ValueError) as error:
        say(f"{fmt}: not on this CPU: {first_line(error)}")
        return [], 0
    off, bound = Product(fmt, (64,) * 3, "cpu").worst_error()
    bad = not off <= bound or not seconds > 0
    return [f"{fmt}: the loop's product is off by {off}, and {bound} would be rounding"] if bad else [], 1


def check(options):
    plain_cpu()
    faults, made = [], 0
    for fmt in options.formats:
        for found, looked in (check_predictions(options, fmt), check_product(fmt)):
            faults += found
            made += looked
    for fault in faults:
        say(fault)
    say(f"{len(faults)} of {made} checks failed")
    return 1 if faults or not made else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_common(parser, rounds=2)
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES)
    parser.add_argument("--formats", nargs="+", default=list(TYPES), choices=list(TYPES))
    options = parser.parse_args()
    if options.check:
        return check(options)
    if not has_gpu():
        return no_gpu()
    budget, rows, failed = Budget(options.budget), [], False
    document = {"goal": GOAL, **Timer().describe(), "rounds": options.rounds, "rows": rows, "whole": False}
    for fmt in options.formats:
        if budget.is_over():
            break
        row = compare(options, fmt, budget)
        text, ratios = verdict(row)
        say(text)
        rows.append(to_json(row, ratios))
        failed = failed or len(ratios) < len(options.sizes)
        write(options.out, document)
    document["whole"] = len(rows) == len(options.formats)
    write(options.out, document)
    return 1 if failed or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
