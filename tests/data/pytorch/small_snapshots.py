#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Made-up memory snapshots of a few kilobytes, one of each kind that the reader knows: all protocols, a leak, a run file
with labels, old dumps (a list of segments, blocks without address), several devices, expandable segments. They are the
corpus of tests/fuzz/snapshots.cpp, and tests read them.

Usage: small_snapshots.py FOLDER
"""
import pickle
import sys

BASE = 0x7F0000000000
MIB = 1 << 20


def frame(name, file="??", line=0):
    return {"name": name, "filename": file, "line": line}


def frames(phase):
    return [frame("aten::mm"), frame(phase, "/home/me/train.py", 12), frame("<module>", "/home/me/train.py", 40)]


def block(address, size, state="inactive", stack=()):
    return {"address": address, "size": size, "requested_size": size if stack else 0, "state": state,
            "frames": list(stack)}


def loop(steps, leak=0, labels=False):
    """A training loop; with `leak` every step keeps a block of 64 KiB."""
    trace, clock = [], 1000

    def event(action, address, size, phase, **more):
        nonlocal clock
        clock += 3
        trace.append({"action": action, "addr": address, "size": size, "stream": 0, "time_us": clock,
                      "frames": frames(phase), **more})

    event("segment_alloc", BASE, 2 * MIB, "init")
    for step in range(steps):
        label = {"label": step % 3} if labels else {}
        for i in range(4):
            event("alloc", BASE + i * 4096, 4096 - i, "forward", **label)
        for i in range(3, -1, -1):
            event("free_requested", BASE + i * 4096, 4096 - i, "backward", **label)
            event("free_completed", BASE + i * 4096, 4096 - i, "backward", **label)
        if leak:
            event("alloc", BASE + (1 << 16) * (1 + step), 1 << 16, "forward", **label)
        event("alloc", BASE + (4 << 12), 512, "optimizer")
        event("free_completed", BASE + (4 << 12), 512, "optimizer")
    blocks, at = [], BASE
    if leak:
        blocks.append(block(at, 1 << 16))
        for step in range(steps):
            at += 1 << 16
            blocks.append(block(at, 1 << 16, "active_allocated", frames("forward")))
        at += 1 << 16
    blocks.append(block(at, BASE + 2 * MIB - at))
    held = sum(b["size"] for b in blocks if b["state"] != "inactive")
    segment = {"device": 0, "address": BASE, "total_size": 2 * MIB, "allocated_size": held, "active_size": held,
               "requested_size": held, "stream": 0, "segment_type": "small", "segment_pool_id": (0, 0),
               "is_expandable": False, "frames": frames("init"), "blocks": blocks}
    settings = {"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1, "garbage_collection_threshold": 0.0,
                "expandable_segments": False, "roundup_power2_divisions": {"1": 0, "2": 0}}
    return {"segments": [segment], "device_traces": [trace], "allocator_settings": settings,
            "external_annotations": [{"device": 0, "time_us": 1001, "stage": "START", "name": "ProfilerStep#1"}]}


def run_file():
    run = loop(4, leak=1, labels=True)
    run["memscape"] = {
        "version": 1, "torch": "2.9", "python": "3.11", "device": "cuda:0",
        "labels": [{"module": "h.0", "operator": "aten::mm", "phase": "forward", "step": 0, "category": "activation",
                    "region": "", "name": "x"},
                   {"module": "h.1", "phase": "backward", "step": 1, "category": "gradient"}, {"step": 2}],
        "steps": [{"index": 7, "first": 0, "last": 16}, {"index": 8, "first": 16, "last": 31}],
        "notes": ["recorded for a test"], "error": None}
    return run


def old_segments():
    history = [{"addr": BASE, "real_size": 12, "frames": frames("forward")}]
    return [{"device": 0, "address": BASE, "total_size": 2 * MIB, "allocated_size": 512, "active_size": 512, "stream": 0,
             "segment_type": "small", "blocks": [{"size": 512, "state": "active_allocated", "history": history},
                                                 {"size": 2 * MIB - 512, "state": "inactive"}]}]


def devices():
    two = loop(2)
    two["segments"].append(dict(two["segments"][0], device=1, address=0x7E0000000000, blocks=[]))
    two["device_traces"] = [two["device_traces"][0], [], two["device_traces"][0][:5]]
    return two


def expandable():
    snapshot = loop(2)
    trace = snapshot["device_traces"][0]
    trace[0]["action"] = "segment_map"
    trace += [{"action": "segment_unmap", "addr": BASE + MIB, "size": MIB, "stream": 0, "time_us": 9999},
              {"action": "oom", "size": 99999, "device_free": 123, "stream": 0, "time_us": 10000},
              {"action": "snapshot", "addr": 0, "size": 0, "stream": 0, "time_us": 10001}]
    snapshot["segments"][0].update(is_expandable=True, total_size=MIB)
    snapshot["segments"][0]["blocks"][0]["size"] = MIB
    return snapshot


def main():
    made = {f"loop{protocol}": (loop(3), protocol) for protocol in (2, 3, 4, 5)}
    made.update(leak=(loop(6, leak=1), 4), run=(run_file(), 4), old_list=(old_segments(), 2),
                old_dict=({"segments": old_segments(), "device_traces": []}, 4), devices=(devices(), 4),
                expandable_oom=(expandable(), 4))
    for name, (snapshot, protocol) in made.items():
        with open(f"{sys.argv[1]}/{name}", "wb") as file:
            pickle.dump(snapshot, file, protocol=protocol)


main()
