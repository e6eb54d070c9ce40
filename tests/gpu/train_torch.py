#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A training step under automatic mixed precision in eager PyTorch beside `measure precision operation=train`.

    train_torch.py CLI OUT.json [--formats F…] [--batch M] [--hidden N] [--inputs K] [--steps S] [--rounds R] [--budget SECONDS] [--check]

Both sides train the same classifier (K inputs, two hidden layers of N, 16 classes, ReLU, cross entropy, AdamW, a new batch of M for
every step; FP16 with dynamic loss scaling) in FP32 and in the format, their steps in turn. A step's time lies between two events of
the GPU and holds zero_grad, forward, backward, scaler and optimizer, the waiting of the GPU for the host too; the batch is made
before it. PyTorch runs it with AdamW as it comes (foreach) and with fused=True; memscape-cli updates all arrays in one launch.
The peak memory is that of one course alone, without cuBLAS's workspace. A ratio is PyTorch's time over ours. Ends with 1 when a run
fails, with 3 when there is no GPU.

--check needs no GPU: memscape-cli predicts the step, and PyTorch takes steps on the CPU until the loss falls."""
import argparse
import statistics
import sys

import torch

import probe_path
from comparison import Budget, Rounds, add_common, ask, figure, no_gpu, say, write
from memscape_probe.amp import TYPES, Course, Task
from memscape_probe.timer import Timer, first_line, has_gpu, plain_cpu

SCALE = 65536.0
WARM_STEPS = 5


def course_of(options, fmt, device, fused=False):
    return Course(options.inputs, options.hidden, fmt, device, SCALE if fmt == "fp16" else None, fused=fused)


def courses_of(options, fmt, device):
    courses = {} if fmt == "fp32" else {"torch FP32": course_of(options, "fp32", device)}
    return courses | {"torch": course_of(options, fmt, device), "torch fused": course_of(options, fmt, device, fused=True)}


def theirs(options, fmt, device):
    """Median seconds and final losses by course, steps in turn."""
    timer, task, courses = Timer(device), Task(options.batch, options.inputs, device), courses_of(options, fmt, device)
    seconds, losses = {name: [] for name in courses}, {name: [] for name in courses}
    for step in range(WARM_STEPS + options.steps):
        batch = task.batch(step)
        for name, course in courses.items():
            loss, taken = timer.once(lambda: course.step(*batch))
            losses[name].append(loss.item())
            if step >= WARM_STEPS:
                seconds[name].append(taken)
    tenth = max(1, options.steps // 10)
    return ({name: statistics.median(values) for name, values in seconds.items()},
            {name: statistics.fmean(values[-tenth:]) for name, values in losses.items()})


def peak_of(options, fmt):
    """Bytes that one course adds at its highest, the batch among them."""
    warm = torch.ones((64, 64), device="cuda")
    (warm @ warm).sum().item()  # cuBLAS's workspace is taken before
    before = torch.cuda.memory_allocated()
    course, task = course_of(options, fmt, "cuda"), Task(options.batch, options.inputs, "cuda")
    course.step(*task.batch(0))
    batch = task.batch(1)
    torch.cuda.reset_peak_memory_stats()
    course.step(*batch)
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before


def words_of(options, fmt):
    return {"operation": "train", "format": fmt, "m": options.batch, "n": options.hidden, "k": options.inputs, "steps": options.steps}


def ours(options, fmt, verb, device, budget):
    """Figures by key, or an error."""
    record = ask(options.cli, verb, "precision", words_of(options, fmt), device, budget.left())
    if "error" in record:
        return {}, record["error"], None
    keys = ("step_time", "fp32_step_time", "peak_memory", "fp32_peak_memory", "skipped_steps", f"{fmt}_final_loss")
    return {key: figure(record["answer"], key) for key in keys}, None, record["provenance"].get("cublaslt")


def compare(options, fmt, budget):
    timer, rounds = Timer(), Rounds()
    row = {"format": fmt, "figures": {}, "losses": {}, "cublaslt": None, "peaks": {}}
    for _ in range(options.rounds):
        rounds.begin()
        figures, error, library = ours(options, fmt, "measure", options.device, budget)
        row["figures"], row["cublaslt"] = figures or row["figures"], library or row["cublaslt"]
        rounds.add("ours", figures.get("step_time"))
        rounds.add("ours FP32", figures.get("fp32_step_time"))
        if error:
            rounds.fail("ours", error)
        timer.spin()
        try:
            medians, row["losses"] = theirs(options, fmt, "cuda")
            for name, seconds in medians.items():
                rounds.add(name, seconds)
        except RuntimeError as raised:
            rounds.fail("torch", first_line(raised))
        torch.cuda.empty_cache()
        if budget.is_over():
            break
    try:
        row["peaks"] = {"torch": peak_of(options, fmt), "ours": row["figures"].get("peak_memory")}
    except RuntimeError as raised:
        rounds.fail("torch peak", first_line(raised))
    row["ratio"] = {name: rounds.ratio(name, "ours") for name in ("torch", "torch fused") if rounds.ratio(name, "ours")}
    row["ratio_fp32"] = rounds.ratio("torch FP32", "ours FP32")
    return row | rounds.to_json()


def verdict(row):
    text = ", ".join(f"{side} {seconds * 1e3:.3f} ms" for side, seconds in row["seconds"].items())
    text += "".join(f"; {ratio:.2f} of {name}'s speed" for name, ratio in row["ratio"].items())
    if all(row["peaks"].get(side) for side in ("torch", "ours")):
        text += f"; peak ours {row['peaks']['ours'] / 2**20:.1f} MiB, torch {row['peaks']['torch'] / 2**20:.1f} MiB"
    return f"step in {row['format']}: {text}" + "".join(f"\n    {side}: {error}" for side, error in row["errors"].items())


def check(options, budget):
    plain_cpu()
    faults, made = [], 0
    small = argparse.Namespace(batch=64, hidden=64, inputs=32, steps=40)
    for fmt in options.formats:
        figures, error, _ = ours(options, fmt, "predict", "nvidia-h200", budget)
        if not figures.get("step_time"):
            faults.append(f"{fmt}: {error or 'no time of a step'}")
        medians, losses = theirs(small, "bf16" if fmt == "fp16" else fmt, "cpu")
        made += 1 + len(losses)
        faults += [f"{fmt}, {name}: the loss is {loss} after {small.steps} steps" for name, loss in losses.items()
                   if not (loss < 2.7 and medians[name] > 0)]  # ln 16 = 2.77 is guessing
    for fault in faults:
        say(fault)
    say(f"{len(faults)} of {made} checks failed")
    return 1 if faults else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_common(parser, rounds=2)
    parser.add_argument("--formats", nargs="+", default=["fp16", "bf16"], choices=list(TYPES))
    for name, standard in (("batch", 4096), ("hidden", 4096), ("inputs", 4096), ("steps", 100)):
        parser.add_argument(f"--{name}", type=int, default=standard)
    options = parser.parse_args()
    budget = Budget(options.budget)
    if options.check:
        return check(options, budget)
    if not has_gpu():
        return no_gpu()
    rows = []
    for fmt in options.formats:
        if budget.is_over():
            break
        rows.append(compare(options, fmt, budget))
        say(verdict(rows[-1]))
        write(options.out, {**Timer().describe(), "batch": options.batch, "hidden": options.hidden, "inputs": options.inputs,
                            "rows": rows, "whole": len(rows) == len(options.formats)})
    return 0 if rows and all(row["ratio"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
