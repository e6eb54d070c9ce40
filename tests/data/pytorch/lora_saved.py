#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a chain of linear layers with low-rank adapters keeps for backward, and its gradients.

    python3 tests/data/pytorch/lora_saved.py > tests/data/pytorch/lora_saved.json

LoRA as peft's lora.Linear computes it, result + B(A(x)) * scaling, written out here: the base is
frozen, A and B are trained. Under torch.autograd.graph.saved_tensors_hooks; bytes are counted once per
storage and split into parameters, the input, and everything else.
"""
import json

import torch
from torch import nn

SIZES, BATCH, RANK = [64, 112, 48, 80], 24, 8


class LoraLinear(nn.Module):
    def __init__(self, inputs, outputs, targeted):
        super().__init__()
        self.base = nn.Linear(inputs, outputs).requires_grad_(False)
        if targeted:
            self.lora_A = nn.Linear(inputs, RANK, bias=False)
            self.lora_B = nn.Linear(RANK, outputs, bias=False)

    def forward(self, x):
        result = self.base(x)
        if hasattr(self, "lora_A"):
            result = result + self.lora_B(self.lora_A(x)) * 2.0
        return result


def measure(dtype, autocast, targeted):
    torch.manual_seed(0)
    layers = [LoraLinear(a, b, i in targeted) for i, (a, b) in enumerate(zip(SIZES, SIZES[1:]))]
    model = nn.Sequential(*sum([[layer, nn.GELU()] for layer in layers], [])[:-1]).to(dtype)
    x = torch.randn(BATCH, SIZES[0], dtype=dtype)
    parameters = {p.untyped_storage().data_ptr() for p in model.parameters()}
    saved = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        saved[storage.data_ptr()] = storage.nbytes()
        kept.append(tensor)
        return tensor

    kept = []
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            y = model(x)
    inputs = {x.untyped_storage().data_ptr()}
    y.sum().backward()
    return {
        "weights": str(dtype).removeprefix("torch."), "autocast": autocast, "targets": [f"{i}" for i in targeted],
        "parameters": sum(n for p, n in saved.items() if p in parameters),
        "inputs": sum(n for p, n in saved.items() if p in inputs),
        "activations": sum(n for p, n in saved.items() if p not in parameters | inputs),
        "gradients": sum(p.grad.nbytes for p in model.parameters() if p.grad is not None),
    }


cases = [measure(dtype, autocast, targeted)
         for dtype, autocast in ((torch.float32, False), (torch.bfloat16, False), (torch.float32, True))
         for targeted in ((0, 1, 2), (1,), (0,), (2,))]
print(json.dumps({"torch": torch.__version__, "sizes": SIZES, "batch": BATCH, "rank": RANK, "cases": cases}, indent=1))
