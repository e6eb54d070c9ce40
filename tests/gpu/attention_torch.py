#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Our flash attention beside PyTorch's FLASH and CUDNN backends, on this GPU, in one session.

    attention_torch.py CLI OUT.json [--only WORD…] [--lengths N…] [--versions V…] [--check]

Hidden size 2048 and 16384 tokens, as in the FlashAttention papers: 2048 / d heads, a batch of 16384 / N, bfloat16. Every case
asks memscape-cli for one version after the other, then times both backends of scaled_dot_product_attention, each named and
alone allowed, in turn, then asks for the best version again, so that a clock that drifts meets all of them. PyTorch's samples
are taken as ours: caches flushed before each, events of the GPU, medians. Rates count 4 B H N² d operations forward and 2.5
times that backward, half of it when causal. Ends with 1 when a run fails, with 3 when there is no GPU; what is slower than the
goals is said, not failed.

--check needs no GPU: the operations of every case are compared with memscape-cli's prediction, and the timing loop runs the MATH
backend on the CPU on small shapes, against attention written out in double."""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import time

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

LENGTHS = (512, 1024, 2048, 4096, 8192, 16384)
TOKENS, HIDDEN = 16384, 2048
BACKENDS = {"torch FLASH": SDPBackend.FLASH_ATTENTION, "torch CUDNN": SDPBackend.CUDNN_ATTENTION}
FLUSHED = 256 << 20  # bytes, more than any L2
GOALS = {("forward", 128, False): 0.85, ("backward", 128, False): 0.60}  # of torch FLASH at 8192


def operations(batch, heads, length, head_dim, causal, which):
    """Multiply-adds as two, the triangle with its diagonal when causal."""
    scores = batch * heads * (length * (length + 1) / 2 if causal else length * length)
    return 4 * scores * head_dim * {"forward": 1, "backward": 2.5}[which]


def cases(lengths):
    for head_dim in (64, 128):
        for causal in (False, True):
            for which in ("forward", "backward"):
                for length in lengths:
                    yield {"batch": max(1, TOKENS // length), "heads": HIDDEN // head_dim, "sequence": length, "head_dim": head_dim,
                           "causal": causal, "pass": which}


def name_of(case):
    return f"d{case['head_dim']}-{'causal' if case['causal'] else 'full'}-{case['pass']}-{case['sequence']}"


def ask(cli, verb, case, device, version, out):
    """The record's answer for a version, or for several of them, '4,6'."""
    words = [f"{key}={str(value).lower()}" for key, value in case.items()]
    done = subprocess.run([cli, verb, "attention", *words, "dtype=bfloat16", "implementation=flash", f"version={version}",
                           "--device", device, "-o", str(out)], capture_output=True, text=True, check=False)
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or ["no answer"])[-1]}
    return json.loads(out.read_text())["measured" if verb == "measure" else "predicted"]


def measured_versions(cli, case, versions, out):
    """Seconds by version, all in one sweep, whose points are visited in turn."""
    answer = ask(cli, "measure", case, "cuda:0", ",".join(map(str, versions)), out)
    if "error" in answer:
        return {"versions": answer}
    series = next(one for one in answer["series"] if one["key"] == "flash_time")
    return {f"v{int(x)}": {"flash_time": y} for x, y in zip(series["x"]["values"], series["y"]["values"])}


class Torch:
    """One case's tensors, and one timed run of it."""

    def __init__(self, case, device, dtype):
        self.case, self.device = case, device
        torch.manual_seed(1)
        shape = (case["batch"], case["heads"], case["sequence"], case["head_dim"])
        self.inputs = [torch.randn(shape, device=device, dtype=dtype, requires_grad=case["pass"] == "backward") for _ in range(3)]
        self.gradient = torch.randn(shape, device=device, dtype=dtype)
        self.flush = torch.empty(FLUSHED if device == "cuda" else 1, dtype=torch.uint8, device=device)

    def forward(self):
        return scaled_dot_product_attention(*self.inputs, is_causal=self.case["causal"])

    def seconds(self):
        """Of one forward, or of the backward alone."""
        output = self.forward() if self.case["pass"] == "backward" else None

        def work():
            return torch.autograd.grad(output, self.inputs, self.gradient) if output is not None else self.forward()
        self.flush.fill_(1)
        if self.device == "cpu":
            began = time.perf_counter()
            work()
            return time.perf_counter() - began
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        torch.cuda._sleep(200_000)  # everything is queued before the first event passes
        begin.record()
        work()
        end.record()
        torch.cuda.synchronize()
        return begin.elapsed_time(end) * 1e-3


def time_backends(case, backends, device, dtype, samples):
    """Medians by backend, taken in turn; an error where a backend does not take the case."""
    run, seconds, errors = Torch(case, device, dtype), {name: [] for name in backends}, {}
    for turn in range(samples + 3):
        for name, backend in backends.items():
            if name in errors:
                continue
            try:
                with sdpa_kernel(backend):
                    taken = run.seconds()
            except RuntimeError as error:
                errors[name] = str(error).splitlines()[0]
                continue
            if turn >= 3:
                seconds[name].append(taken)
    return {name: {"error": errors[name]} if name in errors else {"seconds": statistics.median(values), "samples": values}
            for name, values in seconds.items()}


def run_case(options, case, versions, scratch):
    row = {"case": case, "ours": measured_versions(options.cli, case, versions, scratch)}
    row["torch"] = time_backends(case, BACKENDS, "cuda", torch.bfloat16, options.samples)
    again = measured_versions(options.cli, case, versions[-2:], scratch)
    row["ours"]["best again"] = again.get(f"v{versions[-1]}") or {"error": "no answer"}
    return row


def rate_text(row):
    case = row["case"]
    work = operations(case["batch"], case["heads"], case["sequence"], case["head_dim"], case["causal"], case["pass"])
    rates = {name: work / figures["flash_time"] / 1e12 for name, figures in row["ours"].items() if figures.get("flash_time")}
    rates |= {name: work / figures["seconds"] / 1e12 for name, figures in row["torch"].items() if "seconds" in figures}
    row["tflops"] = rates
    text = ", ".join(f"{name} {rate:.0f}" for name, rate in rates.items())
    if "torch FLASH" in rates and "best again" in rates:
        row["of_torch_flash"] = rates["best again"] / rates["torch FLASH"]
        text += f"; {row['of_torch_flash']:.0%} of FLASH"
        goal = GOALS.get((case["pass"], case["head_dim"], case["causal"]))
        if goal and case["sequence"] == 8192:
            text += f" (goal {goal:.0%}: {'reached' if row['of_torch_flash'] >= goal else 'MISSED'})"
    problems = [f"{name}: {figures['error']}" for side in (row["ours"], row["torch"]) for name, figures in side.items() if "error" in figures]
    return text + "".join(f"\n    {problem}" for problem in problems)


def exact(query, key, value, causal):
    scores = query.double() @ key.double().transpose(-1, -2) / query.shape[-1] ** 0.5
    if causal:
        scores = scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1), float("-inf"))
    return scores.softmax(-1) @ value.double()


def check(options, scratch):
    failed = 0
    for case in cases(options.lengths or LENGTHS):
        predicted = ask(options.cli, "predict", case, "nvidia-h200", 0, scratch)
        predicted = {key: figure["value"] for key, figure in predicted.get("figures", {}).items()} or predicted
        ours = operations(case["batch"], case["heads"], case["sequence"], case["head_dim"], case["causal"], case["pass"])
        if "error" in predicted or abs(predicted["flash_flops"] / ours - 1) > 1e-12:
            failed += 1
            print(f"{name_of(case)}: {predicted.get('error') or predicted['flash_flops']} instead of {ours}")
        small = case | {"batch": 1, "heads": 2, "sequence": 33}
        timed = time_backends(small, {"torch MATH": SDPBackend.MATH}, "cpu", torch.float32, 1)["torch MATH"]
        run = Torch(small, "cpu", torch.float32)
        worst = (run.forward().detach().double() - exact(*(x.detach() for x in run.inputs), small["causal"])).abs().max().item()
        if "error" in timed or not timed["seconds"] > 0 or worst > 1e-5:
            failed += 1
            print(f"{name_of(case)}: the loop does not run: {timed.get('error')}, off by {worst}")
    print(f"{failed} of {2 * len(list(cases(options.lengths or LENGTHS)))} checks failed")
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cli")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--lengths", nargs="*", type=int)
    parser.add_argument("--versions", nargs="*", type=int, default=[4, 5, 6], help="at least two; the last is the best")
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
        rows, failed = [], 0
        for case in cases(options.lengths or LENGTHS):
            if options.only and not any(word in name_of(case) for word in options.only):
                continue
            row = run_case(options, case, options.versions, scratch)
            failed += "error" in row["ours"]["best again"]
            print(f"{name_of(case)}: {rate_text(row)}", flush=True)
            rows.append(row)
        options.out.write_text(json.dumps({"torch": torch.__version__, "device": torch.cuda.get_device_name(0), "rows": rows}, indent=2))
        return 1 if failed else 0
    finally:
        scratch.unlink(missing_ok=True)


if __name__ == "__main__":
    sys.exit(main())
