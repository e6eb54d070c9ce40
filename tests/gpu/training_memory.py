#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Peak memory of real training steps in PyTorch on this GPU, beside what Memscape predicts for them.

    training_memory.py CLI OUT.json [--only NAME…] [--check]

Each case is a network of transformers with random weights, described to both sides by the same config.json,
trained for three steps in a process of its own; the third step's max_memory_allocated and
max_memory_reserved are compared with peak_allocated and peak_reserved; its time stands beside the predicted
floor. The loop takes the loss alone: nothing names the logits. Ends with 1 when the mean error of
the allocated peaks is above 1 % or one is above 3 %, with 3 when there is no GPU.

--check needs no GPU: every case runs one step on the CPU with two layers and few tokens, and the prediction is made; no
bytes are compared."""
import argparse
import contextlib
import copy
import json
import multiprocessing
import pathlib
import subprocess
import sys
import tempfile
import time

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from transformers import (AutoModelForCausalLM, AutoModelForMaskedLM, BertConfig, GPT2Config, GPTNeoXConfig, LlamaConfig,
                          MistralConfig, OPTConfig, Qwen2Config)

NO_DROPOUT = {"attn_pdrop": 0.0, "embd_pdrop": 0.0, "resid_pdrop": 0.0}
NETWORKS = {
    "gpt2": GPT2Config(**NO_DROPOUT),
    "gpt2-medium": GPT2Config(n_embd=1024, n_layer=24, n_head=16, **NO_DROPOUT),
    "llama-1b": LlamaConfig(hidden_size=2048, intermediate_size=5504, num_hidden_layers=16, num_attention_heads=16,
                            num_key_value_heads=16, vocab_size=32000),
    "llama-gqa": LlamaConfig(hidden_size=2048, intermediate_size=8192, num_hidden_layers=12, num_attention_heads=32,
                             num_key_value_heads=8, vocab_size=128256, tie_word_embeddings=True),
    "mistral": MistralConfig(hidden_size=1536, intermediate_size=4096, num_hidden_layers=12, num_attention_heads=16,
                             num_key_value_heads=4, vocab_size=32000, sliding_window=None),
    "qwen2-0.5b": Qwen2Config(hidden_size=896, intermediate_size=4864, num_hidden_layers=24, num_attention_heads=14,
                              num_key_value_heads=2, vocab_size=151936, tie_word_embeddings=True),
    "pythia-410m": GPTNeoXConfig(hidden_size=1024, intermediate_size=4096, num_hidden_layers=24, num_attention_heads=16,
                                 vocab_size=50304, hidden_dropout=0.0, attention_dropout=0.0),
    "opt-125m": OPTConfig(dropout=0.0, attention_dropout=0.0),
    "bert-base": BertConfig(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0),
}

# network, batch, sequence, precision, optimizer, implementation, checkpointing, attention
CASES = [
    ("gpt2", 8, 1024, "fp32", "adamw", "foreach", "none", "eager"),
    ("gpt2", 8, 1024, "fp32", "adamw", "fused", "none", "eager"),
    ("gpt2", 8, 1024, "fp32", "adamw", "loop", "none", "eager"),
    ("gpt2", 8, 1024, "fp32", "sgd", "foreach", "none", "eager"),
    ("gpt2", 8, 1024, "fp32", "momentum", "foreach", "none", "eager"),
    ("gpt2", 8, 1024, "bf16-autocast", "adamw", "foreach", "none", "eager"),
    ("gpt2", 8, 1024, "bf16-autocast", "adamw", "foreach", "none", "flash"),
    ("gpt2", 8, 1024, "bf16-autocast", "adamw", "foreach", "block", "flash"),
    ("gpt2", 8, 1024, "fp32", "adamw", "foreach", "none", "efficient"),
    ("gpt2-medium", 4, 1024, "bf16", "adamw", "foreach", "none", "flash"),
    ("gpt2-medium", 4, 1024, "fp32", "adamw", "foreach", "block", "eager"),
    ("llama-1b", 2, 1024, "fp32", "adamw", "foreach", "none", "eager"),
    ("llama-1b", 4, 2048, "bf16", "adamw", "fused", "none", "flash"),
    ("llama-1b", 4, 2048, "bf16", "adamw", "fused", "block", "flash"),
    ("llama-1b", 4, 2048, "bf16-autocast", "adamw", "foreach", "block", "flash"),
    ("llama-1b", 4, 1024, "bf16", "adafactor", "auto", "none", "flash"),
    ("llama-gqa", 2, 2048, "bf16", "adamw", "foreach", "none", "flash"),
    ("llama-gqa", 2, 2048, "bf16-autocast", "adamw", "foreach", "block", "efficient"),
    ("mistral", 4, 1024, "bf16-autocast", "adamw", "foreach", "none", "eager"),
    ("mistral", 4, 1024, "bf16", "sgd", "foreach", "none", "flash"),
    ("qwen2-0.5b", 4, 1024, "bf16-autocast", "adamw", "foreach", "none", "flash"),
    ("qwen2-0.5b", 2, 1024, "fp32", "adamw", "foreach", "block", "eager"),
    ("pythia-410m", 4, 1024, "bf16-autocast", "adamw", "foreach", "none", "eager"),
    ("pythia-410m", 4, 1024, "bf16", "adamw", "loop", "none", "flash"),
    ("opt-125m", 8, 1024, "fp32", "adamw", "foreach", "none", "eager"),
    ("opt-125m", 8, 1024, "bf16-autocast", "adamw", "foreach", "block", "flash"),
    ("bert-base", 32, 512, "fp32", "adamw", "foreach", "none", "eager"),
    ("bert-base", 32, 512, "bf16-autocast", "adamw", "foreach", "none", "flash"),
]
KEYS = ("batch", "sequence", "precision", "optimizer", "optimizer_implementation", "checkpointing", "attention")
STYLES = {"foreach": {"foreach": True}, "fused": {"fused": True}, "loop": {"foreach": False}, "auto": {}}
BACKENDS = {"flash": SDPBackend.FLASH_ATTENTION, "efficient": SDPBackend.EFFICIENT_ATTENTION}


def name_of(case):
    return "-".join(str(word) for word in case)


def make_optimizer(kind, style, parameters):
    if kind in ("sgd", "momentum"):
        return torch.optim.SGD(parameters, lr=1e-3, momentum=0.9 if kind == "momentum" else 0.0, **STYLES[style])
    if kind == "adafactor":
        return torch.optim.Adafactor(parameters, lr=1e-3)
    return torch.optim.AdamW(parameters, lr=1e-4, **STYLES[style])


def make_network(name, precision, attention, checkpointing, device):
    auto = AutoModelForMaskedLM if name.startswith("bert") else AutoModelForCausalLM
    config = copy.deepcopy(NETWORKS[name])
    if device == "cpu":  # --check: two layers and few words show that the loop runs
        config.num_hidden_layers, config.vocab_size = 2, 500
    with torch.device(device):
        network = auto.from_config(config, attn_implementation="eager" if attention == "eager" else "sdpa")
    if precision == "bf16":
        network = network.to(torch.bfloat16)
    if checkpointing == "block":
        network.gradient_checkpointing_enable({"use_reentrant": False})
    network.config.use_cache = False
    return network.train()


def train(case, device, steps):
    """The highest allocated and reserved bytes of the last of `steps` steps (zeros on the CPU)."""
    name, batch, sequence, precision, optimizer_kind, style, checkpointing, attention = case
    torch.manual_seed(1)
    network = make_network(name, precision, attention, checkpointing, device)
    optimizer = make_optimizer(optimizer_kind, style, network.parameters())
    tokens = torch.randint(0, network.config.vocab_size, (batch, sequence), device=device)
    for step in range(steps):
        if step == steps - 1 and device == "cuda":
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
            began = time.perf_counter()
        half = torch.autocast(device, dtype=torch.bfloat16) if precision.endswith("autocast") else contextlib.nullcontext()
        kernel = sdpa_kernel(BACKENDS[attention]) if attention != "eager" and device == "cuda" else contextlib.nullcontext()
        optimizer.zero_grad(set_to_none=True)
        with kernel:
            with half:
                loss = network(input_ids=tokens, labels=tokens).loss
            loss.backward()
        optimizer.step()
    if not torch.isfinite(loss):
        raise SystemExit(f"{name_of(case)}: the loss is not finite")
    if device == "cpu":
        return {"allocated": 0, "reserved": 0}
    torch.cuda.synchronize()
    return {"allocated": torch.cuda.max_memory_allocated(), "reserved": torch.cuda.max_memory_reserved(),
            "seconds": time.perf_counter() - began}


def run_case(case, check, pipe):
    try:
        if check:
            torch.set_num_threads(1)
            case = (case[0], 1, 32) + case[3:]
        pipe.send(train(case, "cpu" if check else "cuda", 1 if check else 3))
    except (RuntimeError, ValueError, SystemExit) as error:
        pipe.send({"error": str(error).splitlines()[0]})


def measured(case, check):
    """In a process of its own, so that no case inherits another's cached segments."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    process = context.Process(target=run_case, args=(case, check, there))
    process.start()
    there.close()
    try:
        return here.recv()
    except EOFError:
        return {"error": "the process ended without an answer"}
    finally:
        process.join()


def predicted(cli, case, folder):
    config = folder / f"{case[0]}.json"
    description = NETWORKS[case[0]].to_dict()
    description["architectures"] = ["BertForMaskedLM"] if case[0].startswith("bert") else description.get("architectures")
    config.write_text(json.dumps(description))
    answer = folder / "prediction.json"
    words = [f"{key}={value}" for key, value in zip(KEYS, case[1:])]
    done = subprocess.run([cli, "predict", "training-memory", f"model={config}", *words, "advice=none", "keeps_logits=false", "--device", "nvidia-h200",
                           "-o", str(answer)], capture_output=True, text=True, check=False)
    if done.returncode:
        return {"error": done.stderr.strip()}
    figures = json.loads(answer.read_text())["predicted"]["figures"]
    return {"allocated": figures["peak_allocated"]["value"], "reserved": figures["peak_reserved"]["value"],
            "seconds": figures["step_time"]["value"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cli")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if not options.check and not pathlib.Path("/dev/nvidia0").exists():
        print("no NVIDIA GPU on this machine: nothing to compare here", file=sys.stderr)
        return 3
    rows, failed = [], 0
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            if options.only and not any(word in name_of(case) for word in options.only):
                continue
            row = {"case": dict(zip(("network",) + KEYS, case)), "measured": measured(case, options.check),
                   "predicted": predicted(options.cli, case, pathlib.Path(folder))}
            problem = row["measured"].get("error") or row["predicted"].get("error")
            if problem:
                failed += 1
                print(f"{name_of(case)}: {problem}", flush=True)
            elif options.check:
                print(f"{name_of(case)}: runs; predicted {row['predicted']['allocated'] / 2**20:.1f} MiB", flush=True)
            else:
                row["errors"] = {key: row["predicted"][key] / row["measured"][key] - 1 for key in ("allocated", "reserved", "seconds")}
                print(f"{name_of(case)}: allocated {row['measured']['allocated'] / 2**20:.1f} MiB ({row['errors']['allocated']:+.2%}), "
                      f"reserved {row['measured']['reserved'] / 2**20:.1f} MiB ({row['errors']['reserved']:+.2%}), "
                      f"step {row['measured']['seconds'] * 1e3:.1f} ms (floor {row['errors']['seconds']:+.1%})", flush=True)
            rows.append(row)
    summary = {"torch": torch.__version__, "rows": rows}
    errors = [abs(row["errors"]["allocated"]) for row in rows if "errors" in row]
    if errors:
        summary |= {"device": torch.cuda.get_device_name(0), "mean_error": sum(errors) / len(errors), "worst_error": max(errors)}
        print(f"{len(errors)} steps: mean error {summary['mean_error']:.2%}, worst {summary['worst_error']:.2%}")
        failed += summary["mean_error"] > 0.01 or summary["worst_error"] > 0.03
    options.out.write_text(json.dumps(summary, indent=2))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
