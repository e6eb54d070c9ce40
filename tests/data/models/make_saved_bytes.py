#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What small models of Hugging Face transformers, diffusers and torchvision keep for backward, measured on a CPU.

    python3 tests/data/models/make_saved_bytes.py > tests/data/models/saved_bytes.json

Each model runs one forward pass to its logits in training mode (dropout 0, eager attention) under
torch.autograd.graph.saved_tensors_hooks. Bytes are counted once per storage and split as the graph of
the program splits them: parameters, what the caller passed in, everything else ("activations");
tensors without dimensions are left out.

Models whose layers see a window of tokens run once more on fake tensors with the memory-efficient kernel, as CUDA runs
F.scaled_dot_product_attention.
"""
import json
import pathlib
import sys

import torch
import transformers

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "kernels/pytorch"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "pytorch"))

from model_steps import CudaAttention
from torch._subclasses.fake_tensor import FakeTensorMode
from transformers import masking_utils

TEXT = dict(vocab_size=96, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=112,
            max_position_embeddings=64)
GROUPED = dict(TEXT, num_key_value_heads=2)
MULTIMODAL = dict(rope_type="default", rope_theta=1e6, mrope_section=[2, 3, 3])
UNET = dict(sample_size=16, in_channels=4, out_channels=4, block_out_channels=[16, 32, 32], layers_per_block=1,
            cross_attention_dim=24, norm_num_groups=8, act_fn="silu",
            down_block_types=["CrossAttnDownBlock2D", "CrossAttnDownBlock2D", "DownBlock2D"],
            up_block_types=["UpBlock2D", "CrossAttnUpBlock2D", "CrossAttnUpBlock2D"])
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
    "dinov2": dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, mlp_ratio=4, image_size=32, patch_size=8,
                   num_channels=3, num_labels=10, architectures=["Dinov2ForImageClassification"]),
    "dinov2 gated": dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, mlp_ratio=4, use_swiglu_ffn=True,
                         image_size=32, patch_size=8, num_channels=3, num_labels=10,
                         architectures=["Dinov2ForImageClassification"]),
    "whisper": dict(vocab_size=96, d_model=64, encoder_layers=2, decoder_layers=3, encoder_attention_heads=4,
                    decoder_attention_heads=4, encoder_ffn_dim=112, decoder_ffn_dim=112, num_mel_bins=8,
                    max_source_positions=24, max_target_positions=32, pad_token_id=0, bos_token_id=0, eos_token_id=0,
                    decoder_start_token_id=0, architectures=["WhisperForConditionalGeneration"]),
    "efficientnet": dict(width_coefficient=1.1, depth_coefficient=1.2, image_size=64, num_labels=10),
    "densenet": dict(growth_rate=8, block_config=[2, 3], num_init_features=16, image_size=64, num_labels=10),
    "swin": dict(image_size=64, patch_size=4, num_channels=3, embed_dim=16, depths=[2, 2, 2], num_heads=[1, 2, 4],
                 window_size=4, mlp_ratio=4.0, drop_path_rate=0.0, num_labels=10,
                 architectures=["SwinForImageClassification"]),
    "mamba": dict(vocab_size=96, hidden_size=64, num_hidden_layers=2, state_size=8, expand=2, conv_kernel=4,
                  time_step_rank=4, architectures=["MambaForCausalLM"]),
    "llava": dict(text_config=dict(GROUPED, model_type="llama"), image_token_index=95, projector_hidden_act="gelu",
                  vision_config=dict(model_type="clip_vision_model", hidden_size=32, num_hidden_layers=3,
                                     num_attention_heads=4, intermediate_size=48, image_size=16, patch_size=8),
                  vision_feature_layer=-2, vision_feature_select_strategy="default",
                  architectures=["LlavaForConditionalGeneration"]),
    "qwen2_vl": dict(text_config=dict(GROUPED, model_type="qwen2_vl_text", rope_parameters=MULTIMODAL),
                     vision_config=dict(depth=3, embed_dim=32, hidden_size=64, mlp_ratio=2, num_heads=4, patch_size=4,
                                        image_size=16),
                     image_token_id=95, architectures=["Qwen2VLForConditionalGeneration"]),
    "qwen2_5_vl": dict(text_config=dict(GROUPED, model_type="qwen2_5_vl_text", rope_parameters=MULTIMODAL),
                       vision_config=dict(depth=4, hidden_size=32, out_hidden_size=64, intermediate_size=48, num_heads=4,
                                          patch_size=4, window_size=8, fullatt_block_indexes=[1, 3], image_size=16),
                       image_token_id=95, architectures=["Qwen2_5_VLForConditionalGeneration"]),
    "unet": dict(UNET, attention_head_dim=4),
    "unet linear": dict(UNET, attention_head_dim=[2, 4, 4], use_linear_projection=True),
    "dit": dict(hidden_size=64, depth=2, num_heads=4, mlp_ratio=4.0, input_size=8, patch_size=2, in_channels=4,
                num_classes=10, learn_sigma=True),
}
BATCH, SEQUENCE = 2, 16
WINDOWS = {
    "mistral": dict(CASES["mistral"], sliding_window=8),
    "mistral as long as the text": dict(CASES["mistral"], sliding_window=16),
    "mistral beyond the text": dict(CASES["mistral"], sliding_window=17),
    "gemma3_text": CASES["gemma3_text"],
    "qwen2": dict(GROUPED, num_hidden_layers=3, sliding_window=8, use_sliding_window=True, max_window_layers=1,
                  tie_word_embeddings=True, architectures=["Qwen2ForCausalLM"]),
}


def efficientnet(config):
    from torchvision.models import efficientnet as library
    stages, last = library._efficientnet_conf("efficientnet_b0", width_mult=config["width_coefficient"],
                                              depth_mult=config["depth_coefficient"])
    return library.EfficientNet(stages, dropout=0.0, stochastic_depth_prob=0.0, num_classes=config["num_labels"],
                                last_channel=last)


def densenet(config):
    from torchvision.models import DenseNet
    return DenseNet(config["growth_rate"], config["block_config"], config["num_init_features"],
                    num_classes=config["num_labels"])


def unet(config):
    from diffusers import UNet2DConditionModel
    from diffusers.models.attention_processor import AttnProcessor
    model = UNet2DConditionModel.from_config({k: v for k, v in config.items() if k not in ("_class_name", "torch_dtype")})
    model.set_attn_processor(AttnProcessor())
    return model


def dit(config):
    """The authors' network: diffusers' layers, which make time and class anew in each block, do not say its bytes."""
    from memscape_probe.networks import DiffusionTransformer, Options
    return DiffusionTransformer(config, Options())


LIBRARY = {"unet": unet, "UNet2DConditionModel": unet, "dit": dit, "efficientnet": efficientnet, "densenet": densenet}


def no_dropout(config):
    for key in list(vars(config)):
        if "dropout" in key or key in ("attn_pdrop", "embd_pdrop", "resid_pdrop"):
            setattr(config, key, 0.0)


def build(kind, values, attention="eager"):
    kind = kind.split()[0]
    if kind in LIBRARY:
        return LIBRARY[kind](values)
    options = {key: value for key, value in values.items() if key != "architectures"
               and (key != "image_size" or kind != "resnet")}
    config = transformers.AutoConfig.for_model(kind, **options)
    no_dropout(config)
    config._attn_implementation = attention
    config.use_cache = False
    return getattr(transformers, values["architectures"][0])(config)


def pictures(config, dtype):
    size = config.get("image_size") or config["vision_config"]["image_size"]
    return torch.randn(BATCH, 3, size, size, dtype=dtype)


def qwen_inputs(vision, tokens, place, dtype):
    """Patches of all pictures in one sequence, two frames each, and where they are: four make one token."""
    side, patch = vision["image_size"] // vision["patch_size"], vision["patch_size"]
    kinds = torch.zeros_like(tokens)
    kinds[:, 2:2 + side * side // 4] = 1
    tokens[kinds == 1] = place
    return {"input_ids": tokens, "pixel_values": torch.randn(BATCH * side * side, 3 * 2 * patch * patch, dtype=dtype),
            "image_grid_thw": torch.tensor([[1, side, side]] * BATCH), "mm_token_type_ids": kinds}


def inputs_of(kind, values, dtype):
    """What the model is called with, in its order."""
    tokens = torch.randint(1, 90, (BATCH, SEQUENCE))
    if kind in ("unet", "dit"):
        side = values.get("sample_size") or values["input_size"]
        latents = torch.randn(BATCH, values["in_channels"], side, side, dtype=dtype)
        times = torch.randint(0, 1000, (BATCH,))
        if kind == "dit":
            return {"latents": latents, "times": times, "labels": torch.randint(0, 10, (BATCH,))}
        texts = torch.randn(BATCH, 77, values["cross_attention_dim"], dtype=dtype)
        return {"sample": latents, "timestep": times, "encoder_hidden_states": texts}
    if "image_size" in values:
        return {"x" if kind in LIBRARY else "pixel_values": pictures(values, dtype)}
    if kind == "whisper":
        frames = torch.randn(BATCH, values["num_mel_bins"], 2 * values["max_source_positions"], dtype=dtype)
        return {"input_features": frames, "decoder_input_ids": tokens}
    if kind == "t5":
        return {"input_ids": tokens, "decoder_input_ids": tokens.clone()}
    if kind.startswith("qwen"):
        return qwen_inputs(values["vision_config"], tokens, values["image_token_id"], dtype)
    if "vision_config" in values:
        patches = (values["vision_config"]["image_size"] // values["vision_config"]["patch_size"]) ** 2
        tokens[:, 2:2 + patches] = values["image_token_index"]
        return {"input_ids": tokens, "pixel_values": pictures(values, dtype)}
    return {"input_ids": tokens}


def measure(kind, values, dtype):
    torch.manual_seed(0)
    model = build(kind, values).to(dtype).train()
    inputs = inputs_of(kind.split()[0], values, dtype)
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


def measure_window(kind, values, dtype):
    masking_utils.find_packed_sequence_indices = lambda positions: None  # fake positions do not say that it is one text
    sums = {"activations": 0}
    seen, alive = set(), []
    with FakeTensorMode(allow_non_fake_inputs=True):
        torch.set_default_dtype(dtype)
        model = build(kind, values, "sdpa").train()
        torch.set_default_dtype(torch.float32)
        tokens = torch.empty(BATCH, SEQUENCE, dtype=torch.long)
        seen.update(t.untyped_storage()._cdata for t in [*model.parameters(), *model.buffers(), tokens])

        def pack(tensor):
            storage = tensor.untyped_storage()
            if tensor.dim() > 0 and storage._cdata not in seen:
                seen.add(storage._cdata)
                alive.append(tensor)
                sums["activations"] += storage.nbytes()
            return tensor

        with CudaAttention("efficient"), torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
            assert model(input_ids=tokens) is not None
    return {"model_type": kind.split()[0], "config": values, "dtype": str(dtype).removeprefix("torch."), "batch": BATCH,
            "sequence": SEQUENCE, **sums}


def main():
    results = []
    for kind, values in CASES.items():
        for dtype in (torch.float32, torch.bfloat16):
            result, shapes = measure(kind, values, dtype)
            results.append(result)
            if len(sys.argv) > 1 and sys.argv[1] == kind:
                for shape in shapes:
                    print(result["dtype"], shape, file=sys.stderr)
    windows = [measure_window(kind, values, dtype) for kind, values in WINDOWS.items()
               for dtype in (torch.float32, torch.bfloat16)]
    print(json.dumps({"made_by": "tests/data/models/make_saved_bytes.py", "torch": torch.__version__,
                      "transformers": transformers.__version__, "results": results, "windows": windows}, indent=1))


if __name__ == "__main__":
    main()
