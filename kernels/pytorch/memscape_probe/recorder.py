# SPDX-License-Identifier: Apache-2.0
"""Records a program's memory into a run file (run_file.py):

    import memscape_probe as mp
    with mp.record("run.memscape-run", model=model, optimizer=optimizer) as r:
        for batch in batches:
            …                                    # forward, backward, optimizer.step()
            with mp.region("vision tower"): …    # a name of your own, where you like
            r.step()                             # a step ends here

The first `steps` steps are recorded, one after the other; on a CPU those that repeat the one before allocation by
allocation without operators, which costs little (events.py); after them the program runs unrecorded, and
the file says what recording cost against those later steps. The file is written when the block ends, also by an
exception, which it holds and which goes on. A file that cannot be written is a message on standard error: the program
goes on. On CUDA the allocator's own history (the last million entries) goes on until the end, so that an
out-of-memory error of a late step is in the file with what was before it."""
import contextlib
import os
import statistics
import sys
import time

import torch

from . import cuda_history, run_file
from .events import Collector

_active = []  # recorders that run, the innermost last


def record(path, model=None, optimizer=None, device=None, steps=10):
    """A context manager; see above. model: nn.Module or None (then the first that is called). optimizer: one, a list
    or None. device: "cpu", "cuda:0"; None: where the model's parameters are. steps: whole steps to record, None: all."""
    return Recorder(path, model, optimizer, device, steps)


def region(name):
    """Labels with `name` what runs inside; does nothing while nothing is recorded."""
    return _active[-1].collector.region(str(name)) if _active else contextlib.nullcontext()


class Recorder:
    READ_EVERY = 10          # steps; the profiler's events are turned into ours then
    MOST_EVENTS = 2_000_000  # some hundred MB

    def __init__(self, path, model=None, optimizer=None, device=None, steps=10):
        self.path = os.fspath(path)
        folder = os.path.dirname(os.path.abspath(self.path))
        if not os.path.isdir(folder) or not os.access(folder, os.W_OK):
            raise OSError(f"{self.path} cannot be written: {folder} is no folder that may be written to")
        if steps is not None and (not isinstance(steps, int) or steps < 1):
            raise ValueError(f"steps is {steps!r}: a whole number from 1 on, or None for all")
        self.device = torch.device(device) if device is not None else _device_of(model)
        self.steps_wanted = steps
        self.collector = Collector(self.device, model, optimizer, window=self.READ_EVERY, repeats=True)
        self.collector.hooks.on_step = self._optimizer_stepped
        self.written = False
        self.error = None
        self.on_optimizer_step = None  # of `run`
        self._explicit = 0
        self._by_optimizer = 0
        self._is_collecting = False
        self._recorded_s, self._repeated_s, self._plain_s = [], [], []
        self._last = None
        self._notes = []

    # --- what the program calls -------------------------------------------------------------------
    def __enter__(self):
        if self.device.type == "cuda":
            cuda_history.start()
        self.collector.start()
        self._is_collecting = True
        _active.append(self)
        self._last = time.perf_counter()
        return self

    def step(self):
        """A step ends here."""
        self._explicit += 1
        self._ended(self.collector.step, self._explicit)

    def __exit__(self, kind, value, traceback):
        if self in _active:
            _active.remove(self)
        if kind is not None:
            self.error = f"{kind.__name__}: {value}"
        self._stop_collecting()
        self.save(self.path)
        return False

    def save(self, path):
        """Writes the file; says so, or what went wrong, on standard error. True when it was written."""
        try:
            run = self.contents()
            run_file.write(path, run)
        except Exception as error:
            print(f"memscape: {path} was not written: {error}. Make room or choose another place: "
                  f"recorder.save(path) tries again while the program runs.", file=sys.stderr)
            return False
        finally:
            if self.device.type == "cuda":
                cuda_history.stop()
        self.written = True
        told = run["memscape"]
        print(f"memscape: {path}: {len(told['steps'])} steps, {len(run['device_traces'][0])} events. "
              + " ".join(told["notes"]), file=sys.stderr)
        return True

    def contents(self):
        """The run file as a dictionary."""
        recording = self.collector.recording()
        notes = recording.notes + self._notes + [self._cost(recording)]
        if self.device.type == "cuda":
            return run_file.of_cuda(cuda_history.snapshot(), recording, notes, self.error)
        return run_file.of_cpu(recording, notes, self.error)

    # --- within -----------------------------------------------------------------------------------
    def _optimizer_stepped(self):
        """Steps of the optimizer end the program's when it does not say r.step() itself."""
        self._by_optimizer += 1
        if self._explicit == 0:
            self._ended(self.collector.optimizer_step, self._by_optimizer)
        if self.on_optimizer_step is not None:
            self.on_optimizer_step(self._by_optimizer)

    def _ended(self, tell, steps):
        times = self._plain_s
        reading_s = self.collector.reading_s
        if self._is_collecting:
            times = self._repeated_s if self.collector.is_repeating else self._recorded_s
            tell()
        times.append(time.perf_counter() - self._last - (self.collector.reading_s - reading_s))
        if self._is_collecting and self.steps_wanted is not None and steps >= self.steps_wanted:
            self._stop_collecting()
        if self._is_collecting and len(self.collector.stream.events) > self.MOST_EVENTS:
            self._notes.append(f"Recording ended after {steps} steps: more than {self.MOST_EVENTS} events.")
            self._stop_collecting()
        self._last = time.perf_counter()

    def _stop_collecting(self):
        if self._is_collecting:
            self._is_collecting = False
            self.collector.stop()

    def _cost(self, recording):
        """What recording took, in words."""
        reading = f"turning events into the file took {self.collector.reading_s * 1e3:.0f} ms between steps"
        if len(self._recorded_s) < 3:
            return f"Cost of recording: unknown, fewer than 3 steps; {reading}."
        plain = statistics.median(self._plain_s) if len(self._plain_s) >= 3 else None

        def took(times):
            step = statistics.median(times)
            longer = f" ({(step / plain - 1) * 100:+.0f} %)" if plain else ""
            return f"{step * 1e3:.1f} ms{longer}"

        said = f"A step took {took(self._recorded_s[1:])} while recorded"
        if len(self._repeated_s) >= 3:
            said += f", {took(self._repeated_s)} while recorded as a repetition"
        if plain:
            return f"{said}, {plain * 1e3:.1f} ms after; {reading}."
        return f"{said}; what of it is recording is unknown: no 3 steps ran after it; {reading}."


def _device_of(model):
    if model is not None:
        first = next(model.parameters(), None)
        if first is not None:
            return first.device
    if torch.cuda.is_available():
        return torch.device("cuda", torch.cuda.current_device())
    return torch.device("cpu")
