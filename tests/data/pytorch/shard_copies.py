#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records what PyTorch's DDP and FSDP read and write beside their collectives: bytes of every copy, conversion and division
of a whole unit's weights or gradients in one training step, of a chain of linear layers.

The process group is PyTorch's fake one, which moves nothing; nothing has values. What concerns a rank's own piece alone is
left out, as the program leaves it out.

Usage: shard_copies.py > shard_copies.json
"""
import json
import os
import sys

sys.dont_write_bytecode = True

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecision, MixedPrecisionPolicy, fully_shard
from torch.distributed.fsdp.wrap import ModuleWrapPolicy
from torch.distributed.tensor import DTensor
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

RANKS, LAYERS, WIDTH, BATCH = 8, 3, 64, 2
PASSES = ("cat", "chunk_cat_mixed_dtype", "split_with_sizes_copy", "_to_copy", "copy_", "div_", "mul", "mul_")


class Counter(TorchDispatchMode):
    """Bytes of the passes that touch a whole layer's matrix."""

    def __init__(self):
        super().__init__()
        self.bytes = {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if DTensor in types:
            return NotImplemented
        made = func(*args, **(kwargs or {}))
        name = func.__name__.split(".")[0]
        if name in PASSES:
            given = [t for t in tree_leaves(args) if isinstance(t, torch.Tensor) and t.numel() > 1]
            written = [t for t in tree_leaves((kwargs or {}).get("out", made)) if isinstance(t, torch.Tensor)]
            if name == "copy_":
                given = given[1:]
            if name in ("chunk_cat_mixed_dtype", "split_with_sizes_copy"):
                written = tree_leaves(kwargs["out"])
            read, wrote = sum(t.nbytes for t in given), sum(t.nbytes for t in written)
            if max(sum(t.numel() for t in given), sum(t.numel() for t in written)) >= WIDTH * WIDTH:
                self.bytes[name] = self.bytes.get(name, 0) + read + wrote
        return made


class Chain(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(LAYERS))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def wrapped(model, sharded, precision, reduce, views):
    half = torch.bfloat16 if precision == "bf16-mixed" else None
    reduced = torch.float32 if reduce == "fp32" else None
    if sharded == "fsdp2":
        mesh, policy = init_device_mesh("cpu", (RANKS,)), MixedPrecisionPolicy(param_dtype=half, reduce_dtype=reduced)
        for layer in model.layers:
            fully_shard(layer, mesh=mesh, mp_policy=policy)
        return fully_shard(model, mesh=mesh, mp_policy=policy)
    if sharded == "fsdp1":
        return FullyShardedDataParallel(model, auto_wrap_policy=ModuleWrapPolicy({nn.Linear}), use_orig_params=False,
                                        mixed_precision=MixedPrecision(param_dtype=half, reduce_dtype=reduced),
                                        device_id=torch.device("cpu"))
    model = nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=views)
    model.register_comm_hook(None, unreduced)  # the fake group gives DDP no result
    return model


def unreduced(_, bucket):
    done = torch.futures.Future()
    done.set_result(bucket.buffer())
    return done


def case(sharded, precision="fp32", reduce="same", views=False):
    model = wrapped(Chain(), sharded, precision, reduce, views)
    updater = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.zeros(BATCH, WIDTH, dtype=torch.bfloat16 if precision == "bf16-mixed" and sharded == "fsdp2" else None)
    for _ in range(2):  # the first step of a loop is another one
        counter = Counter()
        with counter:
            model(x).sum().backward()
        updater.step()
        updater.zero_grad()
    return {"sharded": sharded, "precision": precision, "reduce": reduce, "views": views, "bytes": counter.bytes}


def main():
    os.environ.update(MASTER_ADDR="localhost", MASTER_PORT="29512")
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=RANKS)
    cases = [case("ddp"), case("ddp", views=True)]
    for sharded in ("fsdp1", "fsdp2"):
        cases += [case(sharded), case(sharded, "bf16-mixed"), case(sharded, "bf16-mixed", "fp32")]
    print(json.dumps({"torch": torch.__version__, "ranks": RANKS, "layers": LAYERS, "width": WIDTH, "cases": cases},
                     indent=1))


if __name__ == "__main__":
    main()
