#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records what one rank of PyTorch's FSDP allocates and frees in a training step: fully_shard (FSDP 2) and
FullyShardedDataParallel (FSDP 1) around transformers' LLaMA, a unit for each layer and the root.

No GPU and no second process: the process group is PyTorch's fake one, which moves nothing, and tensors are fake ones on the
CPU. A storage that FSDP frees and fills again (resize_) is a free and an allocation. Steps are those of a loop that has run
before. Streams are not seen: what CUDA's allocator cannot use again in another stream is no matter of these bytes.

A mode that watches operators does not see a storage resized: that call is wrapped, too. Events are signed bytes in time order.

Usage: sharded_steps.py > sharded_steps.json
"""
import contextlib
import functools
import json
import os
import sys

sys.dont_write_bytecode = True

import torch
import torch.distributed as dist
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import (FullyShardedDataParallel, MixedPrecision, MixedPrecisionPolicy, ShardingStrategy,
                                    fully_shard)
from torch.distributed.tensor import DTensor
from torch.distributed.fsdp.wrap import ModuleWrapPolicy, size_based_auto_wrap_policy
from torch.multiprocessing.reductions import StorageWeakRef
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils.checkpoint import checkpoint

from model_steps import CudaAttention, llama
from training_steps import Recorder

RANKS = 4


class ResizingRecorder(Recorder):
    """For storages that are emptied and filled again."""

    def watch(self, storage):
        now = storage.nbytes()
        ref, before = self.live.get(storage._cdata, (None, 0))
        if now == before:
            return
        if before:
            self.events.append(-before)
        if now:
            self.events.append(now)
        self.live[storage._cdata] = (ref or StorageWeakRef(storage), now)

    def poll(self):
        dead = [key for key, (ref, _) in self.live.items() if ref.expired()]
        self.events += sorted(-n for n in (self.live.pop(key)[1] for key in dead) if n)

    @contextlib.contextmanager
    def watching_resizes(self):
        resize = torch.UntypedStorage.resize_

        def watched(storage, size):
            self.poll()
            resize(storage, size)
            self.watch(storage)
        torch.UntypedStorage.resize_ = watched
        try:
            yield
        finally:
            torch.UntypedStorage.resize_ = resize

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if DTensor in types:
            return NotImplemented  # then its local tensors come here
        return super().__torch_dispatch__(func, types, args, kwargs)


CONFIG = {"model": "llama", "hidden": 64, "layers": 4, "heads": 4, "kv_heads": 2, "ffn": 120, "vocab": 204, "batch": 2,
          "sequence": 20}


def local(t):
    return t._local_tensor if hasattr(t, "_local_tensor") else t


def wrapped(model, mesh, fsdp, precision, reduce, reshard, wrap):
    """`wrap`: "block", "whole", or a number of parameters for size_based_auto_wrap_policy."""
    block = type(model.model.layers[0])
    half = precision == "bf16-mixed"
    if fsdp == 2:
        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16 if half else None,
                                      reduce_dtype=torch.float32 if reduce == "fp32" else None)
        for layer in model.model.layers if wrap == "block" else ():
            fully_shard(layer, mesh=mesh, mp_policy=policy, **({} if reshard else {"reshard_after_forward": False}))
        return fully_shard(model, mesh=mesh, mp_policy=policy)
    policy = MixedPrecision(param_dtype=torch.bfloat16 if half else None,
                            reduce_dtype=torch.float32 if reduce == "fp32" else None)
    units = None if wrap == "whole" else ModuleWrapPolicy({block}) if wrap == "block" else functools.partial(
        size_based_auto_wrap_policy, min_num_params=wrap)
    return FullyShardedDataParallel(
        model, auto_wrap_policy=units, mixed_precision=policy, use_orig_params=False,
        sharding_strategy=ShardingStrategy.FULL_SHARD if reshard else ShardingStrategy.SHARD_GRAD_OP,
        device_id=torch.device("cpu"))


def unreduced(model, fsdp, is_unreduced):
    """What Accelerate's and Lightning's no_sync() enter for all micro-batches but the last."""
    if fsdp == 1:
        return model.no_sync() if is_unreduced else contextlib.nullcontext()
    model.set_requires_gradient_sync(not is_unreduced)
    return contextlib.nullcontext()


def step_case(mesh, fsdp, precision="fp32", reduce="same", reshard=True, accumulation=1, checkpointed=False, no_sync=False,
              wrap="block"):
    torch.manual_seed(0)
    config = CONFIG
    with FakeTensorMode(allow_non_fake_inputs=True):
        torch.set_default_dtype(torch.bfloat16 if precision == "bf16" else torch.float32)
        model = llama(config, "flash" if precision != "fp32" else "efficient")
        torch.set_default_dtype(torch.float32)
        kernel = "flash" if precision != "fp32" else "efficient"
        if checkpointed:
            model.gradient_checkpointing_enable({
                "use_reentrant": False, "preserve_rng_state": False,
                "context_fn": lambda: (contextlib.nullcontext(), CudaAttention(kernel))})
            model.train()
        model = wrapped(model, mesh, fsdp, precision, reduce, reshard, wrap)
        tokens = torch.empty(config["batch"], config["sequence"], dtype=torch.long)
        targets, positions = torch.empty_like(tokens), torch.empty(1, config["sequence"], dtype=torch.long)
        updater = torch.optim.AdamW(model.parameters(), lr=0.1, foreach=True)

        def step(record=lambda name: None):
            kept = None
            for i in range(accumulation):
                with unreduced(model, fsdp, no_sync and i + 1 < accumulation):
                    with CudaAttention(kernel):
                        kept = model(input_ids=tokens, position_ids=positions, shift_labels=targets, labels=targets)
                    record(f"forward {i}")
                    kept.loss.backward()
                record(f"backward {i}")
            updater.step()
            record("optimizer")
            updater.zero_grad()
            record("zero")
            return kept

        step()
        events = {}
        state = [local(t) for s in updater.state.values() for t in s.values() if isinstance(t, torch.Tensor)]
        known = [local(p) for p in model.parameters()] + list(model.buffers()) + [tokens, targets, positions] + state
        shards = sum(local(p).untyped_storage().nbytes() for p in model.parameters())
        recorder = ResizingRecorder(known)
        del known, state
        with recorder, recorder.watching_resizes():
            kept = step(lambda name: events.__setitem__(name, recorder.taken()))
        del kept
    return {**config, "fsdp": fsdp, "precision": precision, "attention": kernel, "reduce": reduce, "reshard": reshard,
            "ranks": RANKS, "accumulation": accumulation, "checkpointed": checkpointed, "no_sync": no_sync, "wrap": wrap,
            "shards": shards, "events": events}


def main():
    dist.init_process_group("fake", rank=0, world_size=RANKS, store=FakeStore())
    mesh = init_device_mesh("cpu", (RANKS,))
    cases = []
    for fsdp in (2, 1):
        for settings in ({}, {"precision": "bf16"}, {"precision": "bf16-mixed"},
                         {"precision": "bf16-mixed", "reduce": "fp32"}, {"reshard": False}, {"accumulation": 2},
                         {"precision": "bf16-mixed", "checkpointed": True}, {"accumulation": 3, "no_sync": True},
                         {"precision": "bf16", "accumulation": 2, "no_sync": True},
                         {"precision": "bf16-mixed", "reduce": "fp32", "accumulation": 3, "no_sync": True},
                         {"wrap": "whole"}, {"wrap": "whole", "precision": "bf16-mixed", "checkpointed": True}):
            print(fsdp, settings, file=sys.stderr)
            cases.append(step_case(mesh, fsdp, **settings))
    for least in (20000, 4000):  # the MLP in a unit around all layers; matrices, k and v of a layer in one
        for settings in ({}, {"precision": "bf16-mixed", "accumulation": 2}, {"reshard": False}, {"checkpointed": True}):
            print(least, settings, file=sys.stderr)
            cases.append(step_case(mesh, 1, **settings, wrap=least))
    print(json.dumps({"about": __doc__.strip(), "torch": torch.__version__, "cases": cases}, separators=(",", ":")))


if __name__ == "__main__":
    main()
