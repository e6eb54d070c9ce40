#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a made-up memory snapshot of any size, as torch.cuda.memory._dump_snapshot() of PyTorch 2.x would: a training
loop whose steps allocate and free the same blocks, with stacks of shared frames. For the speed and memory of the reader:
Python's own pickle would need the whole snapshot in memory. Nothing here was recorded on a GPU.

    large_snapshot.py OUT.pickle [--bytes 1e6] [--depth 40] [--blocks 400] [--leak 0]

--bytes    of the file, about (1e9: a gigabyte)
--depth    frames of a stack; 0: no stacks (70 bytes an event instead of 300)
--blocks   allocations of a step
--leak     bytes that every step keeps
"""
import argparse
import struct

MIB = 1 << 20


class Writer:
    """The opcodes of protocol 4 that a snapshot has, written as they are needed."""

    def __init__(self, file):
        self.file, self.parts, self.size, self.memo, self.texts = file, [], 0, 0, {}
        self.raw(b"\x80\x04")

    def raw(self, data):
        self.parts.append(data)
        self.size += len(data)
        if len(self.parts) > 50_000:
            self.flush()

    def flush(self):
        self.file.write(b"".join(self.parts))
        self.parts.clear()

    def remember(self):
        self.raw(b"\x94")
        self.memo += 1
        return self.memo - 1

    @staticmethod
    def recalled(slot):
        return b"h" + bytes([slot]) if slot < 256 else b"j" + struct.pack("<I", slot)

    def text(self, text):
        if text in self.texts:
            return self.raw(self.recalled(self.texts[text]))
        data = text.encode()
        self.raw((b"\x8c" + bytes([len(data)]) if len(data) < 256 else b"X" + struct.pack("<I", len(data))) + data)
        self.texts[text] = self.remember()

    @staticmethod
    def number(value):
        if 0 <= value < 256:
            return b"K" + bytes([value])
        if 0 <= value < 65536:
            return b"M" + struct.pack("<H", value)
        if -2 ** 31 <= value < 2 ** 31:
            return b"J" + struct.pack("<i", value)
        data = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
        return b"\x8a" + bytes([len(data)]) + data

    def value(self, value):
        if isinstance(value, str):
            self.text(value)
        elif isinstance(value, bool):
            self.raw(b"\x88" if value else b"\x89")
        elif isinstance(value, int):
            self.raw(self.number(value))
        elif isinstance(value, float):
            self.raw(b"G" + struct.pack(">d", value))
        elif isinstance(value, bytes):  # made before
            self.raw(value)
        elif isinstance(value, dict):
            self.raw(b"}")
            self.remember()
            self.raw(b"(")
            for key, item in value.items():
                self.text(key)
                self.value(item)
            self.raw(b"u")
        else:
            self.raw(b"]")
            self.remember()
            self.raw(b"(")
            for item in value:
                self.value(item)
            self.raw(b"e")


def frame_slots(out, count, name):
    """Frames, each a dictionary that later lists name by its slot of the memo."""
    slots = []
    out.raw(b"](")
    for i in range(count):
        slots.append(out.memo)
        out.value({"name": f"{name}{i}", "filename": "/home/me/model.py" if i % 3 else "??", "line": 10 + i})
    out.raw(b"e0")  # the list itself is not needed
    return slots


def stacks_of(out, depth, count):
    base = frame_slots(out, max(1, depth), "forward")
    tops = frame_slots(out, count, "aten::operator")
    body = b"".join(out.recalled(slot) for slot in base[:depth])
    return [b"(" + out.recalled(tops[i]) + body + b"e" for i in range(count)] if depth else []


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--bytes", type=float, default=1e6)
    parser.add_argument("--depth", type=int, default=40)
    parser.add_argument("--blocks", type=int, default=400)
    parser.add_argument("--leak", type=int, default=0)
    options = parser.parse_args()
    base = 0x7f0000000000
    sizes = [2 * MIB * (1 + i % 7) for i in range(options.blocks)]
    places = [base + sum(sizes[:i]) for i in range(options.blocks)]
    with open(options.out, "wb") as file:
        out = Writer(file)
        stacks = stacks_of(out, options.depth, 97)
        clock, kept = 1_700_000_000_000_000, []

        def event(action, address, size, stack):
            nonlocal clock
            clock += 7
            out.raw(b"}")
            out.remember()
            out.raw(b"(")
            out.text("action"); out.text(action)
            out.text("addr"); out.raw(out.number(address))
            out.text("size"); out.raw(out.number(size))
            out.text("stream"); out.raw(b"K\x00")
            out.text("time_us"); out.raw(out.number(clock))
            if stacks:
                out.text("frames"); out.raw(b"]"); out.remember(); out.raw(stacks[stack % 97])
            out.text("compile_context"); out.text("N/A")
            out.raw(b"u")

        out.raw(b"}(")
        out.text("device_traces")
        out.raw(b"](](")
        events, steps = 0, 0

        def write(*arguments):
            nonlocal events
            event(*arguments)
            events += 1
            if events % 1000 == 0:  # as pickle groups the items of a list
                out.raw(b"e(")

        total = sum(sizes)
        write("segment_alloc", base, total, 0)
        while out.size < options.bytes:
            steps += 1
            for i, size in enumerate(sizes):
                write("alloc", places[i], size, i)
            for i in reversed(range(len(sizes))):
                write("free_requested", places[i], sizes[i], i)
                write("free_completed", places[i], sizes[i], i)
            if options.leak:
                kept.append(base + (1 << 40) + len(kept) * options.leak)
                write("segment_alloc", kept[-1], options.leak, 3)
                write("alloc", kept[-1], options.leak, 3)
        out.raw(b"ee")
        segment = {"device": 0, "stream": 0, "segment_type": "large", "is_expandable": False}
        out.text("segments")
        out.value([dict(segment, address=base, total_size=total, allocated_size=0, active_size=0,
                        blocks=[{"address": base, "size": total, "requested_size": 0, "state": "inactive", "frames": []}])]
                  + [dict(segment, address=address, total_size=options.leak, allocated_size=options.leak,
                          active_size=options.leak, blocks=[{"address": address, "size": options.leak,
                                                             "requested_size": options.leak, "state": "active_allocated"}])
                     for address in kept])
        out.raw(b"u.")
        out.flush()
        print(f"{options.out}: {out.size} bytes, {events} events, {steps} steps")


main()
