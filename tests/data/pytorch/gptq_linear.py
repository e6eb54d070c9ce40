# SPDX-License-Identifier: Apache-2.0
"""What AutoGPTQ's QuantLinear without ExLlama's kernels keeps for backward and makes on the way; writes gptq_linear.json.

The layer is frozen, its input has a gradient: `saved` is what autograd packs beside the input, `made` the tensors of a matrix's
size that forward makes, in order, both in bytes. The class is read from its file, as in quantized_bytes.py.

    python3 tests/data/pytorch/gptq_linear.py AUTOGPTQ_SOURCE > tests/data/pytorch/gptq_linear.json
"""
import ast
import json
import math
import pathlib
import sys

import torch
from torch.utils._python_dispatch import TorchDispatchMode

SHAPES = [(512, 256), (1024, 384), (256, 1024)]
ROWS = 128


class Logger:
    def warning(self, *_):
        pass


def quant_linear(path):
    tree = ast.parse(pathlib.Path(path).read_text())
    found = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "QuantLinear")
    scope = {"nn": torch.nn, "torch": torch, "math": math, "logger": Logger(), "_autogptq_cuda_available": False,
             "autogptq_cuda_256": None, "autogptq_cuda_64": None}
    exec(compile(ast.Module([found], []), path, "exec"), scope)
    return scope["QuantLinear"]


class Made(TorchDispatchMode):
    """Bytes of results that own their memory and have as many elements as the matrix."""

    def __init__(self, count):
        super().__init__()
        self.count, self.bytes, self.seen = count, [], set()

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        result = function(*arguments, **(keywords or {}))
        if isinstance(result, torch.Tensor) and result.numel() == self.count:
            address = result.untyped_storage()._cdata
            if address not in self.seen and result.untyped_storage().nbytes() >= result.numel() * result.element_size():
                self.seen.add(address)
                self.bytes.append(result.numel() * result.element_size())
                self.kept = getattr(self, "kept", []) + [result]  # so that no address comes twice
        return result


def main():
    linear, cases = quant_linear(f"{sys.argv[1]}/auto_gptq/nn_modules/qlinear/qlinear_cuda_old.py"), []
    for outputs, inputs in SHAPES:
        layer = linear(4, 128, inputs, outputs, True)
        x = torch.randn(ROWS, inputs, dtype=torch.float16, requires_grad=True)
        saved = []
        with torch.autograd.graph.saved_tensors_hooks(lambda tensor: saved.append(tensor) or tensor, lambda tensor: tensor):
            with Made(inputs * outputs) as made:
                layer(x).float().sum()
        cases.append({"out": outputs, "in": inputs, "made": made.bytes,
                      "saved": [tensor.numel() * tensor.element_size() for tensor in saved if tensor.numel() == inputs * outputs]})
    json.dump({"versions": {"torch": torch.__version__, "auto-gptq": "0.7.1"}, "rows": ROWS, "cases": cases}, sys.stdout, indent=1)
    print()


main()
