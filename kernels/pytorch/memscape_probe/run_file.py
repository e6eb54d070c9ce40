# SPDX-License-Identifier: Apache-2.0
"""Run files (*.memscape-run): a PyTorch memory snapshot with labels, as a pickle of protocol 4. What opens
torch.cuda.memory._dump_snapshot() opens them, too; the key "memscape" holds the rest:

    {"segments": […], "device_traces": [[…]], "memscape": {"version": 1, "torch": …, "python": …, "device": …,
     "labels": [{"module", "operator", "phase", "step", "category", "region", "name"}, …],
     "steps": [{"index", "first", "last"}, …], "notes": […], "error": None or text}}

Every trace entry and block may have "label": an index of labels. A CPU has no caching allocator: each live block is a
segment of its own. Blocks that were alive before recording began come first in the trace, as if allocated then."""
import bisect
import os
import pickle
import platform
import tempfile

import torch


class Labels:
    def __init__(self):
        self.all, self._index = [], {}

    def of(self, **keys):
        key = tuple(sorted((k, v) for k, v in keys.items() if v is not None))
        if key not in self._index:
            self._index[key] = len(self.all)
            self.all.append(dict(key))
        return self._index[key]


def _event_label(labels, e):
    return labels.of(module=e.module, operator=e.operator, phase=e.phase, step=e.step, category=e.category,
                     region=e.region, name=e.name)


def _block_label(labels, b):
    return labels.of(module=b.module, category=b.category, name=b.name, phase="other")


def _memscape(recording, labels, steps, notes, error):
    return {"version": 1, "torch": str(torch.__version__), "python": platform.python_version(),
            "device": str(recording.device), "labels": labels.all,
            "steps": [{"index": i, "first": first, "last": last} for i, first, last in steps],
            "notes": list(notes), "error": error}


def of_cpu(recording, notes, error):
    labels, trace, label_of = Labels(), [], {}
    begin = recording.events[0].time_us if recording.events else 0

    def add(action, address, size, time_us, label):
        trace.append({"action": action, "addr": address, "size": size, "stream": 0, "time_us": time_us, "frames": [],
                      "label": label})

    for b in recording.existing:
        label_of[b.address] = _block_label(labels, b)
        add("alloc", b.address, b.bytes, begin, label_of[b.address])
    before = len(trace)
    for e in recording.events:
        label = _event_label(labels, e)
        if e.action == "alloc":
            label_of[e.address] = label
        add({"alloc": "alloc", "free": "free_completed", "oom": "oom"}[e.action], e.address, e.bytes, e.time_us, label)
    segments = []
    for b in sorted(recording.alive):
        block = {"address": b.address, "size": b.bytes, "requested_size": b.bytes, "state": "active_allocated",
                 "frames": [], "label": label_of[b.address]}
        segments.append({"device": 0, "address": b.address, "total_size": b.bytes, "allocated_size": b.bytes,
                         "active_size": b.bytes, "requested_size": b.bytes, "stream": 0, "segment_type": "large",
                         "segment_pool_id": (0, 0), "is_expandable": False, "frames": [], "blocks": [block]})
    steps = [(s.index, s.first + before, s.last + before) for s in recording.steps]
    if before:
        notes = [f"The first {before} entries of the trace are blocks that were alive before recording began."] + notes
    return {"segments": segments, "device_traces": [trace],
            "memscape": _memscape(recording, labels, steps, notes, error)}


def of_cuda(snapshot, recording, notes, error):
    """The allocator's own history with the labels of the profiler's events. Both see the same allocations and frees of
    each address in the same order; the history may hold more, before and after, so they are matched from the end of
    the stretch of time in which both ran."""
    labels = Labels()
    index = recording.device.index or 0
    trace = snapshot["device_traces"][index] if index < len(snapshot["device_traces"]) else []
    end = recording.events[-1].time_us + 1000 if recording.events else 0
    left = {}  # address -> entries that wait for a label, the last on top
    for entry in trace:
        if entry.get("time_us", 0) <= end and entry["action"] in ("alloc", "free_requested", "free"):
            left.setdefault(entry["addr"], []).append(entry)
    label_of = {b.address: _block_label(labels, b) for b in recording.existing}
    for e in reversed(recording.events):
        waiting = left.get(e.address)
        if waiting and (waiting[-1]["action"] == "alloc") == (e.action == "alloc"):
            waiting.pop()["label"] = _event_label(labels, e)
    for entry in trace:
        if entry["action"] == "alloc" and "label" in entry:
            label_of[entry["addr"]] = entry["label"]
        elif entry["action"] in ("free_completed", "free_requested") and "label" not in entry \
                and entry["addr"] in label_of:
            entry["label"] = label_of[entry["addr"]]
    segments = [s for s in snapshot["segments"] if s.get("device", 0) == index]
    for segment in segments:
        address = segment["address"]
        for block in segment["blocks"]:
            at = block.get("address", address)
            if block["state"] == "active_allocated" and at in label_of:
                block["label"] = label_of[at]
            address = at + block["size"]
    times = [entry.get("time_us", 0) for entry in trace]
    steps = [(s.index, bisect.bisect_left(times, s.begin_us), bisect.bisect_left(times, s.end_us))
             for s in recording.steps]
    snapshot = dict(snapshot, segments=segments, device_traces=[trace])
    return dict(snapshot, memscape=_memscape(recording, labels, steps, notes, error))


def write(path, run):
    """Whole or not at all: a temporary file beside it, then renamed. Raises OSError."""
    folder = os.path.dirname(os.path.abspath(path))
    handle, temporary = tempfile.mkstemp(prefix=".memscape-", suffix=".tmp", dir=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            pickle.dump(run, file, protocol=4)
            file.flush()
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)  # mkstemp's are the owner's alone
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
