# SPDX-License-Identifier: Apache-2.0
"""`training-memory`: a training step of the model and plan that the parameters name, run for real.

Two warm-up steps make the optimizer's state and let libraries settle. Then steps are timed with nothing watching, on a
CPU in turn with works that tell how fast it is just then (host_state.py), and two more are recorded allocation by
allocation (events.py), of which the second counts: the profiler sees no end of what it did not see begin, such as
moments that every step makes anew. Between steps nothing of the last one is kept.

The loss is not divided by the number of micro-batches: its scale changes no byte."""
import contextlib
import time

import torch

from . import adapters, machine, models
from .events import Collector
from .host_state import HostState
from .plan import Plan
from .problem import Problem, skipped
from .trace import StepTrace

WARM_UP, RECORDED_STEPS = 2, 2
TIMED_STEPS, TIMED_SECONDS, LEAST_TIMED = 20, 8.0, 3
STATE_EVERY, STATE_SAMPLES = 2, 8  # timed steps between two looks at the processor; of each work at a look


class Loop:
    """The training loop's variables, and one step."""

    def __init__(self, workload, plan, batch, sequence):
        self.workload, self.plan = workload, plan
        self.inputs, self.targets = workload.inputs(batch, sequence, plan.device, plan.dtype)
        if plan.phase != "training":
            self.targets = None  # only a loss reads them
        self.parameters = [p for p in workload.module.parameters() if p.requires_grad]
        self.optimizer = plan.make_optimizer(workload.module)
        self.scaler = plan.make_scaler()
        self.gradient_bytes = 0
        self.output = self.loss = None

    def step(self, region=lambda name: contextlib.nullcontext()):
        """One step; what it computed stays named until forget()."""
        for micro_batch in range(self.plan.accumulation if self.plan.phase == "training" else 1):
            with region(f"forward {micro_batch}"):
                self.forward()
            if self.plan.phase != "training":
                return
            with region(f"backward {micro_batch}"), self.plan.kernels():
                (self.scaler.scale(self.loss) if self.scaler else self.loss).backward()
        with region("optimizer 0"):
            self.update()
        with region("zero_grad 0"):
            self.zero_gradients()

    def forward(self):
        """Names the output and the loss. A model that returns both does so at once: the former ones live until then."""
        gradients = contextlib.nullcontext() if self.plan.phase != "inference" else torch.no_grad()
        workload, keeps = self.workload, self.plan.keeps_logits
        with gradients, self.plan.kernels(), self.plan.autocast():
            if self.plan.phase != "training":
                self.output = workload.forward(self.inputs)
            elif workload.returns_loss and keeps:
                self.output, self.loss = workload.forward_with_loss(self.inputs, self.targets)
            elif workload.returns_loss:
                self.loss = workload.forward_with_loss(self.inputs, self.targets)[1]
            elif keeps:
                self.output = workload.forward(self.inputs)
                self.loss = workload.loss(self.output, self.targets)
            else:
                self.loss = workload.loss(workload.forward(self.inputs), self.targets)

    def forget(self):
        self.output = self.loss = None

    def update(self):
        self.gradient_bytes = sum(p.grad.numel() * p.grad.element_size() for p in self.parameters if p.grad is not None)
        parts = self.optimizer.all() if hasattr(self.optimizer, "all") else [self.optimizer]
        if self.scaler is not None and self.plan.clips:
            for part in parts:
                self.scaler.unscale_(part)
        if self.plan.clips:
            torch.nn.utils.clip_grad_norm_(self.parameters, 1.0)
        if self.optimizer is None:
            return
        if self.scaler is None:
            self.optimizer.step()
            return
        for part in parts:
            self.scaler.step(part)
        self.scaler.update()

    def zero_gradients(self):
        if self.optimizer is not None:
            self.optimizer.zero_grad(set_to_none=self.plan.frees_gradients)
        else:
            for p in self.parameters:
                p.grad = None

    # --- what is kept between steps -----------------------------------------------------------------------------------------
    def optimizers(self):
        """Those of PyTorch, inside ours."""
        if self.optimizer is None:
            return []
        return self.optimizer.all() if hasattr(self.optimizer, "all") else [self.optimizer]

    def masters(self):
        return getattr(self.optimizer, "masters", [])

    def state_bytes(self):
        return sum(tensor_bytes(value) for part in self.optimizers() for state in part.state.values()
                   for value in state.values() if isinstance(value, torch.Tensor) and value.device.type == self.plan.device.type)

    def labels(self):
        """address -> category of tensors that only the loop knows, and of state that the collector may not have seen."""
        found = self.state_labels()
        found.update((tensor.data_ptr(), "input") for tensor in (*self.inputs, self.targets) if tensor is not None)
        found.update((master.data_ptr(), "master") for master in self.masters())
        return found

    def state_labels(self):
        return {value.data_ptr(): "optimizer_state" for part in self.optimizers() for state in part.state.values()
                for value in state.values() if isinstance(value, torch.Tensor)}


def tensor_bytes(tensor):
    return tensor.numel() * tensor.element_size()


def measure(request):
    """The result of a run; request: parameters, device, is_forced, progress(done, total, label), check()."""
    parameters = request.parameters
    plan = Plan(parameters, request.device)
    request.progress(0, 0, "building the model")
    batch, sequence = int(parameters["batch"]), int(parameters.get("sequence", 1))
    workload = guarded(prepared, request, plan, parameters, sequence)
    loop = Loop(workload, plan, batch, sequence)
    timed = Timed(request, plan)
    try:
        warm_up(loop, timed, request)
        timed.run(loop)
        request.progress(timed.done, timed.total, "recording a step")
        trace, reserved = recorded(loop)
    except Problem as problem:
        if problem.code == "run.memory":
            problem.result = partial_result(loop, plan, problem, timed)
        raise
    return result_of(loop, plan, trace, reserved, timed, workload)


def prepared(request, plan, parameters, sequence):
    """The workload on the device, with its adapters, once it is known to fit."""
    check_size(request, plan, parameters, sequence)
    workload = models.build(parameters["model"], parameters.get("described"), plan, sequence)
    count = sum(p.numel() for p in workload.module.parameters())
    if plan.adapters.kind == "none":
        machine.check_room(count * (plan.bytes_per_parameter() - workload_bytes(workload, plan)), plan.device,
                           "the model's gradients and optimizer state", request.is_forced)
    workload.module.to(plan.device)
    workload.module.train(plan.phase != "inference")
    plan.adapters.add(workload.module, plan.precision, plan.device)
    workload.module.train(plan.phase != "inference")
    return workload


def workload_bytes(workload, plan):
    """Per parameter, of what the CPU has taken already."""
    return next(workload.module.parameters()).element_size() if plan.device.type == "cpu" else 0


def check_size(request, plan, parameters, sequence):
    """Before the model is made: by the number of its parameters, which Memscape knows, or PyTorch (2.0) without memory."""
    count = (parameters.get("described") or {}).get("parameters") or counted(parameters, plan, sequence)
    per_parameter = plan.bytes_per_parameter() if plan.adapters.kind == "none" else torch.empty(0, dtype=plan.dtype).element_size()
    machine.check_room(count * per_parameter, plan.device, f"a model of {count / 1e6:,.1f} million parameters in this plan",
                       request.is_forced)


def counted(parameters, plan, sequence):
    if not hasattr(torch, "set_default_device"):
        return 0
    try:
        with torch.device("meta"):
            module = models.build(parameters["model"], parameters.get("described"), plan, sequence).module
    except NotImplementedError:  # a model that reads its own numbers while it is made
        return 0
    return sum(p.numel() for p in module.parameters())


def warm_up(loop, timed, request):
    for step in range(WARM_UP):
        request.progress(0, timed.total, f"warm-up step {step + 1} of {WARM_UP}")
        request.check()
        begin = time.perf_counter()
        guarded(loop.step)
        loop.forget()
        machine.synchronize(loop.plan.device)
        timed.estimate = time.perf_counter() - begin


def guarded(function, *arguments):
    """Out of memory, and what this PyTorch does not have, as problems; other errors as they are."""
    try:
        return function(*arguments)
    except (RuntimeError, MemoryError) as error:
        if "not implemented for" in str(error) or "No available kernel" in str(error):
            raise skipped(f"PyTorch {torch.__version__} cannot run this step: {models.first_line(error)}",
                          "choose another precision or attention")
        if not machine.is_out_of_memory(error):
            raise
        raise Problem("run.memory", f"the memory ran out: {models.first_line(error)}",
                      "choose a smaller batch or sequence, checkpointing=block, or another precision")


class Timed:
    """Steps by the clock. They stop after TIMED_SECONDS, but not before LEAST_TIMED of them."""

    def __init__(self, request, plan):
        self.request, self.plan = request, plan
        self.seconds, self.done, self.total, self.estimate = [], 0, TIMED_STEPS, 0.0
        self.host_state, self.resident = None, None

    def run(self, loop):
        begin = time.perf_counter()
        self.resident = machine.high_water()
        state = HostState() if self.plan.device.type == "cpu" else None  # gone before allocations are recorded
        if self.estimate > 0:
            self.total = max(LEAST_TIMED, min(TIMED_STEPS, int(TIMED_SECONDS / self.estimate)))
        while len(self.seconds) < self.total:
            if len(self.seconds) >= LEAST_TIMED and time.perf_counter() - begin > TIMED_SECONDS:
                break
            self.request.check()
            if state and len(self.seconds) % STATE_EVERY == 0:
                self.look(loop, state)
            started = time.perf_counter()
            guarded(loop.step)
            loop.forget()
            machine.synchronize(self.plan.device)
            self.seconds.append(time.perf_counter() - started)
            self.done = len(self.seconds)
            self.request.progress(self.done, self.total, f"step {self.done} of {self.total}")
        self.host_state = state.limited() if state else None

    def look(self, loop, state):
        """At the processor's state; a step that is not timed fills the caches again."""
        for _ in range(STATE_SAMPLES):
            guarded(state.sample)
        guarded(loop.step)
        loop.forget()


def recorded(loop):
    """Two steps allocation by allocation: the trace of the second, and what is reserved at the end of its phases (CUDA)."""
    device, reserved = loop.plan.device, {}
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    collector = Collector(device, model=loop.workload.module, optimizer=loop.optimizers(), window=RECORDED_STEPS + 1)

    @contextlib.contextmanager
    def region(name):
        with collector.region(name):
            yield
        if device.type == "cuda":
            reserved[name] = torch.cuda.memory_reserved(device)

    unseen = allocated_now(device)
    with collector:
        for _ in range(RECORDED_STEPS):
            labels = loop.labels()
            guarded(loop.step, region)
            collector.step()
            loop.forget()
    recording = collector.recording()
    seen = sum(-(-block.bytes // 512) * 512 for block in recording.existing)
    granularity = 512 if device.type == "cuda" else 1
    trace = StepTrace(recording, labels, max(0, unseen - seen) if unseen else 0, granularity, loop.state_labels())
    trace.notes = recording.notes
    return trace, reserved


def allocated_now(device):
    return torch.cuda.memory_allocated(device) if device.type == "cuda" else 0


# --- the answer ---------------------------------------------------------------------------------------------------------------


def figure(value, unit, label):
    return {"value": value, "unit": unit, "label": label}


def kept_figures(loop):
    module = loop.workload.module
    parameters = list({id(p): p for p in module.parameters()}.values())
    return {
        "parameter_count": figure(sum(map(adapters.element_count, parameters)), "1", "parameters"),
        "weights": figure(sum(map(tensor_bytes, parameters)) + adapters.scale_bytes(module), "B", "weights"),
        "master_weights": figure(sum(map(tensor_bytes, loop.masters())), "B", "master weights"),
        "gradients": figure(loop.gradient_bytes, "B", "gradients"),
        "optimizer_state": figure(loop.state_bytes(), "B", "optimizer state"),
    }


def result_of(loop, plan, trace, reserved, timed, workload):
    is_cuda = plan.device.type == "cuda"
    allocated = torch.cuda.max_memory_allocated(plan.device) if is_cuda else trace.peak
    held = torch.cuda.max_memory_reserved(plan.device) if is_cuda else trace.peak
    figures = kept_figures(loop)
    figures["peak_allocated"] = figure(allocated, "B", "peak allocated")
    figures["peak_reserved"] = figure(held, "B", "peak reserved")
    figures["device_total"] = figure(held + context_bytes(plan.device), "B", "device total")
    if timed.resident and not is_cuda:
        figures["resident"] = figure(timed.resident, "B", "resident, the whole process")
    phases = [{"key": phase, "micro_batch": number, "peak_allocated": peak,
               "reserved": reserved.get(f"{phase} {number}", peak)} for (phase, number), peak in trace.peaks.items()]
    detail = {"trace": trace.to_json(), "phases": phases, "samples": {"step_time": timed.seconds}, "notes": trace.notes,
              "context": context_bytes(plan.device)}
    if timed.host_state:
        detail["host_state"] = timed.host_state
    return {"figures": figures, "series": [], "detail": detail}, machine.describe(plan.device, workload)


def context_bytes(device):
    """What is taken on a GPU outside of PyTorch's allocator, by this process and by others; none on a CPU."""
    if device.type != "cuda":
        return 0
    free, total = torch.cuda.mem_get_info(device)
    return max(0, total - free - torch.cuda.memory_reserved(device))


def partial_result(loop, plan, problem, timed):
    """What is known of a run that ran out of memory."""
    figures = kept_figures(loop)
    if plan.device.type == "cuda":
        figures["peak_allocated"] = figure(torch.cuda.max_memory_allocated(plan.device), "B", "peak allocated")
        figures["peak_reserved"] = figure(torch.cuda.max_memory_reserved(plan.device), "B", "peak reserved")
    figures["fits"] = figure(0, "1", "fits")
    return {"figures": figures, "series": [], "detail": {"samples": {"step_time": timed.seconds}, "problem": problem.message}}
