# SPDX-License-Identifier: Apache-2.0
"""Speaks the protocol of Memscape's workers (core/protocol/message.h): JSON lines, hello first, exactly one done for each run.

Standard output carries nothing else: what a model prints goes to standard error. Runs are made in this thread; another
one reads the commands, so that a cancel is heard while a step runs. A step that does not end within PATIENCE seconds of
a cancel takes the process with it. When standard input ends the process goes at once."""
import gc
import importlib
import json
import os
import pathlib
import queue
import re
import signal
import sys
import threading
import time

from . import __version__
from .facts import torch_facts
from .problem import Problem, skipped

PROTOCOL = 1
PATIENCE = 0.6
PROGRESS_EVERY = 1 / 30
EXPERIMENTS = {  # module of this package that has measure(request)
    "training-memory": "training",
    "inference-memory": "inference",
    "allocator": "allocator",
    "attention": "attention",
    "layout": "layout",
    "precision": "precision",
    "machine": "machine",
    "calibration": "calibration",
}


class Lines:
    """Whole lines to the descriptor that was standard output."""

    def __init__(self):
        self.descriptor = os.dup(1)
        os.dup2(2, 1)  # also what C libraries print
        self.lock = threading.Lock()

    def write(self, message):
        data = (json.dumps(message, ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n").encode("utf-8", "replace")
        with self.lock:
            while data:
                data = data[os.write(self.descriptor, data):]


class Request:
    """One run, as a measurement sees it."""

    def __init__(self, command, lines):
        self.id, self.experiment, self.device = command["id"], command.get("experiment", ""), command.get("device", "")
        self.parameters, self.is_forced = command.get("parameters") or {}, bool(command.get("force"))
        self.lines, self.is_cancelled, self.is_done, self.next_progress = lines, threading.Event(), False, 0.0
        self.began = time.monotonic()

    def progress(self, done, total, label):
        now = time.monotonic()
        if now >= self.next_progress:
            self.next_progress = now + PROGRESS_EVERY
            self.lines.write({"type": "progress", "id": self.id, "done": done, "total": total, "label": label})

    def note(self, level, code, text):
        self.lines.write({"type": "note", "id": self.id, "level": level, "code": code, "text": text})

    def check(self):
        if self.is_cancelled.is_set():
            raise Problem("run.cancelled", "the measurement was stopped")

    def done(self, status, error=None, result=None, provenance=None):
        """Once; the first counts."""
        with self.lines.lock:
            if self.is_done:
                return
            self.is_done = True
        self.lines.write({"type": "done", "id": self.id, "status": status, "elapsed": time.monotonic() - self.began,
                          "error": error, "result": result, "provenance": provenance})


def hello():
    facts, devices = torch_facts(), []
    if facts is not None:
        devices.append({"id": "pytorch:cpu", "name": f"PyTorch {facts['version']} on this CPU", "missing": "", "description": None})
        gpus = len(list(pathlib.Path("/proc/driver/nvidia/gpus").glob("*"))) if facts["cuda"] else 0
        devices += [{"id": f"pytorch:cuda:{i}", "name": f"PyTorch {facts['version']} on GPU {i}", "missing": "", "description": None}
                    for i in range(gpus)]
    return {"type": "hello", "protocol": PROTOCOL, "worker": __version__, "pid": os.getpid(), "devices": devices}


def device_of(name):
    """"pytorch:cuda:0" to "cuda:0". Errors: device.missing."""
    import torch
    place = name[len("pytorch:"):] if name.startswith("pytorch:") else name
    if place == "cuda":
        place = "cuda:0"
    if place == "cpu":
        return place
    if not place.startswith("cuda:") or not place[5:].isdigit():
        raise Problem("device.unknown", f"the probe has no device \"{name}\"", "pytorch:cpu or pytorch:cuda:0")
    if not torch.cuda.is_available() or int(place[5:]) >= torch.cuda.device_count():
        raise Problem("device.missing", f"PyTorch {torch.__version__} sees no GPU {place[5:]} here",
                      "nvidia-smi lists the GPUs; a torch for CUDA is needed")
    return place


def checked_torch():
    try:
        import torch
    except ImportError as error:
        if torch_facts() is None:
            raise skipped("this Python has no torch", "python3 -m pip install torch")
        raise Problem("run.failed", f"torch cannot be imported: {error}", "repair it: python3 -m pip install --upgrade torch")
    numbers = re.match(r"(\d+)\.(\d+)", torch.__version__)
    if numbers and (int(numbers.group(1)), int(numbers.group(2))) < (1, 13):
        raise skipped(f"torch {torch.__version__} is too old", "torch 1.13 or newer is needed")
    return torch


def perform(request):
    """result and provenance. Errors: Problem."""
    if request.experiment not in EXPERIMENTS:
        raise skipped(f"the probe does not measure {request.experiment}", "choose another device")
    torch = checked_torch()
    request.device = device_of(request.device)
    torch.manual_seed(1)
    gc.collect()  # what an earlier run has left would count as alive
    trains = request.experiment == "precision" and request.parameters.get("operation") == "train"
    module = importlib.import_module("memscape_probe." + ("amp" if trains else EXPERIMENTS[request.experiment]))
    return module.measure(request)


def run(request):
    request.lines.write({"type": "started", "id": request.id})
    try:
        result, provenance = perform(request)
        request.done("ok", result=result, provenance=provenance)
    except Problem as problem:
        status = {"run.skipped": "skipped", "device.missing": "skipped", "run.cancelled": "cancelled"}.get(problem.code, "failed")
        request.done(status, problem.to_json(), getattr(problem, "result", None))
    except MemoryError:
        request.done("failed", Problem("run.memory", "the memory ran out while it was measured",
                                       "choose smaller sizes, or close other programs").to_json())
    except BaseException as error:  # a model's own code may raise anything
        import traceback
        traceback.print_exc()
        lines = str(error).strip().splitlines()
        request.done("failed", Problem("run.failed", f"{type(error).__name__}: {lines[0] if lines else 'no message'}",
                                       "the whole traceback is on standard error").to_json())


class Commands:
    """Reads the commands in a thread of its own."""

    def __init__(self, lines):
        self.lines, self.waiting, self.current = lines, queue.Queue(), None

    def read(self):
        for line in sys.stdin.buffer:
            if line.strip():
                self.take(line)
        os._exit(0)  # the asking program has ended

    def take(self, line):
        try:
            command = json.loads(line)
            word = command["cmd"]
            number = command["id"] if word != "quit" else 0
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            self.lines.write({"type": "note", "id": 0, "level": "warning", "code": "protocol.syntax", "text": f"not a command: {error}"})
            return
        if word == "quit":
            os._exit(0)
        elif word == "run":
            self.begin(command)
        elif word == "cancel":
            self.cancel(number)

    def begin(self, command):
        request = Request(command, self.lines)
        if self.current is not None and not self.current.is_done:
            request.done("failed", Problem("run.busy", "this worker is measuring already", "wait for that run, or cancel it").to_json())
            return
        self.current = request
        self.waiting.put(request)

    def cancel(self, number):
        request = self.current
        if request is None or request.id != number or request.is_done:
            return
        request.is_cancelled.set()

        def give_up():
            if not request.is_done:
                request.done("cancelled", Problem("run.cancelled", "the measurement was stopped").to_json())
                os._exit(0)

        timer = threading.Timer(PATIENCE, give_up)
        timer.daemon = True
        timer.start()


def die_with_parent():
    """Also when the parent is killed; and should the memory run out, this process is the one to end."""
    import ctypes
    try:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        pathlib.Path("/proc/self/oom_score_adj").write_text("1000")
    except (OSError, AttributeError):
        pass


def main(words):
    if words:
        print("usage: python3 -m memscape_probe worker", file=sys.stderr)
        return 2
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("KINETO_LOG_LEVEL", "9")  # its profiler reports each start
    parent = os.getppid()
    die_with_parent()
    if os.getppid() != parent:  # it went in between
        return 0
    lines = Lines()
    lines.write(hello())
    commands = Commands(lines)
    threading.Thread(target=commands.read, daemon=True).start()
    while True:
        run(commands.waiting.get())
