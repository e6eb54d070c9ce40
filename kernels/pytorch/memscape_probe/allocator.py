# SPDX-License-Identifier: Apache-2.0
"""`allocator`: the requests of a trace, made to PyTorch's own allocator.

`played` of the parameters is the trace as Memscape plays it: requests (a block, its negative where it is freed, 0 for a
call), bytes and streams by block from 1 on, calls ([index, kind, block]; kind 2 record_stream, 3 synchronize, 4
empty_cache). A request for n bytes is torch.empty(n, dtype=torch.uint8), a free drops the last reference to it.

  1  once, noting what is allocated and reserved after each request
  2  again and again, each time from nothing, timed as a whole; the same loop without PyTorch is timed, too, and its
     median subtracted: Python's own share is not the allocator's
  3  on a CPU once more, writing to each page of each new block: page faults and resident bytes

On a CPU PyTorch calls malloc (posix_memalign) for each block; what malloc holds is asked of glibc (mallinfo2), and what
Python and PyTorch keep for each block beside its bytes is among it. On CUDA the numbers are those of
torch.cuda.memory_stats(), in a process of its own, because the setting is read when CUDA is first used."""
import ctypes
import json
import os
import resource
import statistics
import subprocess
import sys
import time

import torch

from . import machine
from .problem import Problem, skipped
from .worker import die_with_parent

PAGE = 4096
LEAST_REPLAYS, MOST_REPLAYS, REPLAY_SECONDS = 5, 50, 4.0
RECORD, SYNCHRONIZE, EMPTY_CACHE = 2, 3, 4


class Played:
    """The requests, in the form in which a loop plays them quickly."""

    def __init__(self, words):
        self.requests, self.bytes, self.streams = words["requests"], [0] + words["bytes"], [0] + words["streams"]
        self.calls = {index: (kind, block) for index, kind, block in words["calls"]}

    def live_peak(self):
        live = peak = 0
        for request in self.requests:
            live += self.bytes[request] if request > 0 else -self.bytes[-request]
            peak = max(peak, live)
        return peak


def malloc_bytes():
    """(in use, taken from the system, mappings) of glibc's malloc, or None where it does not tell (before 2.33)."""
    class Info(ctypes.Structure):
        _fields_ = [(name, ctypes.c_size_t) for name in
                    ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")]
    try:
        ask = ctypes.CDLL(None).mallinfo2
    except AttributeError:
        return None
    ask.restype = Info

    def now():
        info = ask()
        return info.uordblks + info.hblkhd, info.arena + info.hblkhd, info.hblks
    return now


def trim():
    """Free memory of malloc goes back to the system, where it can (glibc)."""
    getattr(ctypes.CDLL(None), "malloc_trim", lambda _: 0)(0)


class OnCpu:
    """One replay; blocks go when it does."""

    def __init__(self, played):
        self.blocks = [None] * len(played.bytes)
        self.bytes, self.requested, self.malloc = played.bytes, 0, malloc_bytes()
        trim()  # what an earlier replay has left
        self.before = self.malloc() if self.malloc else None

    def make(self, block):
        self.blocks[block] = torch.empty(self.bytes[block], dtype=torch.uint8)

    def call(self, kind, block):
        if kind == EMPTY_CACHE:  # nothing of PyTorch's own is kept on a CPU
            trim()

    def counts(self):
        """requested, allocated, reserved (B), segments"""
        if not self.malloc:
            return self.requested, self.requested, self.requested, 0
        used, taken, mappings = (now - before for now, before in zip(self.malloc(), self.before))
        return self.requested, max(used, self.requested), max(taken, used, self.requested), mappings + 1

    def settle(self):
        pass


class OnCuda:
    """The same on a GPU."""

    def __init__(self, played, device):
        self.blocks, self.bytes, self.requested = [None] * len(played.bytes), played.bytes, 0
        self.numbers, self.device = played.streams, device
        self.streams = {0: torch.cuda.default_stream(device)}
        for number in set(played.streams) - {0}:
            self.streams[number] = torch.cuda.Stream(device)
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
        self.before = torch.cuda.memory_stats(device)

    def make(self, block):
        with torch.cuda.stream(self.streams[self.numbers[block]]):
            self.blocks[block] = torch.empty(self.bytes[block], dtype=torch.uint8, device=self.device)

    def call(self, kind, block):
        if kind == RECORD:
            other = next((s for n, s in self.streams.items() if n != self.numbers[block]), None)
            self.blocks[block].record_stream(other or torch.cuda.Stream(self.device))
        elif kind == SYNCHRONIZE:
            torch.cuda.synchronize(self.device)
        else:
            torch.cuda.empty_cache()

    def counts(self):
        stats = torch.cuda.memory_stats(self.device)
        return (self.requested, stats["allocated_bytes.all.current"], stats["reserved_bytes.all.current"],
                stats["segment.all.current"])

    def totals(self):
        stats = torch.cuda.memory_stats(self.device)

        def since(key):
            return stats[key] - self.before.get(key, 0)
        calls = ("num_device_alloc", "num_device_free") if "num_device_alloc" in stats else ("segment.all.allocated",
                                                                                             "segment.all.freed")
        return {"driver_calls": sum(map(since, calls)), "retries": since("num_alloc_retries")}

    def settle(self):
        torch.cuda.synchronize(self.device)


def play(played, on, after=None, check=None):
    """How many requests were served. after(index, request) is called behind each."""
    blocks, calls = on.blocks, played.calls
    for index, request in enumerate(played.requests):
        if check and index % 1024 == 0:
            check()
        try:
            if request > 0:
                on.make(request)
                on.requested += played.bytes[request]
            elif request < 0:
                on.requested -= played.bytes[-request]
                blocks[-request] = None
            else:
                on.call(*calls[index])
        except (RuntimeError, MemoryError) as error:
            if not machine.is_out_of_memory(error):
                raise
            return index
        if after:
            after(index, request)
    return len(played.requests)


def noted(played, on, check):
    """Step 1: columns over the requests, and where memory ran out."""
    columns = {"requested": [], "allocated": [], "reserved": []}
    segments = 0

    def after(index, request):
        nonlocal segments
        requested, allocated, reserved, now = on.counts()
        segments = max(segments, now)
        for key, value in zip(columns, (requested, allocated, reserved)):
            columns[key].append(value)
    served = play(played, on, after, check)
    answer = {**columns, "segments": segments, "served": served}
    if isinstance(on, OnCuda):
        answer.update(on.totals())
    return answer


def replay_seconds(played, on, served):
    """One whole replay by the clock, and its blocks let go outside of it."""
    requests, make, blocks, calls = played.requests[:served], on.make, on.blocks, played.calls
    began = time.perf_counter()
    for index, request in enumerate(requests):
        if request > 0:
            make(request)
        elif request < 0:
            blocks[-request] = None
        else:
            on.call(*calls[index])
    on.settle()
    return time.perf_counter() - began


class Nothing:
    """Makes no block: what the loop itself costs."""

    def __init__(self, played):
        self.blocks = [None] * len(played.bytes)

    def make(self, block):
        self.blocks[block] = block

    def call(self, kind, block):
        pass

    def settle(self):
        pass


def timed(played, open_one, served, check, tell=lambda done, total: None):
    """Step 2: seconds of each replay, Python's own taken off, and what was taken off."""
    own = statistics.median(replay_seconds(played, Nothing(played), served) for _ in range(LEAST_REPLAYS))
    seconds, began = [], time.perf_counter()
    while len(seconds) < MOST_REPLAYS and (len(seconds) < LEAST_REPLAYS or time.perf_counter() - began < REPLAY_SECONDS):
        check()
        seconds.append(max(0.0, replay_seconds(played, open_one(), served) - own))
        tell(len(seconds), MOST_REPLAYS)
    return {"seconds": seconds, "loop_seconds": own}


def faults_now():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def resident_now():
    return int(machine.read("/proc/self/statm").split()[1]) * resource.getpagesize()


def reset_high_water():
    """Whether the largest resident size counts from now on."""
    try:
        with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
            file.write("5")
        return True
    except OSError:
        return False


def touched(played, check):
    """Step 3: what first writes cost."""
    on, spent = OnCpu(played), 0.0
    resident, is_reset, faults = resident_now(), reset_high_water(), faults_now()

    def after(_, request):
        nonlocal spent
        if request <= 0:
            return
        began = time.perf_counter()
        block = on.blocks[request]
        block[::PAGE].fill_(1)
        block[-1:].fill_(1)
        spent += time.perf_counter() - began
    play(played, on, after, check)
    answer = {"page_faults": faults_now() - faults, "first_touch": spent}
    high = machine.high_water()
    if high and is_reset:
        answer["resident"] = high - resident
    return answer


class SmallPages:
    """No huge pages while it lasts, and one thread: a fault is one page, and fills are not shared out."""

    def __enter__(self):
        self.threads, self.prctl = torch.get_num_threads(), ctypes.CDLL(None).prctl
        self.was_off = self.prctl(42, 0, 0, 0, 0)  # PR_GET_THP_DISABLE
        self.prctl(41, 1, 0, 0, 0)
        torch.set_num_threads(1)

    def __exit__(self, *_):
        self.prctl(41, 1 if self.was_off > 0 else 0, 0, 0, 0)
        torch.set_num_threads(self.threads)


def on_cpu(request, played):
    touch = request.parameters.get("touch", "lazy")
    if touch == "eager":
        raise skipped("touch=eager: malloc gives its pages when they are written", "choose touch=lazy or touch=none")
    if touch == "lazy":
        machine.check_room(played.live_peak(), torch.device("cpu"), "the requests' peak", request.is_forced)
    with SmallPages():
        answer = noted(played, OnCpu(played), request.check)
        request.progress(1, 3, "the requests, timed")
        answer.update(timed(played, lambda: OnCpu(played), answer["served"], request.check,
                            lambda done, total: request.progress(total + done, 3 * total, "the requests, timed")))
        if touch == "lazy":
            request.progress(2, 3, "first writes")
            answer.update(touched(played, request.check))
    return answer


# --- CUDA, in a process of its own ---------------------------------------------------------------------------------------------


def environment(setting):
    """With the allocator's setting under the name that this PyTorch reads."""
    numbers = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
    names = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")
    made = {key: value for key, value in os.environ.items() if key not in names}
    if setting:
        made[names[0] if numbers >= (2, 9) else names[1]] = setting
    return made


def on_cuda(request, words):
    """The child gets the words on standard input and answers with one line. Errors: run.failed, run.cancelled."""
    child = subprocess.Popen([sys.executable, "-c", "from memscape_probe.allocator import child; child()"],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**environment(words["conf"]),
                                                                              "PYTHONPATH": os.pathsep.join(sys.path)})
    try:
        child.stdin.write(json.dumps({**words, "device": request.device}).encode() + b"\n")
        child.stdin.close()
        answer = child.stdout.readline()
        request.check()
    finally:
        child.kill()
        child.wait()
    if not answer.strip():
        raise Problem("run.failed", "the process with the setting ended without an answer",
                      "its traceback is on standard error; a wrong setting is one cause")
    return json.loads(answer)


def child():
    die_with_parent()
    words = json.loads(sys.stdin.readline())
    device, played = torch.device(words["device"]), Played(words)
    torch.cuda.init()
    if words["fraction"] > 0:
        torch.cuda.set_per_process_memory_fraction(min(1.0, words["fraction"]), device)
    answer = noted(played, OnCuda(played, device), lambda: None)
    answer.update(timed(played, lambda: OnCuda(played, device), answer["served"], lambda: None))
    print(json.dumps(answer), flush=True)


def measure(request):
    """The numbers of a replay; kernels/pytorch/measured_allocator.cpp makes figures of them."""
    words = request.parameters["played"]
    request.progress(0, 3, "the requests, one by one")
    device = torch.device(request.device)
    answer = on_cuda(request, words) if device.type == "cuda" else on_cpu(request, Played(words))
    request.check()
    return answer, machine.describe(device)
