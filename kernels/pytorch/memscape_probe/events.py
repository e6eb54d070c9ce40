# SPDX-License-Identifier: Apache-2.0
"""Every allocation and free on one device, in order, with what it was for.

    from memscape_probe.events import Collector
    with Collector("cpu", model=model, optimizer=optimizer) as collector:
        for batch in batches:
            train_one_step(batch)
            collector.step()                 # one step ends here
    recording = collector.recording()
    for e in recording.events:               # Event: action, address, bytes, time_us, module, operator, phase, step,
        ...                                  # category, region, name
    recording.existing                       # blocks that were alive before: Block(address, bytes, category, name …)
    recording.steps                          # Step(index, first, last): events[first:last] are the step's
    recording.difference                     # bytes between the events' sum and the profiler's own total: 0

`model` and `optimizer` may be None: then the first module that is called at top level and has parameters is the
model. `with collector.region("vision tower"):` labels what runs inside. Collect what a plain loop does; steps that
must not be seen (warm-up) run before `with`.

How. PyTorch's profiler (Kineto) reports each allocation with address, size and running total, inside the tree of
operators that ran (`experimental_event_tree`, torch ≥ 1.13). What Python knows, the module that runs, backward's begin
and end, whose address a gradient has, goes into the same tree as a *tick*: a call of an operator that nothing else
calls and that allocates nothing (1 µs). The n-th tick of the tree means the n-th entry of a list. So order never
depends on two clocks.

A backward operator belongs to the module of the forward operator with the same sequence number (autograd's own
numbering). An operator is the innermost that does more than make an empty tensor.

Bytes are those asked of the CPU allocator; on CUDA the caching allocator's block sizes (multiples of 512 B).

Repeated steps. Of that, operators cost most: about a microsecond each, and there are more of them than allocations. A
collector with `repeats=True` (on a CPU; torch ≥ 2.0, before it the ticks of such steps allocate) records steps whole
until one is like the step before it in every event and label, three to five of them. From there on it records
allocations and frees alone, and each step whose events are, one after the other, as large as those of the last whole
step has the labels of that: other operators with the same bytes in the same order are taken for it. At the first event
that is not, what comes after it stays without labels, and recording whole begins again and lasts.

Left out, on a CPU: allocations of threads other than the one that collects (data loaders, pin_memory): the profiler
does not report them; tensors that only C++ holds when collecting begins. A tensor that existed before and dies is
seen when the step ends (profiler reports no free of what it did not see allocated).
"""
import collections
import contextlib
import gc
import threading
import time

import torch
from torch._C._profiler import (ProfilerActivity, ProfilerConfig, ProfilerState, RecordScope, _EventType, _ExperimentalConfig,
                               _ExtraFields_OutOfMemory)
from torch.autograd import _disable_profiler, _enable_profiler, _prepare_profiler
from torch.autograd.profiler import record_function

from .hooks import Hooks
from .storages import address_of, bytes_of, tensors_alive, watch

Event = collections.namedtuple(
    "Event", "action address bytes time_us module operator phase step category region name")
Step = collections.namedtuple("Step", "index first last begin_us end_us")
Block = collections.namedtuple("Block", "address bytes category name module")

TICK = "aten::is_vulkan_available"
TICKS_OF_REPEATED = {"gone", "step", "optimizer_step", "end", "region", "region_end"}
TRIED = range(3, 6)  # steps after which the last two are compared
# Make memory and nothing else: the operator that called them is the one to name.
ALLOCATORS = {"aten::empty", "aten::empty_like", "aten::empty_strided", "aten::new_empty", "aten::new_empty_strided",
              "aten::resize_", "aten::_resize_output_"}
NODE = "autograd::engine::evaluate_function: "
OPTIMIZER = ("Optimizer.step#", "Optimizer.zero_grad#")


class Recording:
    """What was collected. `existing` were alive before the first event; `alive` are at the end."""

    def __init__(self, device, events, existing, alive, steps, difference, notes):
        self.device, self.events, self.existing, self.alive = device, events, existing, alive
        self.steps, self.difference, self.notes = steps, difference, notes


class Collector:
    def __init__(self, device="cpu", model=None, optimizer=None, window=1, repeats=False):
        """window: steps between two readings of the profiler, which take time outside of the steps. repeats: record
        steps that repeat the one before without operators; see above."""
        self.device = torch.device(device)
        self.thread = None
        self.ticks = []
        self.hooks = Hooks(self._tick, model, optimizer)
        self.stream = _Stream()
        self.window = window
        self.reading_s = 0.0
        self._may_repeat = repeats and self.device.type == "cpu" and int(torch.__version__.split(".")[0]) >= 2
        self._steps, self._is_first_repeated = 0, False
        self._since_reading = 0
        self._config = None

    @property
    def is_repeating(self):
        """Whether the step that runs is recorded without operators."""
        return self.stream.pattern is not None

    # --- what the program calls -------------------------------------------------------------------
    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *error):
        self.stop()

    def start(self):
        if torch.autograd._profiler_enabled():
            raise RuntimeError("a torch.profiler runs already, and there can be one at a time: end it first")
        self.thread = threading.get_ident()
        known = self.hooks.known_tensors()
        for tensor in tensors_alive(self.device):
            address, size = address_of(tensor), bytes_of(tensor)
            if address and size:
                category, name = known.get(address, ("unknown", None))
                self.stream.add_existing(address, size, category, name, watch(tensor))
        self._profile()
        self.hooks.install()

    def stop(self):
        """Ends collecting; again does nothing."""
        if self._config is None:
            return
        self.hooks.remove()
        self._tick("gone", self.stream.expired())
        self._tick("end")
        self._read()

    def step(self):
        """The step that runs ends here; the next one begins."""
        if self._config is None:
            return
        self._tick("gone", self.stream.expired())
        self._tick("step")
        self._since_reading += 1
        self._read_when_due()

    def optimizer_step(self):
        """An optimizer's step ended: a step's end where the program calls step() nowhere."""
        self._tick("optimizer_step")
        self._since_reading += 1
        self._read_when_due()

    @contextlib.contextmanager
    def region(self, name):
        self._tick("region", name)
        try:
            yield
        finally:
            self._tick("region_end")

    def recording(self):
        self.stop()
        s = self.stream
        notes = list(s.notes)
        if s.repeated:
            notes.append(f"{s.repeated} steps repeated the one before them, allocation by allocation: they have its "
                         f"labels, and only their allocations and frees were recorded.")
        if s.difference:
            notes.append(f"the events' sum differs from the profiler's total by {s.difference} B")
        return Recording(self.device, *s.finished(), s.difference, notes)

    # --- within -----------------------------------------------------------------------------------
    def _tick(self, kind, value=None):
        if self._config is None or threading.get_ident() != self.thread:
            return
        if not self.is_repeating:
            self.ticks.append((kind, value))
            torch.is_vulkan_available()
        elif kind in TICKS_OF_REPEATED:
            self.ticks.append((kind, value))
            with record_function(TICK):
                pass

    def _read_when_due(self):
        self._steps += 1
        tries = self._may_repeat and self._steps in TRIED and not self.is_repeating
        if self._since_reading >= self.window or tries or self._is_first_repeated:
            self._is_first_repeated = False
            self._read()
            if tries and self.stream.begin_repeating():
                self._is_first_repeated = True
                self.hooks.unwatch()
            elif self.is_repeating and self.stream.differs:
                self._may_repeat = False
                self.stream.end_repeating()
                self.hooks.watch()
            self._profile()

    def _profile(self):
        # Repeated steps: what Python names, which is our ticks and the optimizers' steps.
        scopes = {RecordScope.USER_SCOPE} if self.is_repeating else set()
        self._config = ProfilerConfig(ProfilerState.KINETO, False, True, False, False, False, _ExperimentalConfig())
        _prepare_profiler(self._config, {ProfilerActivity.CPU})
        _enable_profiler(self._config, {ProfilerActivity.CPU}, scopes)

    def _read(self):
        begin = time.perf_counter()
        result = _disable_profiler()
        self._config = None
        self._since_reading = 0
        ticks, self.ticks = self.ticks, []
        with _without_gc():  # nothing below is garbage, and there is much of it
            self.stream.take(_rows(result.experimental_event_tree(), self.device), ticks)
        self.reading_s += time.perf_counter() - begin


@contextlib.contextmanager
def _without_gc():
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


# --- the profiler's tree to rows in order of time -------------------------------------------------------------
ALLOCATION, TICKED, OPERATOR, OPTIMIZER_BEGIN, OPTIMIZER_END, OUT_OF_MEMORY = range(6)


def _is_on(device, wanted):
    return device.type == wanted.type and (wanted.index is None or wanted.index == (device.index or 0))


def _rows(roots, device):
    """(time in ns, kind, …) of allocations and ticks, of operators with a sequence number, of optimizer steps."""
    rows = []
    todo = [(root, None, None) for root in reversed(roots)]
    while todo:
        event, operator, node = todo.pop()
        at, tag, fields = event.start_time_ns, event.tag, event.extra_fields
        if tag == _EventType.Allocation:
            if _is_on(fields.device, device):
                rows.append((at, ALLOCATION, fields.ptr, fields.alloc_size, fields.total_allocated, operator, node))
            continue
        if isinstance(fields, _ExtraFields_OutOfMemory):
            rows.append((at, OUT_OF_MEMORY, 0, fields.alloc_size, fields.total_allocated, operator, node))
            continue
        if tag == _EventType.TorchOp:
            name, number = event.name, fields.sequence_number
            if name == TICK:
                rows.append((at, TICKED))
                continue
            if name.startswith(NODE):
                operator, node = name[len(NODE):], number
            elif name.startswith(OPTIMIZER):
                rows.append((at, OPTIMIZER_BEGIN))
                if event.end_time_ns >= at:  # else it runs still
                    rows.append((event.end_time_ns, OPTIMIZER_END))
            elif fields.scope != RecordScope.USER_SCOPE:
                if number >= 0 and fields.scope == RecordScope.FUNCTION:
                    rows.append((at, OPERATOR, number))
                if operator is None or name not in ALLOCATORS:
                    operator = name[6:] if name.startswith("aten::") else name
        todo += [(child, operator, node) for child in reversed(event.children)]
    rows.sort(key=lambda row: row[0])
    return rows


# --- rows to labelled events ----------------------------------------------------------------------------------
class _Live:
    """A block; what it was for may be known only later."""
    __slots__ = ("address", "bytes", "phase", "category", "name", "module", "survives", "existed", "watched", "like")

    def __init__(self, address, size, phase, module, existed=False, category=None, name=None, watched=None):
        self.address, self.bytes, self.phase, self.module = address, size, phase, module
        self.category, self.name, self.existed, self.watched = category, name, existed, watched
        self.survives = False
        self.like = None  # the block of the last whole step whose labels it has

    def settled(self):
        if self.category is None:
            return "temporary" if self.phase != "other" else "unknown"
        return self.category


class _Stream:
    """Keeps the state of a program along its rows: what lives, which module, phase and step it is in."""

    def __init__(self):
        self.live = {}          # address -> _Live
        self.existing = []      # _Live that were there before
        self.events = []        # [action, _Live, time_us, module, operator, phase, step, region]
        self.steps = []         # Step
        self.candidates = []    # (events, time in us) where an optimizer's step ended
        self.began_us = self.begin_us = None
        self.notes = []
        self.difference = 0     # profiler's change minus ours
        self.modules, self.regions = [], []
        self.phase = "other"
        self.optimizing = 0
        self.depth_at_backward = 0
        self.index, self.first = 0, 0
        self.made = []          # of this step's forward
        self.had_backward = False
        self.module_of = {}     # sequence number -> module
        self.now = 0
        self.total = None
        self.ends = []          # events at the end of each step
        self.pattern = None     # events of the last whole step, while steps repeat it
        self.place = 0          # of the step's next event in it
        self.differs = False
        self.repeated = 0       # steps

    def add_existing(self, address, size, category, name, watched):
        if address not in self.live:
            module = name.rpartition(".")[0] if name and category in ("parameter", "gradient") else None
            block = _Live(address, size, "other", module, True, category, name, watched)
            self.live[address] = block
            self.existing.append(block)

    def expired(self):
        """Addresses of blocks from before that have died since."""
        return [b.address for b in self.existing
                if b.watched is not None and b.watched.expired() and self.live.get(b.address) is b]

    def take(self, rows, ticks):
        waiting = iter(ticks)
        self.total, self.optimizing = None, 0  # an optimizer's step may end its own reading
        for row in rows:
            self.now, kind = row[0] // 1000, row[1]
            if self.began_us is None:
                self.began_us = self.begin_us = self.now
            if kind == ALLOCATION:
                self._allocation(*row[2:])
            elif kind == TICKED:
                name, value = next(waiting)
                getattr(self, "_on_" + name)(value)
            elif kind == OPERATOR:
                self.module_of[row[2]] = self.modules[-1] if self.modules else None
            elif kind == OUT_OF_MEMORY:
                self._add("oom", _Live(0, row[3], self._phase(), None), row[5], row[6])
            else:
                self.optimizing += 1 if kind == OPTIMIZER_BEGIN else -1
        self.module_of.clear()

    def _phase(self):
        return "optimizer" if self.optimizing else self.phase

    def _add(self, action, block, operator, node):
        module = self.modules[-1] if self.modules else None
        if node is not None and self.phase == "backward" and not self._is_recomputing():
            module = self.module_of.get(node)
        event = [action, block, self.now, module, operator, self._phase() if node is None else "backward", self.index,
                 self.regions[-1] if self.regions else None]
        self.events.append(event)
        return event

    def _is_recomputing(self):
        return len(self.modules) > self.depth_at_backward

    def _allocation(self, address, size, total, operator, node):
        if self.total is not None:
            self.difference += total - self.total - size
        self.total = total
        if size > 0:
            if address in self.live:  # its free was not seen: another thread's, or a block from before
                self._repeat(self._free(address, None, None))
            block = _Live(address, size, None, None)
            event = self._add("alloc", block, operator, node)
            self._repeat(event)
            block.module, block.phase = event[3], event[5]
            self.live[address] = block
            if block.phase == "forward":
                self.made.append(block)
        else:
            if address not in self.live:  # allocated while an earlier profiler ran
                self.add_existing(address, -size, "unknown", None, None)
            self._repeat(self._free(address, operator, node))

    def _free(self, address, operator, node):
        return self._add("free", self.live.pop(address), operator, node)

    # --- steps that repeat the one before -----------------------------------------------------------
    def begin_repeating(self):
        """True when the last two steps were alike."""
        first, middle, last = self.ends[-3:]
        alike = [[(e[0], e[1].bytes, *e[3:6], e[7]) for e in step]
                 for step in (self.events[first:middle], self.events[middle:last])]
        if alike[0] == alike[1] and alike[0]:
            self.pattern, self.place = self.events[middle:last], 0
        return self.pattern is not None

    def end_repeating(self):
        self.pattern = None
        self.modules.clear()
        self.made, self.phase = [], "other"

    def _repeat(self, event):
        """Gives an event the labels of the one in its place."""
        if self.pattern is None or self.differs:
            return
        like = self.pattern[self.place] if self.place < len(self.pattern) else None
        self.place += 1
        if like is None or (like[0], like[1].bytes) != (event[0], event[1].bytes):
            self._differ()
            return
        event[3:6], event[7] = like[3:6], like[7]
        if event[0] == "alloc":
            event[1].like = like[1]

    def _differ(self):
        self.differs = True
        step = self.index or len(self.candidates)
        self.notes.append(f"Step {step} (from 0) differs from the one before it: what it did from there on has "
                          f"no labels until recording whole began again.")

    def _ended(self):
        if self.pattern is not None and not self.differs:
            if self.place == len(self.pattern):
                self.repeated += 1
            else:
                self._differ()
        self.ends.append(len(self.events))
        self.place = 0

    # --- ticks ------------------------------------------------------------------------------------
    def _on_module(self, path):
        if not self.modules and self.phase == "other":
            self.phase = "forward"
        self.modules.append(path)

    def _on_module_end(self, _):
        if self.modules:
            self.modules.pop()
        if not self.modules:
            for block in self.made:
                block.survives = self.live.get(block.address) is block

    def _on_region(self, name):
        self.regions.append(name)

    def _on_region_end(self, _):
        if self.regions:
            self.regions.pop()

    def _on_backward(self, _):
        self.phase, self.had_backward, self.depth_at_backward = "backward", True, len(self.modules)
        for block in self.made:
            if block.category is None and self.live.get(block.address) is block:
                block.category = "activation"
        self.made = []

    def _on_backward_end(self, _):
        del self.modules[self.depth_at_backward:]
        self.phase = "forward" if self.modules else "other"
        self.depth_at_backward = 0

    def _on_label(self, value):
        category, named = value
        for address, name in named.items():
            block = self.live.get(address)
            if block is None or block.category not in (None, "unknown", "activation"):
                continue
            if category != "input" or (block.phase == "other" and block.category != "activation"):
                block.category, block.name = category, name
                if block.module is None and name and category == "gradient":
                    block.module = name.rpartition(".")[0]

    def _on_gone(self, addresses):
        for address in addresses:
            if address in self.live and self.live[address].existed:
                self._free(address, None, None)

    def _on_step(self, _):
        self._ended()
        self._end_step()
        self.index += 1

    def _on_optimizer_step(self, _):
        self._ended()
        self.candidates.append((len(self.events), self.now))

    def _on_end(self, _):
        if self._has_work(self.first, len(self.events)):
            self._end_step()

    def _has_work(self, first, last):
        """More than what is left over when the last step has ended."""
        return any(event[5] in ("forward", "backward") for event in self.events[first:last])

    def _end_step(self):
        if not self.had_backward:
            for block in self.made:
                if block.category is None and block.survives:
                    block.category = "activation"
        self.made, self.had_backward, self.phase = [], False, "other"
        self.modules.clear()
        self.steps.append(Step(self.index, self.first, len(self.events), self.begin_us, self.now))
        self.first, self.begin_us = len(self.events), self.now

    def _split_by_optimizer(self):
        """Nothing called step(): the optimizer's steps are the program's."""
        if self.index or not self.candidates:
            return
        begin, begin_us, self.steps = 0, self.began_us, []
        for index, (end, end_us) in enumerate(self.candidates + [(len(self.events), self.now)]):
            if index < len(self.candidates) or self._has_work(begin, end):
                self.steps.append(Step(index, begin, end, begin_us, end_us))
            for event in self.events[begin:end]:
                event[6] = index
            begin, begin_us = end, end_us

    # --- the end ----------------------------------------------------------------------------------
    def finished(self):
        self._split_by_optimizer()
        for event in self.events:
            block = event[1]
            if block.like is not None:  # known by now
                block.category, block.name, block.module = block.like.settled(), block.like.name, block.like.module

        def plain(b):
            return Block(b.address, b.bytes, b.settled(), b.name, b.module)
        events = [Event(action, b.address, b.bytes, now, module if module is not None else b.module, operator, phase,
                        step, b.settled(), region, b.name)
                  for action, b, now, module, operator, phase, step, region in self.events]
        return (events, [plain(b) for b in self.existing], [plain(b) for b in self.live.values()],
                self.steps)
