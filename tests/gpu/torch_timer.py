# SPDX-License-Identifier: Apache-2.0
"""PyTorch timed as memscape-cli times its own kernels (kernels/cuda/common/sampler.cpp, session.cpp, pacing.h), so that a ratio compares
kernels and not protocols:

  warm-up  0.4 s of a light spin, then at least 3 launches and 25 ms of each work
  sample   [cold: flush,] wait; the stream is held until everything is queued; event, `batch` launches, event; wait
  flush    max(256 MB, 3 L2) are written, at most a quarter of the free memory; then 2 L2 of clean memory are read, so that no dirty
           line is written back during the sample
  stop     at least 10 samples and 0.1 s of them, at most 2 s by the wall clock, of every work; several works in turn
  answer   the median

The stream is held by a kernel that spins for longer than queueing took; a sample that was not held is taken again. On the CPU
(--check) the same loop runs by the wall clock."""
import os
import statistics
import time

import torch

MEGA = 1_000_000
CYCLES = 2.0e9  # per second, more than any GPU's clock: a spin lasts at least as long as asked
LEAST_SAMPLES, LEAST_SECONDS, WALL_SECONDS = 10, 0.1, 2.0
HELD_LIMIT = 0.2  # s


def flush_bytes(l2_bytes, free_bytes):
    return min(max(256 * MEGA, 3 * l2_bytes), free_bytes // 4)


def batch_for(seconds, short=50e-6, together=200e-6, limit=200):
    """Launches in one sample, as kernels/cuda/common/pacing.h counts them; only for works that memscape-cli does not count itself."""
    if not seconds > 0:
        return limit
    return 1 if seconds >= short else min(limit, max(1, -int(-together // seconds)))


class Timer:
    def __init__(self, device="cuda"):
        self.device = device
        self.held = 1e-3  # s
        self.retaken = 0
        self.dirty = None
        if device == "cuda":
            self.begin, self.end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)

    def spin(self, seconds=0.4):
        """Leaves the idle clock, in pieces that hold no display."""
        pieces = max(1, round(seconds / 0.05)) if self.device == "cuda" else 0
        for _ in range(pieces):
            torch.cuda._sleep(int(0.05 * CYCLES))
            torch.cuda.synchronize()

    def flush(self):
        if self.device != "cuda":
            return
        if self.dirty is None:
            l2 = torch.cuda.get_device_properties(0).L2_cache_size
            self.dirty = torch.empty(flush_bytes(l2, torch.cuda.mem_get_info()[0]), dtype=torch.uint8, device="cuda")
            self.clean = torch.zeros(max(1, 2 * l2 // 4), dtype=torch.float32, device="cuda")
        self.dirty.fill_(0x5a)
        self.clean.sum()

    def sample(self, work, cold=False, batch=1):
        """Seconds of one launch."""
        if cold:
            self.flush()
        if self.device != "cuda":
            began = time.perf_counter()
            for _ in range(batch):
                work()
            return (time.perf_counter() - began) / batch
        torch.cuda.synchronize()
        torch.cuda._sleep(int(self.held * CYCLES))
        began = time.perf_counter()
        self.begin.record()
        for _ in range(batch):
            work()
        self.end.record()
        queued = time.perf_counter() - began
        torch.cuda.synchronize()
        if queued > self.held and self.held < HELD_LIMIT:
            self.held = min(HELD_LIMIT, 2 * queued)
            self.retaken += 1
            return self.sample(work, cold, batch)
        return self.begin.elapsed_time(self.end) * 1e-3 / batch

    def warm_up(self, work):
        """The least seconds of one launch, once it is warm."""
        began, best, launches = time.perf_counter(), float("inf"), 0
        while launches < 3 or time.perf_counter() - began < 25e-3:
            best = min(best, self.sample(work))
            launches += 1
        return best

    def medians(self, works, cold=False, batches=None, least_samples=LEAST_SAMPLES, least_seconds=LEAST_SECONDS):
        """Median seconds of each of the works by name, their samples taken in turn. `batches`: launches in a sample by name; what
        is not named is counted from the warm-up. A work that fails is left out and named in the errors."""
        errors, counts, taken = {}, dict(batches or {}), {}
        for name, work in works.items():
            try:
                best = self.warm_up(work)
                counts.setdefault(name, batch_for(best))
                taken[name] = []
            except (RuntimeError, ValueError, NotImplementedError) as error:
                errors[name] = first_line(error)
        began = time.perf_counter()
        while taken and any(len(values) < least_samples or sum(values) * counts[name] < least_seconds
                            for name, values in taken.items()):
            for name, values in taken.items():
                values.append(self.sample(works[name], cold, counts[name]))
            if time.perf_counter() - began > WALL_SECONDS and all(len(values) >= 3 for values in taken.values()):
                break
        return {name: statistics.median(values) for name, values in taken.items()}, errors, counts

    def describe(self):
        return {"torch": torch.__version__, "cuda": torch.version.cuda, "samples_taken_again": self.retaken,
                "device": torch.cuda.get_device_name(0) if self.device == "cuda" else "CPU"}


def plain_cpu():
    """For --check: one thread, and none of the instructions (AMX) that virtual machines promise and do not have."""
    os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_VNNI")  # read at the first product
    torch.set_num_threads(1)


def first_line(error):
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def has_gpu():
    return torch.cuda.is_available()
