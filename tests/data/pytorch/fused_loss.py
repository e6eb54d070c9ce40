#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records what the forward pass of Liger Kernel's fused_linear_cross_entropy allocates and frees: its own Python, on fake
CUDA tensors, with Triton's kernel replaced by one that does nothing. Backward hands on the gradients that it made.

Events are signed bytes in time order, as training_steps.py records them.

Usage (needs liger-kernel beside PyTorch): fused_loss.py > fused_loss.json
"""
import contextlib
import importlib.metadata
import json
import sys

sys.dont_write_bytecode = True

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from training_steps import Recorder, own_autocast


class NoKernel:
    def __getitem__(self, grid):
        return lambda *arguments, **named: None


def recorded(rows, hidden, vocab, rows_dtype, weight_dtype, autocast=None, trains_head=True):
    from liger_kernel.ops import fused_linear_cross_entropy as liger
    liger.liger_cross_entropy_kernel = NoKernel()
    torch.cuda.get_device_capability = lambda device=None: (9, 0)
    torch.Tensor.item = lambda tensor: rows  # how many targets count
    with FakeTensorMode():
        def made(*shape, dtype, **rest):
            return torch.empty(*shape, dtype=dtype, device="cuda", **rest)
        x = made(rows, hidden, dtype=rows_dtype, requires_grad=True)
        weight = made(vocab, hidden, dtype=weight_dtype, requires_grad=trains_head)
        target = made(rows, dtype=torch.int64)
        recorder = Recorder([x, weight, target])
        region = own_autocast(autocast) if autocast else contextlib.nullcontext()
        with torch.no_grad(), region:
            with recorder:
                kept = liger.fused_linear_cross_entropy_forward(x, weight, target)
        events = recorder.taken()
        kept_bytes = sum(t.untyped_storage().nbytes() for t in kept if isinstance(t, torch.Tensor))
    return {"rows": rows, "hidden": hidden, "vocab": vocab, "rows_dtype": str(rows_dtype)[6:],
            "weight_dtype": str(weight_dtype)[6:], "autocast": str(autocast)[6:] if autocast else "",
            "trains_head": trains_head, "events": events, "kept": kept_bytes}


def main():
    half, full = torch.bfloat16, torch.float32
    cases = [recorded(rows, hidden, vocab, *dtypes)
             for rows, hidden, vocab in ((96, 48, 211), (1000, 64, 50257), (33, 64, 64), (4096, 256, 32000))
             for dtypes in ((half, half), (full, full), (full, full, half), (half, full, half), (half, half, None, False),
                            (full, full, half, False))]
    print(json.dumps({"about": __doc__.strip(), "torch": torch.__version__,
                      "liger": importlib.metadata.version("liger-kernel"), "cases": cases}, separators=(",", ":")))


if __name__ == "__main__":
    main()
