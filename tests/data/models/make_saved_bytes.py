#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What small models of Hugging Face transformers keep for backward, measured on a CPU.

    python3 tests/data/models/make_saved_bytes.py > tests/data/models/saved_bytes.json

Each model runs one forward pass to its logits in training mode (dropout 0, eager attention) under
torch.autograd.graph.saved_tensors_hooks. Bytes are counted once per storage and split as the graph of
the program splits them: parameters, what the caller passed in, everything else ("activations");
tensors without dimensions are left out.
"""
import json
import sys

import torch
import transformers

TEXT = dict(vocab_size=96, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=112,
            max_position_embeddings=64)
GROUPED = dict(TEXT, num_key_value_heads=2)
CASES = {
    "llama": dict(GROUPED, architectures=["LlamaForCausalLM"]),
    "mistral": dict(GROUPED, head_dim=32, sliding_window=8, architectures=["MistralForCausalLM"]),
    "qwen2": dict(GROUPED, tie_word_embeddings=True, architectures=["Qwen2ForCausalLM"]),
    "qwen3": dict(GROUPED, head_dim=32, architectures=["Qwen3ForCausalLM"]),
    "gemma": dict(GROUPED, head_dim=32, tie_word_embeddings=True, architectures=["GemmaForCausalLM"]),
    "gemma2": dict(GROUPED, head_dim=32, sliding_window=8, tie_word_embeddings=True, attn_logit_softcapping=50.0,
                   final_logit_softcapping=30.0, architectures=["Gemma2ForCausalLM"]),
    "gemma3_text": dict(GROUPED, head_dim=32, sliding_window=8, tie_word_embeddings=True, num_hidden_layers=6,
                        sliding_window_pattern=6, architectures=["Gemma3ForCausalLM"]),
    "phi": dict(TEXT, architectures=["PhiForCausalLM"]),
    "phi3": dict(GROUPED, pad_token_id=0, architectures=["Phi3ForCausalLM"]),
    "gpt_neox": dict(TEXT, architectures=["GPTNeoXForCausalLM"]),
    "opt": dict(vocab_size=96, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, ffn_dim=112, word_embed_proj_dim=64,
                max_position_embeddings=64, architectures=["OPTForCausalLM"]),
    "starcoder2": dict(GROUPED, sliding_window=None, architectures=["Starcoder2ForCausalLM"]),
    "stablelm": dict(GROUPED, architectures=["StableLmForCausalLM"]),
    "gptj": dict(vocab_size=96, n_embd=64, n_layer=2, n_head=4, n_inner=112, n_positions=64, rotary_dim=8,
                 tie_word_embeddings=False, architectures=["GPTJForCausalLM"]),
    "gpt_bigcode": dict(vocab_size=96, n_embd=64, n_layer=2, n_head=4, n_inner=112, n_positions=64, multi_query=True,
                        architectures=["GPTBigCodeForCausalLM"]),
    "bloom": dict(vocab_size=96, hidden_size=64, n_layer=2, n_head=4, architectures=["BloomForCausalLM"]),
    "mpt": dict(vocab_size=96, d_model=64, n_layers=2, n_heads=4, max_seq_len=16, architectures=["MptForCausalLM"]),
    "falcon": dict(vocab_size=96, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, num_kv_heads=4,
                   ffn_hidden_size=112, max_position_embeddings=64, architectures=["FalconForCausalLM"]),
    "falcon new": dict(vocab_size=96, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, num_kv_heads=2,
                       new_decoder_architecture=True, ffn_hidden_size=112, max_position_embeddings=64,
                       architectures=["FalconForCausalLM"]),
    "deepseek_v3": dict(TEXT, num_key_value_heads=4, kv_lora_rank=24, q_lora_rank=40, qk_rope_head_dim=8, qk_nope_head_dim=16,
                        v_head_dim=20, n_routed_experts=4, num_experts_per_tok=2, moe_intermediate_size=48,
                        first_k_dense_replace=2, n_group=1, topk_group=1, architectures=["DeepseekV3ForCausalLM"]),
    "bert": dict(TEXT, architectures=["BertModel"]),
    "t5": dict(vocab_size=96, d_model=64, d_kv=16, d_ff=112, num_layers=2, num_decoder_layers=3, num_heads=4,
               feed_forward_proj="relu", tie_word_embeddings=True, architectures=["T5ForConditionalGeneration"]),
    "vit": dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=112, image_size=32, patch_size=8,
                num_channels=3, num_labels=10, architectures=["ViTForImageClassification"]),
    "resnet": dict(layer_type="basic", depths=[1, 2], hidden_sizes=[64, 128], embedding_size=64, num_labels=10, image_size=64,
                   architectures=["ResNetForImageClassification"]),
}
BATCH, SEQUENCE = 2, 16


def no_dropout(config):
    for key in list(vars(config)):
        if "dropout" in key or key in ("attn_pdrop", "embd_pdrop", "resid_pdrop"):
            setattr(config, key, 0.0)


def measure(kind, values, dtype):
    torch.manual_seed(0)
    options = {key: value for key, value in values.items() if key not in ("architectures", "image_size")
               or (key == "image_size" and kind == "vit")}
    config = transformers.AutoConfig.for_model(kind.split()[0], **options)
    no_dropout(config)
    config._attn_implementation = "eager"
    config.use_cache = False
    model = getattr(transformers, values["architectures"][0])(config).to(dtype).train()
    if kind in ("vit", "resnet"):
        inputs = {"pixel_values": torch.randn(BATCH, 3, values["image_size"], values["image_size"], dtype=dtype)}
    else:
        inputs = {"input_ids": torch.randint(1, 96, (BATCH, SEQUENCE))}
    if kind == "t5":
        inputs["decoder_input_ids"] = torch.randint(1, 96, (BATCH, SEQUENCE))
    known = {p.untyped_storage().data_ptr() for p in model.parameters()}
    buffers = {p.untyped_storage().data_ptr() for p in model.buffers()}
    passed = {t.untyped_storage().data_ptr() for t in inputs.values()}
    seen, shapes, alive = set(), [], []
    sums = {"activations": 0, "inputs": 0, "parameters": 0, "buffers": 0}

    def pack(tensor):
        storage = tensor.untyped_storage()
        at = storage.data_ptr()
        if tensor.dim() == 0 or at in seen:
            return tensor
        seen.add(at)
        alive.append(tensor)
        part = ("parameters" if at in known else "buffers" if at in buffers else "inputs" if at in passed else "activations")
        sums[part] += storage.nbytes()
        if part == "activations":
            shapes.append([list(tensor.shape), str(tensor.dtype).removeprefix("torch."), storage.nbytes()])
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        output = model(**inputs)
    assert output is not None
    count = sum(p.numel() for p in model.parameters())
    return {"model_type": kind.split()[0], "config": values, "dtype": str(dtype).removeprefix("torch."), "batch": BATCH,
            "sequence": SEQUENCE, "parameter_count": count, **sums}, shapes


def main():
    results = []
    for kind, values in CASES.items():
        for dtype in (torch.float32, torch.bfloat16):
            result, shapes = measure(kind, values, dtype)
            results.append(result)
            if len(sys.argv) > 1 and sys.argv[1] == kind:
                for shape in shapes:
                    print(result["dtype"], shape, file=sys.stderr)
    print(json.dumps({"made_by": "tests/data/models/make_saved_bytes.py", "torch": torch.__version__,
                      "transformers": transformers.__version__, "results": results}, indent=1))


if __name__ == "__main__":
    main()
