# SPDX-License-Identifier: Apache-2.0
"""`precision`, operation=train: a classifier under automatic mixed precision, as PyTorch's recipe has it (autocast, GradScaler, AdamW).

K inputs → N → N → 16 classes with ReLU between, cross entropy; a new batch of M for every step. Task, batches and first weights are
Memscape's own, bit for bit (kernels/programs/training-memory/amp_numbers.h), so that losses can be held beside those of its kernels.
FP32 and the format take their steps in turn, in FP16 a third course without a scaler.

A step's time holds forward, backward, scaler, optimizer and zero_grad, not the making of the batch. Gradients are counted by magnitude
in FP32 steps that are not timed. Peak bytes are those of one more step, allocation by allocation (events.py): weights, optimizer and
batch, and what the step adds; on a CPU as asked for, on a GPU in blocks of 512 B."""
import contextlib
import math

import torch
from torch import nn

from . import precision
from .events import Collector
from .problem import Problem, skipped
from .sampling import Visit, refusing

CLASSES = 16
TYPES = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp32": None}
COUNTED_STEPS = 10  # of the FP32 course, spread over all of them
FIRST_BAR, BARS = -50, 70  # log2 |g|
DIRECTION_SEED, BATCH_SEED, WEIGHT_SEED, BIAS_SEED = 900, 1000, 3, 4


# --- Memscape's numbers (kernels/programs/common/mlp_numbers.h) ------------------------------------------------------------------


def signed(number):
    """The same 64 bits as a whole number of torch.int64."""
    number %= 1 << 64
    return number - (1 << 64) if number >> 63 else number


def uniform(seed, count, device):
    """`count` numbers in [-1, 1), multiples of 2^-23: splitmix64 of their places."""
    x = torch.arange(count, dtype=torch.int64, device=device) + signed(seed * 0x9e3779b97f4a7c15)
    for shift, factor in ((30, 0xbf58476d1ce4e5b9), (27, 0x94d049bb133111eb), (31, 1)):
        x = (x ^ ((x >> shift) & ((1 << (64 - shift)) - 1))) * signed(factor)
    return ((x >> 40 & 0xffffff) - (1 << 23)).to(torch.float32) * 2.0**-23


class Task:
    """Random inputs; the class is the direction that an input points along most."""

    def __init__(self, batch, inputs, device):
        self.shape, self.device = (batch, inputs), device
        self.directions = uniform(DIRECTION_SEED, CLASSES * inputs, device).view(CLASSES, inputs)

    def batch(self, index):
        """Inputs of variance 1, and their classes."""
        inputs = (torch.tensor(3.0).sqrt().item() * uniform(BATCH_SEED + index, self.shape[0] * self.shape[1], self.device)).view(self.shape)
        return inputs, (inputs @ self.directions.t()).argmax(1)


# --- the step -------------------------------------------------------------------------------------------------------------------


class Course:
    """One network's way through the steps. scale: where the loss scale begins, None for no scaler."""

    def __init__(self, inputs, hidden, fmt, device, scale=None, growth=2000, fused=False):
        self.kind, self.device = TYPES[fmt], torch.device(device)
        self.network = nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(),
                                     nn.Linear(hidden, CLASSES)).to(device)
        self.start()
        self.optimizer = torch.optim.AdamW(self.network.parameters(), **({"fused": True} if fused else {}))
        self.scaler = None if scale is None else make_scaler(self.device.type, scale, growth)

    def start(self):
        """Weights and biases as torch.nn.Linear draws them, of Memscape's numbers."""
        with torch.no_grad():
            for i, layer in enumerate(part for part in self.network if isinstance(part, nn.Linear)):
                bound = torch.tensor(1.0) / torch.tensor(float(layer.in_features)).sqrt()
                for tensor, seed in ((layer.weight, WEIGHT_SEED), (layer.bias, BIAS_SEED)):
                    tensor.copy_((uniform(2 * i + seed, tensor.numel(), self.device) * bound.item()).view(tensor.shape))

    def step(self, inputs, classes):
        """The loss, on the device."""
        half = torch.autocast(self.device.type, dtype=self.kind) if self.kind else contextlib.nullcontext()
        with half:
            loss = nn.functional.cross_entropy(self.network(inputs), classes)
        if self.scaler is None:
            loss.backward()
            self.optimizer.step()
        else:
            self.scaler.scale(loss).backward()
            self.scaler.step(self.optimizer)
            self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    def scale(self):
        return 1.0 if self.scaler is None else self.scaler.get_scale()

    def kept_bytes(self):
        """Of weights and optimizer, on the device, by storages."""
        tensors = list(self.network.parameters()) + [value for state in self.optimizer.state.values() for value in state.values()
                                                     if isinstance(value, torch.Tensor)]
        return sum(rounded(one.numel() * one.element_size(), self.device) for one in tensors if one.device.type == self.device.type)

    def peak(self, inputs, classes):
        """Bytes alive at most in one step, the batch among them."""
        with Collector(self.device) as collector:
            with collector.region("step"):
                self.step(inputs, classes)
            events = [event for event in collector.recording().events if event.region]
        alive = most = self.kept_bytes() + sum(rounded(one.numel() * one.element_size(), self.device) for one in (inputs, classes))
        for event in events:
            alive += {"alloc": event.bytes, "free": -event.bytes}.get(event.action, 0)
            most = max(most, alive)
        return most


def rounded(size, device):
    return -(-size // 512) * 512 if device.type == "cuda" else size


def make_scaler(kind, scale, growth):
    """Errors: run.skipped on a CPU before torch 2.3."""
    options = {"init_scale": scale, "growth_interval": growth}
    if hasattr(torch, "amp") and hasattr(torch.amp, "GradScaler"):
        return torch.amp.GradScaler(kind, **options)
    if kind == "cuda":
        return torch.cuda.amp.GradScaler(**options)
    raise skipped(f"format=fp16: PyTorch {torch.__version__} has no loss scaling on a CPU, 2.3 or newer has it", "choose format=bf16", "format")


def fuses(device):
    """Whether AdamW in one kernel is to be had there, as a prediction assumes."""
    one = nn.Parameter(torch.zeros(1, device=device))
    one.grad = torch.zeros_like(one)
    try:
        torch.optim.AdamW([one], fused=True).step()
        return True
    except (RuntimeError, TypeError):
        return False


# --- gradients by magnitude -----------------------------------------------------------------------------------------------------


class Counter:
    """Of every gradient of a step that the format holds: of logits, of activations, of weights."""

    def __init__(self):
        self.bars = torch.zeros(BARS, dtype=torch.int64)
        self.zeros, self.largest, self.sum, self.squares = 0, 0.0, 0.0, 0.0

    def add(self, gradient):
        magnitudes = gradient.detach().double().abs().flatten().cpu()
        magnitudes = magnitudes[torch.isfinite(magnitudes)]
        some = magnitudes[magnitudes > 0]
        self.zeros += magnitudes.numel() - some.numel()
        if some.numel() == 0:
            return
        logs = torch.log2(some)
        exponents = torch.frexp(some)[1].to(torch.int64) - 1
        self.bars += torch.bincount((exponents - FIRST_BAR).clamp(0, BARS - 1), minlength=BARS)
        self.largest = max(self.largest, some.max().item())
        self.sum, self.squares = self.sum + logs.sum().item(), self.squares + (logs * logs).sum().item()

    @contextlib.contextmanager
    def watching(self, network):
        """The gradients of the step within."""
        linear = [part for part in network if isinstance(part, nn.Linear)]
        results = [part for part in network if isinstance(part, nn.ReLU)] + [linear[-1]]
        hooks = [layer.weight.register_hook(self.add) for layer in linear]
        hooks += [part.register_forward_hook(lambda module, inputs, output: output.register_hook(self.add) and None) for part in results]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()

    def to_json(self):
        return {"bars": self.bars.tolist(), "zeros": self.zeros, "largest": self.largest, "sum": self.sum, "squares": self.squares}


# --- the run --------------------------------------------------------------------------------------------------------------------


def courses_of(parameters, device, fused):
    """By key; FP32 first."""
    fmt, (_, hidden, inputs) = parameters["format"], precision.shape_of(parameters)
    courses = {"fp32": Course(inputs, hidden, "fp32", device, fused=fused)}
    if fmt != "fp32":
        scale = float(parameters["loss_scale"]) if fmt == "fp16" else None
        courses[fmt] = Course(inputs, hidden, fmt, device, scale, int(parameters["growth_interval"]), fused)
    if fmt == "fp16":
        courses["fp16_unscaled"] = Course(inputs, hidden, "fp16", device, fused=fused)
    return courses


class Steps:
    """What was taken of a course."""

    def __init__(self):
        self.rows, self.peak = {"loss": [], "seconds": [], "scale": [], "skipped": [], "counted": []}, None

    def add(self, **row):
        for key, value in row.items():
            self.rows[key].append(value)

    def to_json(self, key):
        losses = [loss if math.isfinite(loss) else None for loss in self.rows["loss"]]
        return {"key": key, "peak": self.peak, **self.rows, "loss": losses}


def checked_step(fmt, device):
    """Gradients of one step of a small network against the same in float64, in parts of each tensor's largest; and how far rounding
    may take them."""
    task, course = Task(16, 24, device), Course(24, 20, fmt, device)
    inputs, classes = task.batch(0)
    with torch.autocast(course.device.type, dtype=course.kind) if course.kind else contextlib.nullcontext():
        loss = nn.functional.cross_entropy(course.network(inputs), classes)
    found = torch.autograd.grad(loss, list(course.network.parameters()))
    exact = [p.detach().double().requires_grad_() for p in course.network.parameters()]
    x = inputs.double()
    for i in range(0, len(exact), 2):
        x = x @ exact[i].t() + exact[i + 1]
        x = x.clamp(min=0) if i + 2 < len(exact) else x
    logs = x - x.exp().sum(1, keepdim=True).log()
    expected = torch.autograd.grad(-logs[torch.arange(16, device=x.device), classes].mean(), exact)
    off = max(((one.double() - other).abs().max() / other.abs().max()).item() for one, other in zip(found, expected))
    return off, {"fp32": 1e-5, "fp16": 2e-2, "bf16": 1e-1}[fmt]


def measure(request):
    """request.parameters: those of `precision` and `visit`. Answers detail.courses, detail.gradients; with the error run.cancelled, too,
    once each course has two steps."""
    visit, parameters = Visit(request), request.parameters
    batch, hidden, inputs = precision.shape_of(parameters)
    fmt, device = parameters["format"], visit.device
    weights = (inputs + 1) * hidden + (hidden + 1) * hidden + (hidden + 1) * CLASSES
    visit.check_room(3 * 16 * weights + 4 * batch * (inputs + 6 * hidden), "the networks of all courses")
    with refusing(f"format={fmt}", lambda: "choose format=bf16 or format=fp32", "format"):
        check_autocast(fmt, device)
        checks = [visit.check(f"training in {one}", lambda: checked_step(one, device)) for one in dict.fromkeys(("fp32", fmt))]
        fused = fuses(device)
        courses, task, counter = courses_of(parameters, device, fused), Task(batch, inputs, device), Counter()
    steps = {key: Steps() for key in courses}
    method = {"products": {key: "torch.nn.Linear" for key in courses}, "checks": checks, "threads": torch.get_num_threads(),
              "optimizer": "torch.optim.AdamW, " + ("fused" if fused else "as it comes")}

    def answer():
        return visit.answer({}, courses=[one.to_json(key) for key, one in steps.items()], gradients=counter.to_json(),
                            stored=precision.stored(parameters, device), method=method)
    try:
        take_steps(visit, courses, steps, task, counter, int(parameters["steps"]))
    except Problem as problem:
        if problem.code == "run.cancelled" and all(len(one.rows["loss"]) > 1 for one in steps.values()):
            problem.result = answer()[0]
        raise
    return answer()


def check_autocast(fmt, device):
    """Errors: run.skipped where autocast would silently stay in FP32."""
    if TYPES[fmt] is None:
        return
    with torch.autocast(device.type, dtype=TYPES[fmt]):
        found = (torch.ones((16, 16), device=device) @ torch.ones((16, 16), device=device)).dtype
    if found != TYPES[fmt]:
        raise skipped(f"format={fmt}: autocast of PyTorch {torch.__version__} leaves products in {found} on a {device.type.upper()}",
                      "choose format=" + ("bf16" if fmt == "fp16" else "fp32"), "format")


def take_steps(visit, courses, steps, task, counter, count):
    every = max(1, count // COUNTED_STEPS)
    for i in range(count):
        visit.request.progress(i, count, f"step {i + 1} of {count}")
        data = task.batch(i)
        for number, (key, course) in enumerate(courses.items()):
            visit.request.check()
            counts, scale = number == 0 and i % every == every - 1, course.scale()
            with counter.watching(course.network) if counts else contextlib.nullcontext():
                loss, seconds = visit.timer.once(lambda: course.step(*data))
            steps[key].add(loss=loss.item(), seconds=seconds, scale=scale, skipped=course.scale() < scale, counted=counts)
    for key, course in courses.items():
        visit.request.check()
        steps[key].peak = course.peak(*task.batch(count))
