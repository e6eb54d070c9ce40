# SPDX-License-Identifier: Apache-2.0
"""How fast this processor is just now: the same few works whenever they are asked for, in a calibration and in turn with the
steps of a network (core/experiment/probed_host.h compares the two). Neighbours on the machine change it from minute to
minute. A step is a sum of thousands of operators, so that the mean of these works counts, interruptions included; but of one sample
no more than MOST times the median: a host that backs a guest's memory for the first time takes hundreds of times, once.

  core     a product of 256 × 512 by 512 × 1024 whose operands are near
  memory   one pass in place over BLOCK bytes, each time others of so many that no cache holds them
  page     a pass that fills a new block of that size, by its pages. It is mapped, since malloc may have free memory whose
           pages are there; a second pass is taken off where what a page costs by itself is asked
  call     an operator on 16 numbers

Left out: machines whose free memory is not four times that, where a pass of memory is one of the cache, then and now."""
import mmap
import statistics
import time

import torch

from . import machine

BLOCK = 40 << 20  # B
BEYOND = 2.5  # times the last cache: what is used again after so much comes from memory
MOST = 10  # times the median
PAGE = mmap.PAGESIZE
PRODUCTS, CALLS = 5, 40
WORKS = ("core", "memory", "page", "call")


def bytes_beyond_caches():
    """Of works whose operands come from memory; at most a quarter of what is free."""
    wanted, room = max(3 * BLOCK, int(BEYOND * machine.last_cache())), machine.available(torch.device("cpu"))
    return wanted if room is None else max(BLOCK, min(wanted, room // 4))


def seconds_of(work):
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


class HostState:
    def __init__(self):
        self.x, self.weight, self.small = torch.randn(256, 512), torch.randn(1024, 512), torch.ones(16, requires_grad=True)
        self.result = torch.empty(256, 1024)  # whose pages are there
        self.far, self.turn = torch.ones(bytes_beyond_caches() // BLOCK, BLOCK // 4), 0
        self.samples = {name: [] for name in WORKS}
        self.fills, self.frees = [], []  # s of a pass that fills a block whose pages are there, and of giving them back

    def product(self):
        torch.mm(self.x, self.weight.t(), out=self.result)

    def products(self):
        for _ in range(PRODUCTS):
            self.product()

    def calls(self):
        for _ in range(CALLS):
            torch.relu(self.small)

    def sample(self):
        """One of each."""
        self.product()  # its operands come near
        self.samples["core"].append(seconds_of(self.products) / PRODUCTS)
        self.samples["call"].append(seconds_of(self.calls) / CALLS)
        pages = mmap.mmap(-1, BLOCK, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        block = torch.frombuffer(pages, dtype=torch.float32)
        self.samples["page"].append(seconds_of(lambda: block.fill_(1)) / (BLOCK // PAGE))
        self.fills.append(seconds_of(lambda: block.fill_(1)))
        del block
        self.frees.append(seconds_of(pages.close))
        self.turn = (self.turn + 1) % len(self.far)
        self.samples["memory"].append(seconds_of(lambda: self.far[self.turn].mul_(1)))

    def limited(self):
        """The samples, none of them above MOST times their median."""
        return {name: [min(sample, MOST * statistics.median(samples)) for sample in samples] for name, samples in self.samples.items()}

    def first_touch(self):
        """s of a page without the pass over it, until it is given back."""
        return max(0.0, min(self.samples["page"]) + (min(self.frees) - min(self.fills)) / (BLOCK // PAGE))
