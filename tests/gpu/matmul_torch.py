#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Our matrix products beside PyTorch's, format by format, on this GPU, in one session.

    matmul_torch.py CLI OUT.json [--sizes N…] [--formats F…] [--samples K] [--check]

Square products. For every format, memscape-cli measures all sizes, PyTorch times the same ones, and memscape-cli measures them
again, so that a clock that drifts meets both; the mean of our two counts. PyTorch multiplies by torch.matmul (FP64, FP32 with TF32
forbidden, TF32 with it allowed, FP16, BF16), torch._scaled_mm (FP8, result in BF16) and torch._int_mm (INT8). Its samples are taken
as ours: caches flushed before each, events of the GPU, medians. A ratio is PyTorch's time over ours: 1 is as fast, the goal is 0.95
with cuBLASLt. Ends with 1 when a run fails, with 3 when there is no GPU; what is slower than the goal is said, not failed.

--check needs no GPU: every format and size is a prediction that memscape-cli gives with 2 n³ operations, and the timing loop runs
on the CPU where PyTorch has the product there, against the product in double."""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import time

import torch

SIZES = (1024, 2048, 4096, 8192, 16384)
GOAL = 0.95
FLUSHED = 256 << 20  # bytes, more than any L2
# Format: type of A, type of B. B of the one-byte formats lies along the inner dimension, as cuBLASLt wants it.
TYPES = {"fp64": (torch.float64,) * 2, "fp32": (torch.float32,) * 2, "tf32": (torch.float32,) * 2, "fp16": (torch.float16,) * 2,
         "bf16": (torch.bfloat16,) * 2, "fp8-e4m3": (torch.float8_e4m3fn,) * 2, "fp8-e5m2": (torch.float8_e5m2, torch.float8_e4m3fn),
         "int8": (torch.int8,) * 2}


def ask(cli, verb, fmt, sizes, device, out):
    """The record's answer over the sizes, or {"error": …}."""
    done = subprocess.run([cli, verb, "precision", f"format={fmt}", "m=" + ",".join(map(str, sizes)), "--device", device, "-o",
                           str(out)], capture_output=True, text=True, check=False)
    if done.returncode:
        return {"error": " ".join(done.stderr.split()) or "no answer"}
    return json.loads(out.read_text())["measured" if verb == "measure" else "predicted"]


def ours(cli, fmt, sizes, out):
    """Seconds by size; a size that was skipped is left out."""
    answer = ask(cli, "measure", fmt, sizes, "cuda:0", out)
    if "error" in answer:
        return answer
    series = next(one for one in answer["series"] if one["key"] == "time")
    return {int(x): y for x, y in zip(series["x"]["values"], series["y"]["values"]) if y is not None}


class Torch:
    """The operands of one product, and one timed run of it."""

    def __init__(self, fmt, size, device):
        self.fmt, self.device = fmt, device
        generator = torch.Generator(device="cpu").manual_seed(1)
        drawn = [torch.rand((size, size), generator=generator) * 2 - 1 for _ in range(2)]
        left, right = TYPES[fmt]
        if fmt == "int8":
            drawn = [(matrix * 127).round() for matrix in drawn]
        self.a, self.b = drawn[0].to(left).to(device), drawn[1].to(right).to(device)
        if self.a.element_size() == 1:
            self.b = self.b.t().contiguous().t()
        self.one = torch.ones((), device=device)
        self.flush = torch.empty(FLUSHED if device == "cuda" else 1, dtype=torch.uint8, device=device)
        torch.backends.cuda.matmul.allow_tf32 = fmt == "tf32"

    def product(self):
        if self.fmt.startswith("fp8"):
            return torch._scaled_mm(self.a, self.b, scale_a=self.one, scale_b=self.one, out_dtype=torch.bfloat16)
        return torch._int_mm(self.a, self.b) if self.fmt == "int8" else torch.matmul(self.a, self.b)

    def seconds(self):
        self.flush.fill_(1)
        if self.device == "cpu":
            began = time.perf_counter()
            self.product()
            return time.perf_counter() - began
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        torch.cuda._sleep(200_000)  # everything is queued before the first event passes
        begin.record()
        self.product()
        end.record()
        torch.cuda.synchronize()
        return begin.elapsed_time(end) * 1e-3


def theirs(fmt, size, device, samples):
    try:
        run = Torch(fmt, size, device)
        taken = [run.seconds() for _ in range(samples + 3)][3:]
    except (RuntimeError, ValueError, NotImplementedError) as error:
        return {"error": str(error).splitlines()[0]}
    return {"seconds": statistics.median(taken), "samples": taken}


def compare(options, fmt, scratch):
    row = {"format": fmt, "before": ours(options.cli, fmt, options.sizes, scratch)}
    row["torch"] = {size: theirs(fmt, size, "cuda", options.samples) for size in options.sizes}
    row["after"] = ours(options.cli, fmt, options.sizes, scratch)
    row["ratio"] = {}
    for size, figures in row["torch"].items():
        both = [side[size] for side in (row["before"], row["after"]) if size in side]
        if both and "seconds" in figures:
            row["ratio"][size] = figures["seconds"] / statistics.mean(both)
    return row


def row_text(row):
    parts = []
    for size, figures in row["torch"].items():
        if size in row["ratio"]:
            rate = 2 * size**3 / figures["seconds"] / 1e12
            parts.append(f"{size}: {row['ratio'][size]:.2f} of torch's {rate:.4g} T/s")
        else:
            parts.append(f"{size}: {figures.get('error') or row['before'].get('error') or 'not measured'}")
    worst = min(row["ratio"].values(), default=None)
    verdict = "" if worst is None else f"; at least {worst:.2f} (goal {GOAL}: {'reached' if worst >= GOAL else 'MISSED'})"
    return f"{row['format']}: " + ", ".join(parts) + verdict


def check(options, scratch):
    failed, made = 0, 0
    for fmt in options.formats:
        answer = ask(options.cli, "predict", fmt, options.sizes, "nvidia-h200", scratch)
        times = next((one["y"]["values"] for one in answer.get("series", []) if one["key"] == "time"), [])
        rates = next((one["y"]["values"] for one in answer.get("series", []) if one["key"] == "flop_rate"), [])
        for size, seconds, rate in zip(options.sizes, times, rates):
            made += 1
            if abs(seconds * rate / (2 * size**3) - 1) > 1e-9:
                failed += 1
                print(f"{fmt} {size}: {seconds * rate} operations")
        made += 1
        if len(times) != len(options.sizes) or len(rates) != len(options.sizes):
            failed += 1
            print(f"{fmt}: {answer.get('error') or 'no time for every size'}")
        timed = theirs(fmt, 64, "cpu", 1)
        if "error" in timed:
            print(f"{fmt}: not on this CPU: {timed['error']}")
            continue
        made += 1
        run = Torch(fmt, 64, "cpu")
        exact = run.a.double() @ run.b.double()
        off = ((run.product().double() - exact).abs().max() / exact.abs().max()).item()
        if off > (0.01 if run.a.element_size() < 4 else 1e-5):
            failed += 1
            print(f"{fmt}: the loop's product is off by {off}")
    print(f"{failed} of {made} checks failed")
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cli")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--sizes", nargs="*", type=int, default=SIZES)
    parser.add_argument("--formats", nargs="*", default=list(TYPES), choices=list(TYPES))
    parser.add_argument("--samples", type=int, default=20)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    scratch = options.out.with_suffix(".record.json")
    try:
        if options.check:
            return check(options, scratch)
        if not torch.cuda.is_available():
            print("PyTorch sees no GPU here: nothing to compare", file=sys.stderr)
            return 3
        rows = []
        for fmt in options.formats:
            rows.append(compare(options, fmt, scratch))
            print(row_text(rows[-1]), flush=True)
        options.out.write_text(json.dumps({"torch": torch.__version__, "device": torch.cuda.get_device_name(0), "rows": rows}, indent=2))
        return 1 if any("error" in row["before"] or "error" in row["after"] for row in rows) else 0
    finally:
        scratch.unlink(missing_ok=True)


if __name__ == "__main__":
    sys.exit(main())
