#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records what one rank of DeepSpeed allocates and frees in training steps of transformers' LLaMA, ZeRO 1, 2 and 3.

No GPU and no second process: the process group is PyTorch's fake one, which moves nothing (so that numbers are not those of a
training), tensors are real ones on the CPU (DS_ACCELERATOR=cpu), attention is written out. Streams are not seen. A sharded
model is made whole and cut by deepspeed.initialize. Bytes of at most 8 are numbers and are left out.

Per phase of two steps: the highest moment and what is left, in bytes above what lived before the model was made. "initialize"
is deepspeed.initialize.

Usage: deepspeed_steps.py > deepspeed_steps.json
"""
import contextlib
import gc
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
os.environ.setdefault("DS_ACCELERATOR", "cpu")
os.environ.setdefault("OMP_NUM_THREADS", "1")
for name, value in {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "4", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29511"}.items():
    os.environ.setdefault(name, value)

import torch
import torch.distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore

import deepspeed
from transformers.models.llama import modeling_llama

from model_steps import llama
from sharded_steps import ResizingRecorder

RANKS = 4
NUMBER = 8  # B
CONFIG = {"model": "llama", "hidden": 64, "layers": 4, "heads": 4, "kv_heads": 2, "ffn": 120, "vocab": 204, "batch": 2,
          "sequence": 20, "attention": "eager"}


class DeviceRecorder(ResizingRecorder):
    """Leaves out shapes without bytes."""

    def watch(self, storage):
        if storage.device.type != "meta":
            super().watch(storage)


def totals(live, events):
    highest = live
    for change in events:
        if abs(change) > NUMBER:
            live += change
            highest = max(highest, live)
    return {"highest": highest, "left": live}


def step_case(stage, precision="fp32", accumulation=1, checkpointed=False, clip=0.0, zero=None, more=None, lora=0, keep=None):
    torch.manual_seed(0)
    gc.collect()
    recorder = DeviceRecorder([])
    phases, live = {}, 0
    with recorder, recorder.watching_resizes():
        def record(name):
            nonlocal live
            gc.collect() if name == "initialize" else None
            events = recorder.taken()
            phases[name] = totals(live, events)
            if keep is not None:
                keep[name] = events
            live = phases[name]["left"]
        torch.set_default_dtype(torch.float32 if precision == "fp32" else torch.bfloat16 if precision == "bf16-mixed"
                                else torch.float16)
        model = llama(CONFIG, "eager")
        torch.set_default_dtype(torch.float32)
        modeling_llama.LlamaRotaryEmbedding.forward = lambda self, x, position_ids: tuple(
            torch.ones(1, CONFIG["sequence"], CONFIG["hidden"] // CONFIG["heads"], dtype=x.dtype) for _ in range(2))
        modeling_llama.create_causal_mask = lambda inputs_embeds, **rest: torch.zeros(
            CONFIG["batch"], 1, CONFIG["sequence"], CONFIG["sequence"], dtype=inputs_embeds.dtype)
        if lora:
            from peft import LoraConfig, get_peft_model
            model = get_peft_model(model, LoraConfig(r=lora, target_modules=["q_proj", "v_proj"]))
        if checkpointed:
            model.gradient_checkpointing_enable({"use_reentrant": False, "preserve_rng_state": False})
            model.train()
        tokens = torch.randint(0, 10, (CONFIG["batch"], CONFIG["sequence"]))
        targets, positions = torch.zeros_like(tokens), torch.arange(CONFIG["sequence"])[None]
        record("model")
        config = {"train_micro_batch_size_per_gpu": CONFIG["batch"], "gradient_accumulation_steps": accumulation,
                  "zero_optimization": {"stage": stage, **(zero or {})}, "zero_allow_untested_optimizer": True,
                  "gradient_clipping": clip, "steps_per_print": 10**9, **(more or {})}
        if precision == "bf16-mixed":
            config["bf16"] = {"enabled": True, **config.get("bf16", {})}
        if precision == "fp16-mixed":
            config["fp16"] = {"enabled": True, "loss_scale": 1}
        updater = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-6, fused=True)
        engine, *_ = deepspeed.initialize(model=model, optimizer=updater, config=config)
        record("initialize")
        for step in range(2):
            output = None
            for i in range(accumulation):
                output = engine(input_ids=tokens, position_ids=positions, shift_labels=targets, labels=targets)
                record(f"{step} forward {i}")
                engine.backward(output.loss)
                record(f"{step} backward {i}")
                engine.step()
                record(f"{step} step {i}")
        engine.destroy()
    return {**CONFIG, "stage": stage, "precision": precision, "ranks": RANKS, "accumulation": accumulation,
            "checkpointed": checkpointed, "clip": clip, "zero": zero or {}, "more": more or {}, "lora": lora, "phases": phases}


SIZES = {"reduce_bucket_size": 20000, "stage3_param_persistence_threshold": 1000, "stage3_prefetch_bucket_size": 20000}
FP32_SUMS = {"data_types": {"grad_accum_dtype": "fp32"}}


def gathered(output_tensor, input_tensor, group=None, async_op=False):
    """The fake group leaves outputs as they are: uninitialized numbers would let the step be skipped."""
    for part in output_tensor.view(-1).chunk(RANKS):
        part.copy_(input_tensor.view(-1))
    return dist.barrier(async_op=True) if async_op else None


def start():
    """Of the ranks the one that has its gradients' block soonest: main() says which."""
    dist.init_process_group("fake", rank=int(os.environ["RANK"]), world_size=RANKS, store=FakeStore())
    dist.all_gather_into_tensor = gathered
    deepspeed.init_distributed()


OVERLAPPED = ({"zero": {"overlap_comm": True}}, {"zero": {"overlap_comm": True}, "accumulation": 2})
SETTINGS = {1: ({"precision": "fp32"}, {}, {"accumulation": 2}, {"accumulation": 3, "checkpointed": True, "clip": 1.0},
                {"zero": {"reduce_bucket_size": 10000}}, {"lora": 4})}
SETTINGS[2] = SETTINGS[1] + OVERLAPPED + ({"accumulation": 2, "more": FP32_SUMS},)
SETTINGS[3] = SETTINGS[1] + ({"accumulation": 2, "more": FP32_SUMS}, {"zero": {"stage3_prefetch_bucket_size": 60000}})


def stage_cases(stage, settings):
    start()
    cases = []
    for settings in settings:
        print(stage, settings, file=sys.stderr)
        cases.append(step_case(stage, **{"precision": "bf16-mixed", **settings,
                                         "zero": {**SIZES, **settings.get("zero", {})}}))
    return cases


def main():
    cases = []
    for stage, rank in ((1, 0), (1, RANKS - 1), (2, RANKS - 1), (3, 0)):
        ran = subprocess.run([sys.executable, __file__, str(stage)], env={**os.environ, "RANK": str(rank)},
                             stdout=subprocess.PIPE, check=True, text=True)
        cases += json.loads(ran.stdout.splitlines()[-1])
    print(json.dumps({"about": __doc__.strip(), "torch": torch.__version__, "deepspeed": deepspeed.__version__,
                      "cases": cases}, separators=(",", ":")))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        number = int(sys.argv[1])
        is_last_of_stage_1 = number == 1 and os.environ["RANK"] != "0"
        print(json.dumps(stage_cases(number, OVERLAPPED if is_last_of_stage_1 else SETTINGS[number])))
    else:
        main()
