# SPDX-License-Identifier: Apache-2.0
"""Bytes of a linear layer's weight as libraries keep it in fewer bits; writes quantized_bytes.json.

nf4   bitsandbytes quantizes a random matrix, with double quantization (nf4-double) or without; all tensors of the
      state count
int8  bitsandbytes.functional.int8_vectorwise_quant: codes and one scale a row
awq   the buffers of AutoAWQ's WQLinear_GEMM, groups of 128
gptq  the buffers of AutoGPTQ's QuantLinear (qlinear_cuda_old.py), 4 bits, groups of 128
fp8   torch.float8_e4m3fn with the fp32 scale of a whole tensor that torch._scaled_mm asks for

    python3 tests/data/pytorch/quantized_bytes.py AUTOAWQ_SOURCE AUTOGPTQ_SOURCE > tests/data/pytorch/quantized_bytes.json

Neither AutoAWQ nor AutoGPTQ is imported (both want old versions of others): the class is read from
its file and its constructor is run.
"""
import ast
import json
import math
import pathlib
import sys

import bitsandbytes
import bitsandbytes.functional as functional
import torch

SHAPES = [(64, 128), (1024, 1024), (4096, 4096), (11008, 4096), (4096, 11008), (992, 384), (256, 14336)]


def size(*tensors):
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def class_of(path, name, **names):
    tree = ast.parse(pathlib.Path(path).read_text())
    found = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name)
    scope = {"nn": torch.nn, "torch": torch, "math": math, **names}
    exec(compile(ast.Module([found], []), path, "exec"), scope)
    return scope[name]


def nf4(rows, columns, is_double):
    codes, state = functional.quantize_4bit(torch.randn(rows, columns, dtype=torch.bfloat16), quant_type="nf4",
                                            compress_statistics=is_double)
    if not is_double:
        return size(codes, state.absmax, state.code)
    return size(codes, state.absmax, state.code, state.offset, state.state2.absmax, state.state2.code)


def int8(rows, columns):
    codes, scales, _ = functional.int8_vectorwise_quant(torch.randn(rows, columns).half())
    return size(codes, scales)


def buffers(module):
    return size(*module.buffers())


def fp8(rows, columns):
    return size(torch.empty(rows, columns, dtype=torch.float8_e4m3fn), torch.ones((), dtype=torch.float32))


def main():
    awq = class_of(f"{sys.argv[1]}/awq/modules/linear/gemm.py", "WQLinear_GEMM")
    gptq = class_of(f"{sys.argv[2]}/auto_gptq/nn_modules/qlinear/qlinear_cuda_old.py", "QuantLinear",
                    _autogptq_cuda_available=False, autogptq_cuda_256=None, autogptq_cuda_64=None)
    cases = []
    for rows, columns in SHAPES:
        cases.append({"out": rows, "in": columns, "nf4": nf4(rows, columns, False),
                      "nf4-double": nf4(rows, columns, True), "int8": int8(rows, columns),
                      "awq": buffers(awq(4, 128, columns, rows, False, "cpu")),
                      "gptq": buffers(gptq(4, 128, columns, rows, False)),
                      "fp8": fp8(rows, columns)})
    versions = {"torch": torch.__version__, "bitsandbytes": bitsandbytes.__version__, "autoawq": "0.2.9",
                "auto-gptq": "0.7.1"}
    json.dump({"versions": versions, "cases": cases}, sys.stdout, indent=1)
    print()


main()
