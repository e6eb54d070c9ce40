#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What PEFT's adapters keep for backward beside plain, 8-bit and 4-bit weights, measured on a CPU.

    python3 tests/data/pytorch/adapters.py > tests/data/pytorch/adapters.json

Needs torch, transformers, peft and bitsandbytes. Small models of transformers get the adapters of a LoraConfig, or of another
config of PEFT ("kind"); one forward
pass runs to its logits in training mode under torch.autograd.graph.saved_tensors_hooks. Bytes are counted once per storage:
parameters, what the caller passed in, everything else ("activations"); tensors without dimensions are left out. What
bitsandbytes keeps on the context of its functions, which no hook sees, is read from the nodes of the graph ("kept").
`stored` is what all parameters take: a quantized weight with its scales, codes and offset.
"""
import json
import weakref

import bitsandbytes
import peft
import torch
import transformers
from bitsandbytes.autograd import _functions

_functions.MatMul8bitFp = _functions.MatMul8bitLt  # the function that a GPU runs; its kernels exist on a CPU, too

TEXT = dict(vocab_size=96, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=112,
            max_position_embeddings=64)
LLAMA = dict(TEXT, num_key_value_heads=2)
MODELS = {
    "llama": (LLAMA, "LlamaForCausalLM"),
    "qwen2": (dict(LLAMA, tie_word_embeddings=True), "Qwen2ForCausalLM"),
    "gpt_neox": (TEXT, "GPTNeoXForCausalLM"),
    "phi": (TEXT, "PhiForCausalLM"),
    "opt": (dict(vocab_size=96, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, ffn_dim=112,
                 word_embed_proj_dim=64, max_position_embeddings=64), "OPTForCausalLM"),
}
EACH = ["q_proj", "k_proj", "v_proj", "o_proj"]
# model, dtype, autocast, LoraConfig, and of them what is not PEFT's default: base, compute, prepared, adapters_as_weights
CASES = [
    ("llama", "float32", False, {}),
    ("llama", "bfloat16", False, {}),
    ("llama", "bfloat16", False, {}, {"as_weights": True}),
    ("llama", "bfloat16", True, {}),
    ("llama", "float32", True, {}),
    ("llama", "float16", False, {"target_modules": "all-linear"}),
    ("llama", "bfloat16", False, {"target_modules": EACH}),
    ("llama", "bfloat16", False, {"target_modules": "all-linear", "lora_dropout": 0.1}),
    ("llama", "bfloat16", True, {"target_modules": "all-linear", "lora_dropout": 0.1}),
    ("llama", "float32", False, {"target_modules": "all-linear", "lora_dropout": 0.1}),
    ("llama", "bfloat16", False, {"use_rslora": True}),
    ("llama", "bfloat16", False, {"modules_to_save": ["embed_tokens", "lm_head"]}),
    ("llama", "bfloat16", True, {"modules_to_save": ["embed_tokens", "lm_head"]}),
    ("llama", "float32", False, {"use_dora": True}),
    ("llama", "bfloat16", False, {"use_dora": True}),
    ("llama", "bfloat16", True, {"use_dora": True}),
    ("llama", "bfloat16", False, {"use_dora": True, "lora_dropout": 0.1}),
    ("llama", "bfloat16", False, {"target_modules": "all-linear"}, {"base": "nf4-double", "prepared": True}),
    ("llama", "bfloat16", True, {"target_modules": "all-linear"}, {"base": "nf4-double", "prepared": True}),
    ("llama", "bfloat16", True, {"target_modules": "all-linear", "lora_dropout": 0.1},
     {"base": "nf4-double", "prepared": True}),
    ("llama", "bfloat16", False, {"target_modules": "all-linear"}, {"base": "nf4-double", "as_weights": True}),
    ("llama", "bfloat16", False, {"target_modules": "all-linear"}, {"base": "nf4"}),
    ("llama", "float16", False, {}, {"base": "nf4", "compute": "float16", "prepared": True}),
    ("llama", "bfloat16", False, {}, {"base": "nf4", "compute": "float32"}),
    ("llama", "bfloat16", True, {"use_dora": True}, {"base": "nf4-double", "prepared": True}),
    ("llama", "float16", False, {"target_modules": "all-linear"}, {"base": "int8"}),
    ("llama", "bfloat16", False, {}, {"base": "int8", "prepared": True}),
    ("llama", "bfloat16", True, {"target_modules": "all-linear"}, {"base": "int8", "prepared": True}),
    ("qwen2", "bfloat16", False, {}),
    ("qwen2", "bfloat16", False, {"modules_to_save": ["embed_tokens"]}),
    ("gpt_neox", "bfloat16", False, {}),
    ("gpt_neox", "bfloat16", False, {"use_dora": True}),
    ("gpt_neox", "bfloat16", True, {}, {"base": "nf4-double", "prepared": True}),
    ("phi", "bfloat16", False, {}),
    ("opt", "bfloat16", False, {"target_modules": "all-linear"}),
    ("llama", "float32", False, {}, {"kind": "ia3"}),
    ("llama", "bfloat16", False, {}, {"kind": "ia3"}),
    ("llama", "bfloat16", True, {}, {"kind": "ia3"}),
    ("llama", "bfloat16", False, {"target_modules": EACH + ["up_proj"], "feedforward_modules": []}, {"kind": "ia3"}),
    ("gpt_neox", "bfloat16", False, {}, {"kind": "ia3"}),
    ("opt", "bfloat16", False, {}, {"kind": "ia3"}),
    ("phi", "bfloat16", False, {"modules_to_save": ["lm_head"]}, {"kind": "ia3"}),
    ("llama", "float32", False, {}, {"kind": "vera"}),
    ("llama", "bfloat16", False, {}, {"kind": "vera"}),
    ("llama", "bfloat16", True, {}, {"kind": "vera"}),
    ("llama", "bfloat16", False, {"target_modules": "all-linear", "vera_dropout": 0.1}, {"kind": "vera"}),
    ("phi", "bfloat16", False, {}, {"kind": "vera"}),
    ("llama", "float32", False, {}, {"kind": "norms"}),
    ("llama", "bfloat16", False, {}, {"kind": "norms", "as_weights": True}),
    ("llama", "bfloat16", True, {}, {"kind": "norms"}),
    ("qwen2", "float32", False, {}, {"kind": "norms"}),
    ("phi", "float32", False, {}, {"kind": "norms"}),
    ("llama", "float32", False, {}, {"kind": "prompt"}),
    ("llama", "bfloat16", False, {}, {"kind": "prompt"}),
    ("opt", "bfloat16", False, {}, {"kind": "prompt"}),
    ("llama", "float32", False, {}, {"kind": "prefix"}),
    ("llama", "bfloat16", False, {}, {"kind": "prefix"}),
    ("gpt_neox", "bfloat16", False, {}, {"kind": "prefix"}),
    ("phi", "bfloat16", True, {}, {"kind": "prefix"}),
    ("llama", "float32", False, {}, {"lora_fa": True}),
    ("llama", "bfloat16", False, {"target_modules": "all-linear"}, {"lora_fa": True}),
    ("llama", "bfloat16", True, {"target_modules": "all-linear", "lora_dropout": 0.1}, {"lora_fa": True}),
]
BATCH, SEQUENCE, RANK, VIRTUAL = 2, 16, 4, 5


def quantized(linear, base, compute):
    """The layer as transformers' BitsAndBytesConfig replaces it."""
    nn, bias = bitsandbytes.nn, linear.bias is not None
    if base == "int8":
        made = nn.Linear8bitLt(linear.in_features, linear.out_features, bias, has_fp16_weights=False, threshold=6.0)
        made.weight = nn.Int8Params(linear.weight.data, requires_grad=False, has_fp16_weights=False)
    else:
        made = nn.Linear4bit(linear.in_features, linear.out_features, bias, compute_dtype=compute,
                             compress_statistics=base == "nf4-double", quant_type="nf4")
        made.weight = nn.Params4bit(linear.weight.data, requires_grad=False, compress_statistics=base == "nf4-double",
                                    quant_type="nf4")
    if bias:
        made.bias = torch.nn.Parameter(linear.bias.data, requires_grad=False)
    return made.to("cpu")


def quantize(model, base, compute):
    for path, part in list(model.named_modules()):
        if isinstance(part, torch.nn.Linear) and any(name.isdigit() for name in path.split(".")):
            parent, _, name = path.rpartition(".")
            setattr(model.get_submodule(parent), name, quantized(part, base, compute))
    setattr(model, "is_loaded_in_8bit" if base == "int8" else "is_loaded_in_4bit", True)


def scale_bytes(module):
    """Of an 8-bit layer, which moves them from its weight to its state."""
    scales = getattr(getattr(module, "state", None), "SCB", None)
    return 0 if scales is None else scales.numel() * scales.element_size()


def stored_bytes(parameter):
    state = getattr(parameter, "quant_state", None)
    tensors = [parameter]
    if state is not None:
        tensors += [state.absmax, state.code]
        if state.nested:
            tensors += [state.offset, state.state2.absmax, state.state2.code]
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def nodes(output):
    seen, todo = set(), [output.grad_fn]
    while todo:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        todo += [following for following, _ in node.next_functions]
    return seen


class Packed:
    """What a node of the graph holds, as long as the node lives."""

    def __init__(self, tensor):
        self.tensor = tensor


def config_of(kind, arguments):
    if kind is None:
        return peft.LoraConfig(r=RANK, lora_alpha=8, task_type="CAUSAL_LM", **arguments)
    own = {"vera": {"r": RANK, "projection_prng_key": 0}, "prompt": {"num_virtual_tokens": VIRTUAL},
           "prefix": {"num_virtual_tokens": VIRTUAL}}
    configs = {"ia3": peft.IA3Config, "vera": peft.VeraConfig, "norms": peft.LNTuningConfig,
               "prompt": peft.PromptTuningConfig, "prefix": peft.PrefixTuningConfig}
    return configs[kind](task_type="CAUSAL_LM", **own.get(kind, {}), **arguments)


def measure(kind, dtype, autocast, lora, more=None):
    more = more or {}
    torch.manual_seed(0)
    values, architecture = MODELS[kind]
    config = transformers.AutoConfig.for_model(kind, **values)
    for key in list(vars(config)):
        if "dropout" in key:
            setattr(config, key, 0.0)
    config._attn_implementation = "eager"
    config.use_cache = False
    model = getattr(transformers, architecture)(config).to(getattr(torch, dtype)).train()
    base = more.get("base")
    if base:
        quantize(model, base, getattr(torch, more.get("compute", "bfloat16")))
    if more.get("prepared"):
        model = peft.prepare_model_for_kbit_training(model, use_gradient_checkpointing=False)
    adapters = config_of(more.get("kind"), lora)
    model = peft.get_peft_model(model, adapters, autocast_adapter_dtype=not more.get("as_weights", False)).train()
    if more.get("lora_fa"):
        peft.optimizers.create_lorafa_optimizer(model, r=RANK, lora_alpha=8, lr=1e-4)  # freezes A
    tokens = torch.randint(1, 96, (BATCH, SEQUENCE))
    sums, seen, alive, shapes = {"activations": 0, "inputs": 0, "parameters": 0, "buffers": 0}, set(), [], []

    def count(tensor):
        storage = tensor.untyped_storage()
        at = storage.data_ptr()
        if tensor.dim() == 0 or at in seen:
            return
        seen.add(at)
        alive.append(tensor)
        part = ("parameters" if at in known else "buffers" if at in buffers else "inputs"
                if at == tokens.untyped_storage().data_ptr() else "activations")
        sums[part] += storage.nbytes()
        if part == "activations":
            shapes.append(f"{list(tensor.shape)} {str(tensor.dtype).removeprefix('torch.')} {storage.nbytes()}")

    packed = []

    def pack(tensor):
        held = Packed(tensor)
        packed.append(weakref.ref(held))
        return held

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda held: held.tensor), \
            torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
        logits = model(input_ids=tokens).logits
    # Only now: bitsandbytes casts the biases of its layers while they first run.
    known = {p.untyped_storage().data_ptr() for p in model.parameters()}
    buffers = {b.untyped_storage().data_ptr() for b in model.buffers()}
    for held in packed:  # DoRA detaches what it made with a graph: that is gone
        if held() is not None:
            count(held().tensor)
    before = sums["activations"]
    for node in nodes(logits):
        for tensor in getattr(node, "tensors", None) or ():
            if isinstance(tensor, torch.Tensor) and tensor.numel() and tensor.is_floating_point():
                count(tensor)
    kept = sums["activations"] - before
    sums["activations"] = before
    logits.float().sum().backward()
    unique = {id(p): p for p in model.parameters()}.values()
    trained = [p for p in unique if p.requires_grad]
    return {"model_type": kind, "config": dict(values, architectures=[architecture]), "dtype": dtype, "autocast": autocast,
            "lora": lora, **more, "trained": sum(p.numel() for p in trained), "kept": kept,
            "stored": sum(map(stored_bytes, unique)) + sum(map(scale_bytes, model.modules())), "logits": str(logits.dtype).removeprefix("torch."),
            "gradients": sum(p.grad.nbytes for p in trained if p.grad is not None), **sums}, shapes


def main():
    import sys
    results = []
    for number, case in enumerate(CASES):
        result, shapes = measure(*case)
        results.append(result)
        if len(sys.argv) > 1 and int(sys.argv[1]) == number:
            print("\n".join(shapes), file=sys.stderr)
    print(json.dumps({"made_by": "tests/data/pytorch/adapters.py", "torch": torch.__version__, "peft": peft.__version__,
                      "transformers": transformers.__version__, "bitsandbytes": bitsandbytes.__version__, "batch": BATCH,
                      "sequence": SEQUENCE, "rank": RANK, "virtual": VIRTUAL, "results": results}, indent=1))


if __name__ == "__main__":
    main()
