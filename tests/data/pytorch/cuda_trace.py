#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Boils a memory snapshot of a real GPU down to what the caching allocator did: the segments before the
first recorded event and the events, without stack frames.

The history begins in the middle of the program, so the state before it is found backwards from the
snapshot's final segments: an allocation undone is free, a completed free undone is active again. A gap
of at most 1 MiB behind an active block of a large segment is the tail that was not split off.

"segments": [address, size, stream, isSmall, [[offset, size, requested, isActive], ...]]
"events":   ["segment_alloc" | "alloc" | "free_requested" | "free_completed", address, bytes, stream]
Addresses are relative to the lowest segment.

Usage: cuda_trace.py SNAPSHOT.pickle > OUT.json
"""
import json
import pickle
import sys

SMALL_LIMIT = 1 << 20


def rounded(size):
    return max(512, (size + 511) // 512 * 512)


class DataOnly(pickle.Unpickler):
    """A snapshot is dictionaries, lists, numbers and texts; anything that would run code is refused."""

    def find_class(self, module, name):
        raise pickle.UnpicklingError(f"a snapshot holds no {module}.{name}")


def main():
    snapshot = DataOnly(open(sys.argv[1], "rb")).load()
    history = next(t for t in snapshot["device_traces"] if t)
    segments = {s["address"]: s for s in snapshot["segments"]}
    active = {}
    for segment in segments.values():
        address = segment["address"]
        for block in segment["blocks"]:
            if block["state"] != "inactive":
                active[address] = (block["size"], block["requested_size"])
            address += block["size"]
    for event in reversed(history):
        if event["action"] == "alloc":
            del active[event["addr"]]
        elif event["action"] == "free_completed":
            active[event["addr"]] = (rounded(event["size"]), event["size"])
        elif event["action"] == "segment_alloc":
            del segments[event["addr"]]
    base = min([s["address"] for s in snapshot["segments"]])
    rows = []
    for address, segment in sorted(segments.items()):
        end, at, blocks = address + segment["total_size"], address, []
        is_small = segment["segment_type"] == "small"
        inside = sorted(a for a in active if address <= a < end)
        for start, following in zip(inside, inside[1:] + [end]):
            if start > at:
                blocks.append([at - address, start - at, 0, False])
            size, requested = active[start]
            if not is_small and following - start - size <= SMALL_LIMIT:
                size = following - start
            blocks.append([start - address, size, requested, True])
            at = start + size
        if at < end:
            blocks.append([at - address, end - at, 0, False])
        rows.append([address - base, segment["total_size"], segment["stream"], is_small, blocks])
    events = [[e["action"], e["addr"] - base, e["size"], e["stream"]] for e in history]
    settings = {k: v for k, v in snapshot.get("allocator_settings", {}).items()}
    final = [[s["address"] - base, s["total_size"], s["allocated_size"], s["requested_size"]]
             for s in sorted(snapshot["segments"], key=lambda s: s["address"])]
    print(json.dumps({"about": __doc__.strip(), "settings": settings, "segments": rows, "events": events,
                      "final": final}, separators=(",", ":")))


main()
