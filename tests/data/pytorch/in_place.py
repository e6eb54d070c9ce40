#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""When PyTorch lets an operation write over its input, and the bytes that are alive with and without.

    python3 tests/data/pytorch/in_place.py > tests/data/pytorch/in_place.json

Every operation on every kind of input, with gradients and under no_grad, out of place and in place, forward and
backward. Bytes are of the input, of the other factor where there is one, and of all that the operation makes, in units
of the input; each storage counts once. Names are dropped as in a chain of modules: afterwards only the result, what
autograd keeps and what has an owner elsewhere (leaves, factors) are alive. `saved` says which storages autograd packed.
"""
import json

import torch
import torch.nn.functional as F
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten

SIDE = 64
OPERATIONS = {
    "add-scalar": (lambda x, _: x + 2, lambda x, _: x.add_(2)),
    "mul-scalar": (lambda x, _: x * 2, lambda x, _: x.mul_(2)),
    "mul-mask": (lambda x, other: x * other, lambda x, other: x.mul_(other)),
    "mul-gate": (lambda x, other: x * other, lambda x, other: x.mul_(other)),
    "relu": (lambda x, _: F.relu(x), lambda x, _: F.relu(x, inplace=True)),
    "leaky-relu": (lambda x, _: F.leaky_relu(x, 0.5), lambda x, _: F.leaky_relu(x, 0.5, inplace=True)),
    "sigmoid": (lambda x, _: x.sigmoid(), lambda x, _: x.sigmoid_()),
    "tanh": (lambda x, _: x.tanh(), lambda x, _: x.tanh_()),
    "exp": (lambda x, _: x.exp(), lambda x, _: x.exp_()),
    "silu": (lambda x, _: F.silu(x), lambda x, _: F.silu(x, inplace=True)),
    "gelu": (lambda x, _: F.gelu(x), lambda x, _: F.gelu(x, inplace=True)),
}
INPUTS = ("leaf", "view", "sum", "linear", "sigmoid", "relu", "read")


class Alive(TorchDispatchMode):
    """Bytes of the storages it is told of and of all that are made while it is active."""

    def __init__(self, *tensors):
        super().__init__()
        self.storages, self.peak = {}, 0
        self.add(tensors)

    def add(self, tensors):
        for tensor in tensors:
            storage = tensor.untyped_storage()
            self.storages[storage._cdata] = (StorageWeakRef(storage), storage.nbytes())
        self.peak = max(self.peak, self.now())

    def now(self):
        return sum(size for reference, size in self.storages.values() if not reference.expired())

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        made = function(*args, **(kwargs or {}))
        self.add([one for one in tree_flatten(made)[0] if isinstance(one, torch.Tensor)])
        return made


def made_input(kind, leaf, weight):
    """The input, and what else the loss is made of."""
    if kind == "leaf":
        return leaf, []
    if kind == "view":
        return leaf.view(SIDE, SIDE), []
    if kind == "sigmoid":
        return torch.sigmoid(leaf), []
    if kind == "relu":
        return torch.relu(leaf), []
    if kind == "linear":
        return F.linear(leaf, weight), []
    result = leaf + 1
    return result, [F.linear(result, weight)] if kind == "read" else []


def run(operation, kind, gradients, in_place):
    torch.manual_seed(0)
    leaf = torch.randn(SIDE, SIDE, requires_grad=True)
    weight = torch.randn(SIDE, SIDE, requires_grad=True)
    other = torch.randn(SIDE, SIDE, requires_grad=operation == "mul-gate")
    toward = torch.randn(SIDE, SIDE)
    row = {"gradients": gradients, "operation": operation, "input": kind, "in_place": in_place, "error": None}
    with torch.set_grad_enabled(gradients):
        x, rest = made_input(kind, leaf, weight)
        alive = Alive(x, *([other] if operation.startswith("mul-") and operation != "mul-scalar" else []))
        before = {"input": x.untyped_storage()._cdata, "other": other.untyped_storage()._cdata}
        packed = []

        def pack(one):
            packed.append(one.untyped_storage()._cdata)
            return one

        try:
            with torch.autograd.graph.saved_tensors_hooks(pack, lambda one: one), alive:
                y = OPERATIONS[operation][in_place](x, other)
        except (RuntimeError, TypeError) as error:
            return row | {"error": str(error), "at": "call"}, None
        result = y.untyped_storage()._cdata
        names = {before["other"]: "other", before["input"]: "input", result: "result"}
        row["saved"] = sorted(names.get(storage, "copy") for storage in packed)
        del x
        unit = SIDE * SIDE * 4
        row |= {"peak": alive.peak / unit, "after": alive.now() / unit}
        if not gradients:
            return row, y
        try:
            sum([(one * toward).sum() for one in [y, *rest]]).backward()
        except RuntimeError as error:
            return row | {"error": str(error), "at": "backward"}, None
    return row, (y.detach(), [one.grad for one in (leaf, weight, other)])


def same(a, b):
    if a is None or b is None:
        return a is b
    if isinstance(a, (list, tuple)):
        return all(same(one, two) for one, two in zip(a, b))
    return torch.equal(a, b)


rows = []
for gradients in (True, False):
    for operation in OPERATIONS:
        for kind in INPUTS:
            plain, expected = run(operation, kind, gradients, False)
            over, found = run(operation, kind, gradients, True)
            over["same_numbers"] = same(expected, found) if over["error"] is None else None
            rows += [plain, over]
lines = ",\n".join(json.dumps(row) for row in rows)
print(f'{{"torch": "{torch.__version__}", "rows": [\n{lines}\n]}}')
