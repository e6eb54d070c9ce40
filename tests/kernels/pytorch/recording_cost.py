#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What recording (kernels/pytorch/memscape_probe) costs a training step on a CPU, in one run: blocks of plain and of
recorded steps take turns, so that whatever else the machine does meets both. By hand, not by ctest:

    recording_cost.py [--rounds 8] [--steps 5]

For each of three nets, whose steps are cut more and more finely: allocations of a step, its time in ms without and with
recording (seconds of the thread, the median of all steps but the first of each block) and how much longer it is. A step
ends before the profiler's events are read."""
import argparse
import os
import statistics
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../kernels/pytorch"))

import torch
import torch.nn.functional as F
from torch import nn

from memscape_probe.events import Collector

torch.set_num_threads(1)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Loop:
    def __init__(self, layers, width, batch):
        self.model = nn.Sequential(*(Block(width) for _ in range(layers)), nn.Linear(width, 10))
        self.optimizer = torch.optim.AdamW(self.model.parameters())
        self.x, self.y = torch.randn(batch, width), torch.zeros(batch, dtype=torch.long)

    def step(self):
        begin = time.thread_time()
        F.cross_entropy(self.model(self.x), self.y).backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return time.thread_time() - begin


def measured(loop, rounds, steps):
    plain, recorded, allocations = [], [], 0
    for _ in range(rounds):
        plain += [loop.step() for _ in range(steps + 1)][1:]
        collector = Collector("cpu", loop.model, loop.optimizer, window=steps + 2)
        with collector:
            for step in range(steps + 1):
                taken = loop.step()
                begin = time.thread_time()
                collector.step()
                recorded += [taken + time.thread_time() - begin] if step else []
        allocations = sum(e.action == "alloc" for e in collector.recording().events) // (steps + 1)
    return allocations, statistics.median(plain), statistics.median(recorded)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--steps", type=int, default=5)
    options = parser.parse_args()
    print(f"torch {torch.__version__}; allocations of a step, ms, ms recorded, longer")
    for layers, width, batch in ((12, 256, 96), (24, 160, 96), (48, 96, 96)):
        loop = Loop(layers, width, batch)
        for _ in range(3):
            loop.step()
        allocations, plain, recorded = measured(loop, options.rounds, options.steps)
        print(f"{allocations:6} {plain * 1e3:8.1f} {recorded * 1e3:8.1f} {(recorded / plain - 1) * 100:+6.1f} %",
              flush=True)


main()
