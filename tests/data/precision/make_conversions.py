#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What other programs make of the same floats in each 8- and 16-bit format.

    pip install numpy ml_dtypes torch
    g++ -O2 -I$CUDA/include tests/data/precision/cuda_fp8.cpp -o cuda_fp8
    python3 tests/data/precision/make_conversions.py ./cuda_fp8 > tests/data/precision/conversions.json

`values` are all 256 numbers of an FP8 format. A digest is the sum modulo 2^64 of mix(i * 2^20 + bits)
over COUNT floats, where bits are what float number i becomes (not-a-numbers count as 2^20 - 1) and mix
is the finalizer of splitmix64. The floats have exponents from -40 to 29 and as often as not end in
zeros, so that exact ties are frequent; every sixteenth is any pattern of 32 bits. tst_number_format
makes the same floats.
"""
import json
import subprocess
import sys

import ml_dtypes
import numpy
import torch

COUNT = 1 << 22
NAN = (1 << 20) - 1


def mix(x):
    x = (x ^ (x >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
    return x ^ (x >> numpy.uint64(31))


def floats():
    u = numpy.uint64
    h = mix(numpy.arange(1, COUNT + 1, dtype=numpy.uint64) * u(0x9E3779B97F4A7C15))
    sign = h >> u(63)
    exponent = u(127 - 40) + (h >> u(32)) % u(70)
    cleared = (h >> u(48)) % u(24)
    mantissa = (h & u(0x7FFFFF)) >> cleared << cleared
    bits = sign << u(31) | exponent << u(23) | mantissa
    bits = numpy.where(h % u(16) == 0, h >> u(20) & u(0xFFFFFFFF), bits)
    return bits.astype(numpy.uint32).view(numpy.float32)


def digest(codes, isnan):
    codes = numpy.where(isnan, NAN, codes.astype(numpy.uint64))
    index = numpy.arange(COUNT, dtype=numpy.uint64) << numpy.uint64(20)
    return f"{int(mix(index | codes.astype(numpy.uint64)).sum(dtype=numpy.uint64)):016x}"


def by_numpy(x, dtype, word):
    y = x.astype(dtype)
    return digest(y.view(word), numpy.isnan(y.astype(numpy.float32)))


def by_torch(x, dtype, word):
    y = torch.from_numpy(x.copy()).to(dtype)
    return digest(y.view(word).numpy().view(numpy.uint16 if word == torch.int16 else numpy.uint8),
                  torch.isnan(y.float()).numpy())


def tf32(x):
    """To nearest, ties to even, by integer arithmetic on the float's word; its upper 19 bits."""
    word = x.view(numpy.uint32).astype(numpy.uint64)
    up = (word + 0xFFF + (word >> numpy.uint64(13) & numpy.uint64(1))) >> numpy.uint64(13)
    return digest(up & numpy.uint64(0x7FFFF), numpy.isnan(x))


def int8(x):
    whole = numpy.clip(numpy.rint(numpy.nan_to_num(x, nan=0.0)), -128, 127)
    return digest(whole.astype(numpy.int8).view(numpy.uint8), numpy.zeros(COUNT, bool))


def values(dtype):
    numbers = numpy.arange(256, dtype=numpy.uint8).view(dtype).astype(numpy.float64)
    return [str(v) if not numpy.isfinite(v) else float(v) for v in numbers]


numpy.seterr(all="ignore")
x = floats()
cuda = json.loads(subprocess.run(sys.argv[1], check=True, capture_output=True, text=True).stdout)
f8 = {"fp8-e4m3": (ml_dtypes.float8_e4m3fn, torch.float8_e4m3fn),
      "fp8-e5m2": (ml_dtypes.float8_e5m2, torch.float8_e5m2)}
result = {
    "made_by": "tests/data/precision/make_conversions.py",
    "with": {"numpy": numpy.__version__, "ml_dtypes": ml_dtypes.__version__,
             "torch": torch.__version__, "cuda_fp8.h": cuda["version"]},
    "count": COUNT,
    "fp16": {"numpy": by_numpy(x, numpy.float16, numpy.uint16),
             "torch": by_torch(x, torch.float16, torch.int16)},
    "bf16": {"ml_dtypes": by_numpy(x, ml_dtypes.bfloat16, numpy.uint16),
             "torch": by_torch(x, torch.bfloat16, torch.int16)},
    "tf32": {"integers": tf32(x)},
    "int8": {"numpy": int8(x)},
}
for key, (np_type, torch_type) in f8.items():
    result[key] = {"values": values(np_type),
                   "ml_dtypes": by_numpy(x, np_type, numpy.uint8),
                   "torch": by_torch(x, torch_type, torch.uint8),
                   "cuda": cuda[key], "cuda_saturating": cuda[key + "-saturating"]}
print(json.dumps(result, indent=1))
