# SPDX-License-Identifier: Apache-2.0
"""`precision`, operation=matmul: a product in a format and the same in FP32 in turn; operation=train is amp.py.

torch.matmul multiplies FP64, FP32 (TF32 forbidden), TF32 (allowed), FP16 and BF16; torch._scaled_mm FP8 (the result in BF16) and
torch._int_mm INT8 (in INT32). Warm: products follow each other, short ones several times within a sample. Operands in ±1 (INT8: ±127).
Before they are timed products of odd sizes are held against sums in float64 of the same operands."""
import torch

from .problem import skipped
from .sampling import Visit, refusing

# Format: types of A and of B by name, since older PyTorch lacks some. Of E5M2 both would have no product.
TYPES = {"fp64": ("float64",) * 2, "fp32": ("float32",) * 2, "tf32": ("float32",) * 2, "fp16": ("float16",) * 2, "bf16": ("bfloat16",) * 2,
         "fp8-e4m3": ("float8_e4m3fn",) * 2, "fp8-e5m2": ("float8_e5m2", "float8_e4m3fn"), "int8": ("int8",) * 2}
ROUNDING = {torch.float64: 2.0**-53, torch.float32: 2.0**-24, torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8, torch.int32: 0.0}
STORED = {"fp16": torch.float16, "bf16": torch.bfloat16}


class Product:
    """The operands of one product of shape (m, n, k), and a launch of it. B of the one-byte formats lies along the inner dimension, as
    cuBLASLt wants it. Errors: RuntimeError where this PyTorch lacks the type."""

    def __init__(self, fmt, shape, device):
        self.fmt = fmt
        rows, columns, terms = shape
        generator = torch.Generator(device=device).manual_seed(1)
        left, right = (named(name) for name in TYPES[fmt])
        self.a, self.b = self.draw(generator, (rows, terms), left), self.draw(generator, (terms, columns), right)
        if self.a.element_size() == 1:
            self.b = self.b.t().contiguous().t()
        self.one = torch.ones((), device=device)

    def draw(self, generator, shape, kind):
        matrix = torch.rand(shape, generator=generator, device=generator.device, dtype=torch.float32) * 2 - 1
        return ((matrix * 127).round() if kind == torch.int8 else matrix).to(kind)

    def __call__(self):
        torch.backends.cuda.matmul.allow_tf32 = self.fmt == "tf32"
        if self.fmt.startswith("fp8"):
            return torch._scaled_mm(self.a, self.b, scale_a=self.one, scale_b=self.one, out_dtype=torch.bfloat16)
        return torch._int_mm(self.a, self.b) if self.fmt == "int8" else torch.matmul(self.a, self.b)

    def worst_error(self):
        """Against sums in float64 of the same operands, in parts of the sum of magnitudes; and what rounding the terms and the sum may
        make of it."""
        a, b, found = self.a.double(), self.b.double(), self()
        magnitudes = a.abs() @ b.abs()
        off = (((found.double() - a @ b).abs()) / magnitudes.clamp(min=1e-30)).max().item()
        kind, terms = found.dtype, self.a.shape[1]
        if kind == torch.int32:
            return off, 0.0
        if self.fmt in STORED:  # a CPU may add up in 16 bits: errors of random signs grow as the root
            return off, terms**0.5 * ROUNDING[kind]
        sums = 2.0**-11 if self.fmt == "tf32" else ROUNDING[torch.float64 if kind == torch.float64 else torch.float32]
        return off, terms * sums + ROUNDING[kind]


def named(name):
    if not hasattr(torch, name):
        raise RuntimeError(f"there is no torch.{name}")
    return getattr(torch, name)


def possible_formats(device):
    """Those that this PyTorch multiplies here."""
    found = []
    for fmt in TYPES:
        try:
            if fmt != "tf32" or device.type == "cuda":
                Product(fmt, (32, 32, 32), device)()
                found.append(fmt)
        except (RuntimeError, NotImplementedError, TypeError, AttributeError):
            pass
    return found


def remedy(device):
    return "choose format=" + ", ".join(possible_formats(device)).replace(", ", " or format=")


def checked_shape(fmt):
    """Odd sizes where the product takes them."""
    return (48, 32, 80) if TYPES[fmt][0].startswith(("float8", "int8")) else (33, 65, 130)


def stored(parameters, device):
    """`value` in the format and back, for those of 16 bits; else None."""
    kind = STORED.get(parameters["format"])
    return None if kind is None else torch.tensor(float(parameters["value"]), dtype=torch.float32, device=device).to(kind).float().item()


def shape_of(parameters):
    """(m, n, k); n and k are m where they are 0."""
    rows = int(parameters["m"])
    return rows, int(parameters["n"]) or rows, int(parameters["k"]) or rows


def measure(request):
    """request.parameters: those of `precision` and `visit`."""
    visit, parameters = Visit(request), request.parameters
    fmt, shape = parameters["format"], shape_of(parameters)
    rows, columns, terms = shape
    visit.check_room(12 * (rows * terms + terms * columns) + 8 * rows * columns, "the matrices of both products")
    if fmt == "tf32" and visit.device.type != "cuda":
        raise skipped("format=tf32 is of NVIDIA's tensor cores; on a CPU PyTorch multiplies FP32 as it is", remedy(visit.device), "format")
    works, checks = {}, []
    for name, one in (("time", fmt), ("fp32_time", "fp32")):
        with refusing(f"format={one}, {rows} x {columns} x {terms}", lambda: remedy(visit.device), "format"):
            checks.append(visit.check(f"product in {one}", Product(one, checked_shape(one), visit.device).worst_error))
            works[name] = works["time"] if one == fmt and works else Product(one, shape, visit.device)
            request.check()
            works[name]()
    if fmt == "fp32":
        del works["fp32_time"]
    samples, batches = visit.samples(works)
    samples.setdefault("fp32_time", samples["time"])
    who = {"fp8": "torch._scaled_mm", "int": "torch._int_mm"}.get(fmt[:3], "torch.matmul")
    method = {"products": {fmt: who, "fp32": "torch.matmul"}, "checks": checks, "threads": torch.get_num_threads(), "caches": "warm"}
    return visit.answer(samples, stored=stored(parameters, visit.device), batch=batches["time"], method=method)
