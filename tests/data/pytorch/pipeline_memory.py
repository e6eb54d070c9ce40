# SPDX-License-Identifier: Apache-2.0
"""What the ranks of a real pipeline keep for backward: pipeline_memory.json.

    python pipeline_memory.py > pipeline_memory.json

torch.distributed.pipelining runs a chain of linear layers and ReLUs on the processes of one CPU (gloo). Each rank counts,
behind every forward, the bytes of the storages that autograd has packed and not given back, parameters apart.
"""

import json
import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe, ScheduleInterleaved1F1B
from torch.multiprocessing.reductions import StorageWeakRef

WIDTH, LAYERS, BATCH = 64, 8, 16
CASES = [("gpipe", 2, 1, 6), ("1f1b", 2, 1, 6), ("1f1b", 4, 1, 8), ("interleaved", 2, 2, 6), ("interleaved", 4, 2, 8)]
KINDS = {"gpipe": ScheduleGPipe, "1f1b": Schedule1F1B, "interleaved": ScheduleInterleaved1F1B}


class Kept:
    """Storages that a graph has packed: alive as long as they are not freed."""

    def __init__(self, modules):
        self.owned = {p.untyped_storage()._cdata for m in modules for p in m.parameters()}
        self.packed, self.most = {}, 0

    def pack(self, tensor):
        storage = tensor.untyped_storage()
        if storage._cdata not in self.owned:
            self.packed[storage._cdata] = (StorageWeakRef(storage), storage.nbytes())
        return tensor

    def count(self, *_):
        self.packed = {key: one for key, one in self.packed.items() if not one[0].expired()}
        self.most = max(self.most, sum(size for _, size in self.packed.values()))


def run(rank, kind, ranks, chunks, micro_batches, answers):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29611")
    dist.init_process_group("gloo", rank=rank, world_size=ranks)
    torch.manual_seed(0)
    each = LAYERS // (ranks * chunks)
    modules = [torch.nn.Sequential(*[m for _ in range(each) for m in (torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU())])
               for _ in range(chunks)]
    stages = [PipelineStage(m, c * ranks + rank, ranks * chunks, torch.device("cpu")) for c, m in enumerate(modules)]
    kept = Kept(modules)
    for module in modules:
        module.register_forward_hook(kept.count)
    schedule = KINDS[kind](stages if chunks > 1 else stages[0], micro_batches,
                           loss_fn=lambda y, target: torch.nn.functional.mse_loss(y, target))
    x, target = torch.randn(micro_batches * BATCH, WIDTH), torch.randn(micro_batches * BATCH, WIDTH)
    for _ in range(2):
        kept.packed, kept.most = {}, 0
        with torch.autograd.graph.saved_tensors_hooks(kept.pack, lambda tensor: tensor):
            schedule.step(*([x] if rank == 0 else []), **({"target": target} if rank == ranks - 1 else {}))
    answers[rank] = kept.most
    dist.destroy_process_group()


def main():
    cases = []
    for kind, ranks, chunks, micro_batches in CASES:
        with mp.Manager() as manager:
            answers = manager.dict()
            mp.spawn(run, (kind, ranks, chunks, micro_batches, answers), nprocs=ranks)
            cases.append({"schedule": kind, "ranks": ranks, "chunks": chunks, "micro_batches": micro_batches,
                          "kept": [answers[rank] for rank in range(ranks)]})
        print(cases[-1], file=sys.stderr)
    print(json.dumps({"made_by": "pipeline_memory.py", "torch": torch.__version__, "width": WIDTH, "layers": LAYERS,
                      "batch": BATCH, "cases": cases}, indent=1))


if __name__ == "__main__":
    main()
