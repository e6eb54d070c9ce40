# SPDX-License-Identifier: Apache-2.0
"""What a visit of `attention`, `layout` and `precision` is: one point of a sweep in one pass, measured in turn and answered as
samples in seconds. Which points are visited when, what becomes of the samples and their grade is Memscape's business
(kernels/pytorch/sampled_run.cpp).

What PyTorch computes is held against an independent calculation before it is timed, once in the life of a worker."""
import contextlib

import torch

from . import machine
from .problem import Problem, first_line, skipped
from .timer import Pacing, Timer

FEWEST = 2  # samples of a visit, however long one takes: six in all, the least that has a grade
CHECKED = {}  # what was checked by this worker -> what was found
NOTED = set()  # codes of notes that it has sent


class Visit:
    """A request's `visit`: {"pass", "samples", "seconds", "wall", "cache_bytes"}, as the program paces its own kernels."""

    def __init__(self, request):
        words = request.parameters["visit"]
        self.request, self.device = request, torch.device(request.device)
        self.pacing = Pacing(int(words["samples"]), float(words["seconds"]), float(words["wall"]), FEWEST)
        self.timer = Timer(request.device, int(words.get("cache_bytes", 0)))
        if int(words.get("pass", 0)) == 0:
            self.timer.spin()

    def samples(self, works, cold=False, before=0):
        """Samples of one launch in seconds by name, and the launches in a sample. Cold ones are single launches."""
        batches = {}
        for name, work in works.items():
            self.request.check()
            seconds = self.timer.warm_up(work)
            batches[name] = 1 if cold else self.timer.batch_of(seconds)
        return self.timer.in_turn(works, batches, cold, self.pacing, self.request.check, before), batches

    def check(self, name, compare):
        """compare() answers the worst error and the largest that is right, in the same unit."""
        if name not in CHECKED:
            worst, bound = compare()
            if not worst <= bound:  # a not-a-number neither
                raise Problem("check.failed", f"{name}: PyTorch is off by {worst:.3g}, and {bound:.3g} would be rounding",
                              "this PyTorch computes something else here: choose another version of it")
            CHECKED[name] = f"worst error {worst:.3g} of {bound:.3g}"
        return {"kernel": name, "check": CHECKED[name]}

    def check_room(self, needed, what):
        machine.check_room(needed, self.device, what, self.request.is_forced)

    def answer(self, samples, **detail):
        detail["samples"] = samples
        return {"figures": {}, "series": [], "detail": detail}, machine.describe(self.device)


def note_once(request, code, text):
    """A warning; a sweep would say it at every visit."""
    if code not in NOTED:
        NOTED.add(code)
        request.note("warning", code, text)


@contextlib.contextmanager
def threads_of(device, count):
    """PyTorch's threads within, on a CPU."""
    before = torch.get_num_threads()
    if device.type == "cpu":
        torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextlib.contextmanager
def refusing(what, hint, place):
    """PyTorch's own refusals within, as run.skipped with the parameter and a remedy (hint() makes it); memory that ran out too."""
    try:
        yield
    except (RuntimeError, AttributeError, NotImplementedError, TypeError, ValueError, MemoryError) as error:
        if machine.is_out_of_memory(error):
            raise Problem("run.memory", f"the memory ran out: {first_line(error)}", "choose smaller sizes, or close other programs")
        raise skipped(f"{what}: PyTorch {torch.__version__} refuses it here: {first_line(error)}", hint(), place)


def one_version(parameters, what):
    """Memscape's kernels have numbered versions, PyTorch has one."""
    version = int(parameters.get("version", 0))
    if version:
        raise skipped(f"version={version} names one of Memscape's own {what}; PyTorch has one of its own",
                      "choose version=0, or the device without pytorch:", "version")
