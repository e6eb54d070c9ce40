#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Attention and its gradients as PyTorch's autograd has them, in float64.

    python3 tests/data/attention/gradients.py > tests/data/attention/gradients.json

The inputs are made here again from their definition (kernels/programs/attention/attention_numbers.h): splitmix's
finalizer, three uniform numbers a element, factors of rows; rounded to the format by torch. Written
out: softmax(Q K^T / sqrt(d) + mask) V with repeated kv heads, its logsumexp, and the gradients of
sum(dO * O). Every tensor as its sum, its sum of squares and every STEP-th element.
"""
import json
import sys

import torch

MASK = (1 << 64) - 1
STEP = 7
QUERY, KEY, VALUE, GRADIENT = range(4)


def mixed(x):
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def uniform(seed, index):
    bits = mixed((index + seed * 0x9E3779B97F4A7C15) & MASK) >> 40
    return torch.tensor((bits - (1 << 23)) / (1 << 23), dtype=torch.float32)


def scale(tensor, row):
    if tensor == QUERY:
        return [1.0, 64.0, 0.0, 2.0**-14][row % 4]
    if tensor == KEY:
        return 4.0 if row % 7 == 3 else 1.0
    if tensor == VALUE:
        return 64.0 if row % 5 == 1 else 1.0
    return 2.0**-10 if row % 3 == 1 else 1.0


def make(tensor, shape, dtype, extreme):
    dim = shape[-1]
    values = torch.empty(shape, dtype=torch.float32).flatten()
    for i in range(values.numel()):
        x = (uniform(101 + tensor, 3 * i) + uniform(101 + tensor, 3 * i + 1)) + uniform(101 + tensor, 3 * i + 2)
        values[i] = x * scale(tensor, i // dim) if extreme else x
    return values.to(dtype).double().reshape(shape)


def summary(tensor):
    flat = tensor.flatten()
    return {"sum": flat.sum().item(), "squares": (flat * flat).sum().item(), "values": flat[::STEP].tolist()}


def case(batch, heads, kv_heads, queries, keys, dim, causal, dtype, extreme):
    q = make(QUERY, (batch, heads, queries, dim), dtype, extreme).requires_grad_()
    k = make(KEY, (batch, kv_heads, keys, dim), dtype, extreme).requires_grad_()
    v = make(VALUE, (batch, kv_heads, keys, dim), dtype, extreme).requires_grad_()
    g = make(GRADIENT, (batch, heads, queries, dim), dtype, extreme)
    group = heads // kv_heads
    s = q @ k.repeat_interleave(group, 1).transpose(-2, -1) / dim**0.5
    if causal:
        visible = torch.ones(queries, keys, dtype=torch.bool).tril(keys - queries)
        s = s.masked_fill(~visible, float("-inf"))
    o = s.softmax(-1) @ v.repeat_interleave(group, 1)
    o.backward(g)
    return {
        "shape": [batch, heads, kv_heads, queries, keys, dim], "causal": causal, "extreme": extreme,
        "dtype": str(dtype).removeprefix("torch."),
        "output": summary(o.detach()), "log_sum_exp": summary(s.detach().logsumexp(-1)),
        "query_gradient": summary(q.grad), "key_gradient": summary(k.grad), "value_gradient": summary(v.grad),
    }


CASES = [
    case(1, 1, 1, 5, 5, 8, False, torch.float32, False),
    case(1, 2, 1, 9, 13, 16, True, torch.float32, False),
    case(2, 4, 2, 7, 7, 32, True, torch.float16, False),
    case(1, 2, 2, 12, 12, 8, False, torch.bfloat16, True),
    case(1, 3, 1, 11, 17, 12, True, torch.float32, True),
]
lines = ",\n".join(json.dumps(c) for c in CASES)
source = f"PyTorch {torch.__version__}, float64 on a CPU; made by gradients.py"
sys.stdout.write(f"{{\"source\": {json.dumps(source)}, \"step\": {STEP}, \"cases\": [\n{lines}\n]}}\n")
