#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records what torch.compile keeps from forward to backward: networks go through Dynamo, AOTAutograd, Inductor's passes
over the joint graph and its minimum cut (min_cut_rematerialization_partition); then the kernels are not compiled, the
graphs run as they are. Listed are the values that the forward graph hands on and that are no inputs of it, once for each
storage: a view is listed as what it is a view of.

By layers, each layer is compiled alone and F.cross_entropy alone (regional compilation); listed is what each of these
functions keeps, with the activations that it was given. A checkpointed layer is compiled with its checkpoint in it.

Attention as F.scaled_dot_product_attention runs it on a CPU, whose kernel keeps what FlashAttention keeps but for the
state of the random numbers. Layer norms in bf16 keep their statistics in bf16 there, so that only networks without
them are recorded in bf16.

Usage: compiled_graphs.py > compiled_graphs.json
"""
import functools
import json
import sys

sys.dont_write_bytecode = True

import torch
from torch import nn
from torch._inductor.compile_fx import compile_fx
from torch.utils.checkpoint import checkpoint

from model_steps import GPT2, LLAMA, Gpt2, llama

LAYERS = 5  # three of which are recorded, the others copied


class Recorder:
    keeps_given = False  # activations that the function was given

    def __init__(self):
        self.kept = None

    def __call__(self, module, inputs):
        return compile_fx(module, inputs, inner_compile=self.inner)

    def inner(self, module, inputs, **options):
        if not options.get("is_backward"):
            returned = torch._guards.TracingContext.try_get().fw_metadata
            skipped = returned.num_forward_returns + returned.num_mutated_inp_runtime_indices
            outputs = module.graph.find_nodes(op="output")[0].args[0]
            self.kept = self.storages(outputs[skipped:], module, returned.static_input_indices)
        return lambda *values: module(*(values[0] if len(values) == 1 and isinstance(values[0], list) else values))

    def storages(self, nodes, module, static):
        given = module.graph.find_nodes(op="placeholder")
        parameters = [node for i, node in enumerate(given) if i in static]
        found = {}
        for node in nodes:
            while node.op == "call_function" and not isinstance(node.target, str) and str(node.target).split(".")[1:2] in (
                    ["view"], ["permute"], ["expand"], ["unsqueeze"], ["squeeze"], ["slice"], ["select"], ["alias"]):
                node = node.args[0]
            value = node.meta.get("val")
            is_given = node.op == "placeholder" and not self.keeps_given
            if is_given or node in parameters or not isinstance(value, torch.Tensor):
                continue
            if node.op == "placeholder" and not value.is_floating_point():
                continue  # of the batch
            found[node.name] = [str(node.target), value.numel() * value.element_size()]
        return list(found.values())


class RegionRecorder(Recorder):
    """One for each compiled function, in the order in which they run first."""

    def __init__(self, regions):
        super().__init__()
        self.keeps_given, self.regions = True, regions

    def inner(self, module, inputs, **options):
        run = super().inner(module, inputs, **options)
        if not options.get("is_backward"):
            self.regions.append(self.kept)
        return run


class WithLoss(nn.Module):
    def __init__(self, model, loss):
        super().__init__()
        self.model, self.loss = model, loss

    def forward(self, *inputs):
        return self.loss(self.model, *inputs)


def gpt2(attention, dtype):
    config = {**GPT2, "layers": LAYERS}
    sizes = {k: config[k] for k in ("hidden", "layers", "heads", "vocab", "sequence")}
    tokens = torch.randint(0, config["vocab"], (config["batch"], config["sequence"]))
    return config, Gpt2(**sizes, kernel=attention).to(dtype), (tokens, tokens)


def made_llama(attention, dtype):
    config = {**LLAMA, "layers": LAYERS}
    torch.set_default_dtype(dtype)
    model = llama(config, attention)
    torch.set_default_dtype(torch.float32)
    tokens = torch.randint(0, config["vocab"], (config["batch"], config["sequence"]))
    positions = torch.arange(config["sequence"])[None]
    return config, WithLoss(model, lambda model, tokens, positions: model(
        input_ids=tokens, position_ids=positions, shift_labels=tokens, labels=tokens).loss), (tokens, positions)


def mlp(attention, dtype):
    config = {"model": "mlp", "sizes": [64, 128, 96, 10], "batch": 32}
    layers = []
    for width, wider in zip(config["sizes"], config["sizes"][1:]):
        layers += [nn.Linear(width, wider), nn.ReLU()]
    x, target = torch.randn(32, 64, dtype=dtype), torch.randn(32, 10, dtype=dtype)
    model = nn.Sequential(*layers[:-1]).to(dtype)
    return config, WithLoss(model, lambda model, x, y: nn.functional.mse_loss(model(x), y)), (x, target)


def resnet(attention, dtype):
    from transformers import ResNetConfig, ResNetForImageClassification
    config = {"model": "resnet", "embedding_size": 64, "hidden_sizes": [32, 64], "depths": [1, 2],
              "layer_type": "bottleneck", "num_channels": 3, "num_labels": 10, "image_size": 32, "batch": 2}
    model = ResNetForImageClassification(ResNetConfig(**{k: config[k] for k in (
        "embedding_size", "hidden_sizes", "depths", "layer_type", "num_channels", "num_labels")})).to(dtype).train()
    x, labels = torch.randn(2, 3, 32, 32, dtype=dtype), torch.tensor([1, 2])
    return config, WithLoss(model, lambda model, x, y: nn.functional.cross_entropy(model(x).logits, y)), (x, labels)


def case(make, attention="eager", dtype=torch.float32):
    torch._dynamo.reset()
    torch.manual_seed(0)
    config, model, inputs = make(attention, dtype)
    recorder = Recorder()
    result = torch.compile(model, backend=recorder, fullgraph=True)(*inputs)
    print(config["model"], attention, dtype, sum(size for _, size in recorder.kept), file=sys.stderr)
    return {**config, "attention": attention, "precision": "fp32" if dtype == torch.float32 else "bf16", "kept": recorder.kept}


def adapted(model, adapters):
    from peft import LoraConfig, get_peft_model
    return get_peft_model(model, LoraConfig(r=adapters["rank"], target_modules=adapters["targets"])).base_model.model


def layers_case(make, attention="eager", dtype=torch.float32, checkpointed=False, adapters=None):
    torch._dynamo.reset()
    torch.manual_seed(0)
    config, model, inputs = make(attention, dtype)
    regions = []
    compiled = lambda function: torch.compile(function, backend=RegionRecorder(regions), fullgraph=True)
    is_gpt2 = config["model"] == "gpt2"
    if adapters:
        model.model = adapted(model.model, adapters)
    for layer in model.h if is_gpt2 else model.model.model.layers:
        forward = layer.forward
        if checkpointed:
            forward = functools.partial(checkpoint, forward, use_reentrant=False)
        layer.forward = compiled(forward)
    if is_gpt2:
        loss = model(*inputs)[1]  # compiled are the layers alone: the model computes the loss
    else:
        tokens, positions = inputs
        logits = model.model(input_ids=tokens, position_ids=positions).logits.float()
        loss = compiled(nn.functional.cross_entropy)(logits.view(-1, logits.size(-1)), tokens.view(-1))
    loss.backward()
    print("layers", config["model"], attention, dtype, [sum(size for _, size in kept) for kept in regions],
          file=sys.stderr)
    return {**config, "attention": attention, "precision": "fp32" if dtype == torch.float32 else "bf16",
            "checkpointed": checkpointed, "adapters": adapters, "regions": regions}


def main():
    cases = [case(mlp), case(mlp, dtype=torch.bfloat16), case(resnet), case(gpt2), case(gpt2, "flash")]
    for dtype in (torch.float32, torch.bfloat16):
        for attention in ("eager", "flash"):
            cases.append(case(made_llama, attention, dtype))
            cases.append(layers_case(made_llama, attention, dtype))
    cases += [layers_case(gpt2, attention) for attention in ("eager", "flash")]
    cases.append(layers_case(made_llama, "flash", torch.bfloat16, checkpointed=True))
    cases.append(layers_case(made_llama, "flash", adapters={"rank": 4, "targets": ["q_proj", "v_proj"]}))
    print(json.dumps({"about": __doc__.strip(), "torch": torch.__version__, "cases": cases}, separators=(",", ":")))


if __name__ == "__main__":
    main()
