#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What LitGPT's networks keep for backward, plain and with LoRA, measured on a CPU.

    python3 tests/data/pytorch/litgpt_networks.py > tests/data/pytorch/litgpt_networks.json

Needs torch, litgpt, lightning. Small models of its architectures run forward in training mode under
torch.autograd.graph.saved_tensors_hooks: to their logits ("logits"), and through litgpt's chunked_cross_entropy as its
finetuning scripts call it, behind Fabric's conversion of logits ("loss"). Bytes are counted once per storage; parameters, buffers, what the caller passed in and
tensors without dimensions are left out.
"""
import json
import sys

import torch
from lightning.fabric.plugins.precision.half import HalfPrecision
from litgpt import lora, model
from litgpt.utils import chunked_cross_entropy

SIZES = dict(block_size=300, vocab_size=96, padded_vocab_size=96, n_layer=2, n_head=4, n_embd=64, intermediate_size=112)
RMS = dict(SIZES, norm_class_name="RMSNorm", mlp_class_name="LLaMAMLP", bias=False, rotary_percentage=1.0,
           parallel_residual=False)
NORM = dict(SIZES, norm_class_name="LayerNorm", mlp_class_name="GptNeoxMLP", parallel_residual=True)
# model_type of transformers, what its config.json says beside the common sizes, LitGPT's Config
MODELS = {
    "llama": ({"num_key_value_heads": 4}, RMS),
    "mistral": ({"num_key_value_heads": 2}, dict(RMS, n_query_groups=2)),
    "gpt_neox": ({"rotary_pct": 0.25, "use_parallel_residual": True}, dict(NORM, rotary_percentage=0.25)),
    "phi": ({"partial_rotary_factor": 0.5},
            dict(NORM, rotary_percentage=0.5, shared_attention_norm=True, lm_head_bias=True, gelu_approximate="tanh")),
}
# model_type, dtype, LoRA's parts
CASES = [(name, dtype, parts) for name in MODELS
         for dtype, parts in (("float32", ""), ("bfloat16", ""), ("bfloat16", "query value"), ("bfloat16", "query key value"),
                              ("bfloat16", "query value projection mlp"))]
BATCH, SEQUENCE, RANK, DROPOUT = 2, 150, 4, 0.1


def built(name, dtype, parts):
    torch.set_default_dtype(getattr(torch, dtype))
    config = MODELS[name][1]
    if parts:
        flags = {f"lora_{part}": True for part in parts.split()}
        made = lora.GPT(lora.Config(name="measured", lora_r=RANK, lora_alpha=8, lora_dropout=DROPOUT, **config, **flags))
        lora.mark_only_lora_as_trainable(made)
    else:
        made = model.GPT(model.Config(name="measured", **config))
    torch.set_default_dtype(torch.float32)
    made.max_seq_length = SEQUENCE
    return made.train()


def kept(run, network, given):
    apart = {t.untyped_storage().data_ptr() for t in [*network.parameters(), *network.buffers(), *given]}
    packed = []

    def pack(tensor):
        packed.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        result = run()
    sizes = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in packed if t.dim()}
    del result
    return sum(size for at, size in sizes.items() if at not in apart)


def measure(name, dtype, parts):
    torch.manual_seed(0)
    network = built(name, dtype, parts)
    tokens, targets = (torch.randint(0, 96, (BATCH, SEQUENCE)) for _ in range(2))

    def returned(logits):  # by Fabric's wrapper of the network
        return HalfPrecision("bf16-true").convert_output(logits) if dtype == "bfloat16" else logits

    def loss():
        if not parts:  # litgpt/finetune/full.py
            return chunked_cross_entropy(returned(network(tokens))[..., :-1, :], targets[..., 1:])
        logits = returned(network(tokens, lm_head_chunk_size=128))  # litgpt/finetune/lora.py
        logits[-1] = logits[-1][..., :-1, :]
        return chunked_cross_entropy(logits, targets[..., 1:])

    trained = sum(p.numel() for p in network.parameters() if p.requires_grad)
    given = (tokens, targets)
    return {"model_type": name, "config": MODELS[name][0], "dtype": dtype, "parts": parts, "trained": trained,
            "parameters": sum(p.numel() for p in network.parameters()),
            "logits": kept(lambda: network(tokens), network, given), "loss": kept(loss, network, given)}


def main():
    results = []
    for case in CASES:
        print(*case, file=sys.stderr)
        results.append(measure(*case))
    print(json.dumps({"made_by": "tests/data/pytorch/litgpt_networks.py", "torch": torch.__version__, "batch": BATCH, "sequence": SEQUENCE,
                      "rank": RANK, "dropout": DROPOUT, "results": results}, indent=1))


if __name__ == "__main__":
    main()
