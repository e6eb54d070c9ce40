#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What recording (kernels/pytorch/memscape_probe) costs a training step on a CPU, in one run: blocks of plain and of
recorded steps take turns, so that whatever else the machine does meets both. By hand, not by ctest:

    recording_cost.py [--rounds 8] [--steps 5]

For each of three nets, whose steps are cut more and more finely: allocations of a step, its time in ms (of the thread,
the median) without recording, recorded whole and, with torch ≥ 2.0, recorded as a repetition of the step before, and how
much longer these are. Reading the profiler's events between steps does not count."""
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
        F.cross_entropy(self.model(self.x), self.y).backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)


def timed(loop, steps, collector=None):
    """Seconds of each step."""
    seconds = []
    for _ in range(steps):
        begin = time.thread_time()
        loop.step()
        if collector:
            collector.step()
        seconds.append(time.thread_time() - begin)
    return seconds


def recorded(loop, steps, repeats):
    collector = Collector("cpu", loop.model, loop.optimizer, window=1000, repeats=repeats)
    with collector:
        for _ in range(5 if repeats else 1):  # by then it repeats, and has read the first that does
            loop.step()
            collector.step()
        if repeats and not collector.is_repeating:
            raise SystemExit("the steps are not alike")
        seconds = timed(loop, steps, collector)
    return collector.recording(), seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--steps", type=int, default=5)
    options = parser.parse_args()
    print(f"torch {torch.__version__}; allocations of a step, ms, ms recorded whole, ms recorded as a repetition")
    for layers, width, batch in ((12, 192, 48), (24, 128, 48), (30, 96, 32)):
        loop = Loop(layers, width, batch)
        timed(loop, 3)
        plain, whole, repeated = [], [], []
        for _ in range(options.rounds):
            plain += timed(loop, options.steps)
            recording, seconds = recorded(loop, options.steps, False)
            whole += seconds
            if not torch.__version__.startswith("1."):
                repeated += recorded(loop, options.steps, True)[1]
        step = recording.steps[-1]
        allocations = sum(e.action == "alloc" for e in recording.events[step.first:step.last])
        base = statistics.median(plain)
        print(f"{allocations:6} {base * 1e3:8.1f}",
              *(f"{s * 1e3:8.1f} ({(s / base - 1) * 100:+.1f} %)" for s in map(statistics.median, filter(None, (whole, repeated)))),
              flush=True)


main()
