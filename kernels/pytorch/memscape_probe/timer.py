# SPDX-License-Identifier: Apache-2.0
"""PyTorch timed as memscape-cli times its own kernels (kernels/cuda/common/sampler.cpp, session.cpp, pacing.h; kernels/host), so that a
ratio compares kernels and not protocols:

  warm-up  a GPU: 0.4 s of a light spin (spin()), then at least 3 launches and 25 ms of each work; a CPU: 25 ms, one launch at least
  sample   [cold: flush,] wait; the stream is held until everything is queued; event, `batch` launches, event; wait
  flush    a GPU: max(256 MB, 3 L2) are written, at most a quarter of the free memory; then 2 L2 of clean memory are read, so that no
           dirty line is written back during the sample. A CPU: its threads read twice the largest cache, 4 MiB each at least
  stop     at least 10 samples and 0.1 s of them, at most 2 s by the wall clock, of every work; several works in turn

The stream is held by a kernel that spins for longer than queueing took; a sample that was not held is taken again. On a CPU the same
loop runs by time.perf_counter_ns(). Left out: stopping sooner or later by the noise, as the kernels' own rule does (stopping.h)."""
import collections
import os
import statistics
import time

import torch

from .problem import first_line

MEGA = 1_000_000
CYCLES = 2.0e9  # per second, more than any GPU's clock: a spin lasts at least as long as asked
HELD_LIMIT = 0.2  # s
CPU_SHORTEST = 200e-6  # s: shorter work is repeated within a sample (kernels/host/session.h)

# Of one call: samples and seconds of them that each work needs, seconds that all may take, and the fewest samples even then.
Pacing = collections.namedtuple("Pacing", "samples seconds wall fewest", defaults=(3,))
STANDARD = Pacing(10, 0.1, 2.0)


def flush_bytes(l2_bytes, free_bytes):
    return min(max(256 * MEGA, 3 * l2_bytes), free_bytes // 4)


def batch_for(seconds, short=50e-6, together=200e-6, limit=200):
    """Launches in one sample, as kernels/cuda/common/pacing.h counts them; only for works that memscape-cli does not count itself."""
    if not seconds > 0:
        return limit
    return 1 if seconds >= short else min(limit, max(1, -int(-together // seconds)))


class Timer:
    def __init__(self, device="cuda", cache_bytes=0):
        """cache_bytes: of the largest cache of a CPU; 0: a cold sample of a CPU flushes nothing."""
        self.device, self.cache_bytes = str(device), cache_bytes
        self.is_cuda = self.device.startswith("cuda")
        self.held = 1e-3  # s
        self.retaken = 0
        self.dirty = self.clean = None
        if self.is_cuda:
            torch.cuda.set_device(self.device)
            self.begin, self.end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)

    def spin(self, seconds=0.4):
        """Leaves the idle clock, in pieces that hold no display."""
        pieces = max(1, round(seconds / 0.05)) if self.is_cuda else 0
        for _ in range(pieces):
            torch.cuda._sleep(int(0.05 * CYCLES))
            torch.cuda.synchronize()

    def flush(self):
        if not self.is_cuda:
            self.flush_cpu()
            return
        if self.dirty is None:
            l2 = torch.cuda.get_device_properties(self.device).L2_cache_size
            self.dirty = torch.empty(flush_bytes(l2, torch.cuda.mem_get_info()[0]), dtype=torch.uint8, device=self.device)
            self.clean = torch.zeros(max(1, 2 * l2 // 4), dtype=torch.float32, device=self.device)
        self.dirty.fill_(0x5a)
        self.clean.sum()

    def flush_cpu(self):
        if not self.cache_bytes:
            return
        if self.clean is None:
            self.clean = torch.zeros(max(2 * self.cache_bytes, (4 << 20) * torch.get_num_threads()) // 4)
        self.clean.sum()

    def sample(self, work, cold=False, batch=1):
        """Seconds of one launch."""
        if cold:
            self.flush()
        if not self.is_cuda:
            began = time.perf_counter_ns()
            for _ in range(batch):
                work()
            return (time.perf_counter_ns() - began) * 1e-9 / batch
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

    def once(self, work):
        """What the work answers, and the seconds of this launch, which nothing holds back: it may ask the GPU for a number."""
        if not self.is_cuda:
            began = time.perf_counter_ns()
            answer = work()
            return answer, (time.perf_counter_ns() - began) * 1e-9
        torch.cuda.synchronize()
        self.begin.record()
        answer = work()
        self.end.record()
        torch.cuda.synchronize()
        return answer, self.begin.elapsed_time(self.end) * 1e-3

    def warm_up(self, work):
        """The least seconds of one launch, once it is warm."""
        began, best, launches = time.perf_counter(), float("inf"), 0
        while launches < (3 if self.is_cuda else 1) or time.perf_counter() - began < 25e-3:
            best = min(best, self.sample(work))
            launches += 1
        return best

    def batch_of(self, seconds):
        return batch_for(seconds) if self.is_cuda else batch_for(seconds, short=CPU_SHORTEST, together=CPU_SHORTEST)

    def in_turn(self, works, batches, cold=False, pacing=STANDARD, check=lambda: None, before=0):
        """Samples, seconds of one launch each, of warm works by name, taken in turn. `before`: launches of the same work that come
        first and are not timed. check() may raise between two samples."""
        taken = {name: [] for name in works}
        began = time.perf_counter()
        while taken and any(len(values) < pacing.samples or sum(values) * batches[name] < pacing.seconds
                            for name, values in taken.items()):
            for name, values in taken.items():
                check()
                for _ in range(before):
                    works[name]()
                values.append(self.sample(works[name], cold, batches[name]))
            if time.perf_counter() - began > pacing.wall and all(len(values) >= pacing.fewest for values in taken.values()):
                break
        return taken

    def medians(self, works, cold=False, batches=None, pacing=STANDARD):
        """Median seconds of each of the works by name, their samples taken in turn. `batches`: launches in a sample by name; what
        is not named is counted from the warm-up. A work that fails is left out and named in the errors."""
        errors, counts, running = {}, dict(batches or {}), {}
        for name, work in works.items():
            try:
                best = self.warm_up(work)
                counts.setdefault(name, self.batch_of(best))
                running[name] = work
            except (RuntimeError, ValueError, NotImplementedError) as error:
                errors[name] = first_line(error)
        taken = self.in_turn(running, counts, cold, pacing)
        return {name: statistics.median(values) for name, values in taken.items()}, errors, counts

    def describe(self):
        return {"torch": torch.__version__, "cuda": torch.version.cuda, "samples_taken_again": self.retaken,
                "device": torch.cuda.get_device_name(self.device) if self.is_cuda else "CPU"}


def plain_cpu():
    """For checks: one thread, and none of the instructions (AMX) that virtual machines promise and do not have."""
    os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_VNNI")  # read at the first product
    torch.set_num_threads(1)


def has_gpu():
    return torch.cuda.is_available()
