#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What networks keep for backward that run otherwise when they are trained, measured on a CPU.

    python3 tests/data/models/make_saved_training.py tests/data/models/saved_training.json

GPT-OSS, whose experts are a loop in transformers 4.55 and products of all at once in 5.24: run it under each, a version's results
replace those that the file has of it. BERT with a head that sees the masked tokens alone, chosen as ModernBERT's sparse_prediction
does (from 5.24 on, which has it). Bytes are counted as make_saved_bytes.py does.
"""
import json
import pathlib
import sys

import torch
import transformers

BATCH, SEQUENCE = 2, 16
GPT_OSS = dict(vocab_size=96, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=32,
               intermediate_size=112, max_position_embeddings=64, sliding_window=32, num_local_experts=4, num_experts_per_tok=2,
               tie_word_embeddings=False)
BERT = dict(vocab_size=96, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=112,
            max_position_embeddings=64, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)


def saved(model, tokens, run):
    """Bytes of each storage once: parameters, buffers, what is passed in, the rest; tensors without dimensions are left out."""
    owners = {"parameters": model.parameters(), "buffers": model.buffers(), "inputs": tokens}
    owner = {t.untyped_storage().data_ptr(): part for part, tensors in owners.items() for t in tensors}
    sums, seen, alive = {"activations": 0, "inputs": 0, "parameters": 0, "buffers": 0}, set(), []

    def pack(tensor):
        storage = tensor.untyped_storage()
        if tensor.dim() > 0 and storage.data_ptr() not in seen:
            seen.add(storage.data_ptr())
            alive.append(tensor)
            sums[owner.get(storage.data_ptr(), "activations")] += storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        run()
    return sums


def gpt_oss(dtype):
    torch.manual_seed(1)
    config = transformers.GptOssConfig(**GPT_OSS)
    config._attn_implementation, config.use_cache, config.attention_dropout = "eager", False, 0.0
    model = transformers.GptOssForCausalLM(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "router.weight" in name:  # so that each expert gets tokens
                parameter.normal_(0, 1)
    model, tokens = model.to(dtype).train(), torch.randint(1, 90, (BATCH, SEQUENCE))
    routers = [layer.mlp.router for layer in model.model.layers]
    chosen = []
    for router in routers:
        router.register_forward_hook(lambda _, __, result: chosen.append(result[-1].unique().numel()))
    sums = saved(model, [tokens], lambda: model(input_ids=tokens))
    assert chosen == [GPT_OSS["num_local_experts"]] * len(routers), "some expert gets no token"
    return {"model_type": "gpt_oss", "config": dict(GPT_OSS, architectures=["GptOssForCausalLM"]), **sums}


def masked_bert(dtype, share):
    torch.manual_seed(0)
    config = transformers.BertConfig(**BERT)
    config._attn_implementation = "eager"
    model = transformers.BertForMaskedLM(config).to(dtype).train()
    tokens = torch.randint(1, 90, (BATCH, SEQUENCE))
    labels = torch.full((BATCH * SEQUENCE,), -100)
    labels[torch.randperm(BATCH * SEQUENCE)[:round(BATCH * SEQUENCE * share)]] = 7
    labels = labels.view(BATCH, SEQUENCE)

    def run():
        hidden = model.bert(tokens).last_hidden_state
        rows = labels.view(-1)
        hidden = hidden.view(rows.shape[0], -1)
        masked = rows != -100
        hidden, rows = hidden[masked], rows[masked]
        logits = model.cls(hidden)
        torch.nn.functional.cross_entropy(logits.view(-1, config.vocab_size).float(), rows)

    return {"model_type": "bert", "config": dict(BERT, architectures=["BertForMaskedLM"]), "masked_share": share,
            **saved(model, [tokens, labels], run)}


def main():
    path = pathlib.Path(sys.argv[1])
    known = json.loads(path.read_text())["results"] if path.exists() else []
    version = transformers.__version__
    results = []
    for dtype in (torch.float32, torch.bfloat16):
        made = [gpt_oss(dtype)]
        if not version.startswith("4."):
            made += [masked_bert(dtype, share) for share in (0.15, 0.5)]
        results += [{"transformers": version, "dtype": str(dtype).removeprefix("torch."), "batch": BATCH, "sequence": SEQUENCE, **one}
                    for one in made]
    results = [one for one in known if one["transformers"] != version] + results
    path.write_text(json.dumps({"made_by": "tests/data/models/make_saved_training.py", "torch": torch.__version__,
                                "results": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
