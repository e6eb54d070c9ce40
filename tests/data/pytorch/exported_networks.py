#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exports modules as network files (networks/*.json), and records what training steps of the same modules allocate
and free under other plans than the one of the export, as training_steps.py does and with its recorder: other batch
sizes and sequence lengths, bfloat16, checkpointing, the emulated autocast of CUDA.

Attention is PyTorch's composite of products (SDPBackend.MATH): fused kernels differ between devices.

Needs torch 2.1 or newer, transformers, torchvision and timm. Usage: exported_networks.py > exported_networks.json
"""
import contextlib
import json
import os
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../../kernels/pytorch"))

import torch
import torch.nn.functional as F
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.checkpoint import checkpoint

import memscape_probe
from training_steps import CudaAutocast, Recorder


class Gate(nn.Module):
    """Operators that no family of Memscape has."""

    def __init__(self, width):
        super().__init__()
        self.up, self.down = nn.Linear(width, 3 * width), nn.Linear(width, width, bias=False)
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x):
        a, b, c = self.up(x).chunk(3, dim=-1)
        y = torch.sin(a) * self.scale
        y = y.roll(1, dims=0) + torch.sigmoid(b)
        y = y.mul(F.leaky_relu(c + 1, inplace=True))
        y = torch.cat([y[:, : y.shape[1] // 2], y.flip(1)[:, y.shape[1] // 2:]], dim=1)
        return x + self.down(F.hardtanh(y, -3, 3))


class Odd(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Gate(24) for _ in range(3))
        self.norm = nn.LayerNorm(24)
        self.head = nn.Linear(24, 7)
        self.run = lambda layer, x: layer(x)

    def forward(self, x):
        for layer in self.layers:
            x = self.run(layer, x)
        with torch.no_grad():
            center = x.mean(0, keepdim=True)
        return self.head(self.norm(x - center))


def odd():
    return Odd(), {"x": torch.zeros(4, 24)}, [torch.zeros(4, dtype=torch.long)], F.cross_entropy


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel
    config = GPT2Config(n_layer=2, n_embd=48, n_head=4, vocab_size=211, n_positions=64, attn_pdrop=0, embd_pdrop=0,
                        resid_pdrop=0, attn_implementation="eager", use_cache=False, bos_token_id=0, eos_token_id=0)
    tokens = torch.zeros(2, 16, dtype=torch.long)
    return GPT2LMHeadModel(config), {"input_ids": tokens, "labels": tokens.clone()}, [], None


def resnet():
    import torchvision
    return (torchvision.models.resnet18(num_classes=10), {"x": torch.zeros(2, 3, 64, 64)},
            [torch.zeros(2, dtype=torch.long)], F.cross_entropy)


def vit():
    import timm
    model = timm.create_model("vit_tiny_patch16_224", img_size=64, depth=2, num_classes=10)
    return model, {"x": torch.zeros(2, 3, 64, 64)}, [torch.zeros(2, dtype=torch.long)], F.cross_entropy


MADE = {"odd": odd, "gpt2": gpt2, "resnet": resnet, "vit": vit}


class Autocast(CudaAutocast):
    """With convolutions and addmm, and cat of its promote list."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func in (torch.conv2d, torch.addmm):
            return func(*[self.lower(a) for a in reversed(args)][::-1], **(kwargs or {}))
        if func is torch.cat:
            wide = any(t.dtype == torch.float32 for t in args[0])
            return func([t.float() if wide else t for t in args[0]], *args[1:], **(kwargs or {}))
        return super().__torch_function__(func, types, args, kwargs)


@contextlib.contextmanager
def checkpointed(model, is_on):
    if is_on:
        model.run = lambda layer, x: checkpoint(layer, x, use_reentrant=False)
    yield


def make_fake(model, mode):
    """Its parameters and buffers without values, tied ones still tied."""
    known = {}
    for module in model.modules():
        for name, p in module._parameters.items():
            if p is not None:
                known.setdefault(p, mode.from_tensor(p))
                module._parameters[name] = known[p]
        for name, buffer in module._buffers.items():
            if buffer is not None:
                module._buffers[name] = mode.from_tensor(buffer)


def case(name, batch, sequence=0, precision="fp32", layers=False):
    torch.set_default_dtype(torch.bfloat16 if precision == "bf16" else torch.float32)
    model, inputs, targets, loss = MADE[name]()
    torch.set_default_dtype(torch.float32)
    mode = FakeTensorMode()
    make_fake(model, mode)
    with mode:
        sized = lambda t: torch.zeros([batch] + ([sequence] if sequence and t.dim() == 2 else list(t.shape[1:])), dtype=t.dtype)
        inputs = {k: sized(v) for k, v in inputs.items()}
        targets = [sized(t) for t in targets]
        region = Autocast if precision == "bf16-autocast" else contextlib.nullcontext
        recorder = Recorder(list(model.parameters()) + list(model.buffers()) + list(inputs.values()) + targets)
        with sdpa_kernel(SDPBackend.MATH), checkpointed(model, layers), recorder:
            with region():
                output = model(**inputs)
                value = loss(output, *targets) if loss else output.loss
            if loss:
                logits = output
            events = {"forward": recorder.taken()}
            value.backward()
            events["backward"] = recorder.taken()
            del output, value
    return {"network": name, "batch": batch, "sequence": sequence, "precision": precision, "layers": layers,
            "events": events}


def main():
    os.makedirs(os.path.join(HERE, "networks"), exist_ok=True)
    for name, made in MADE.items():
        model, inputs, targets, loss = made()
        model.train()
        memscape_probe.export(model, inputs, os.path.join(HERE, "networks", name + ".json"), loss=loss, targets=targets)
    cases = []
    for name in ("odd", "resnet", "vit"):
        cases += [case(name, 2), case(name, 5)]
    cases += [case("odd", 3, precision="bf16"), case("vit", 3, precision="bf16")]
    cases += [case("odd", 5, layers=True), case("odd", 3, precision="bf16", layers=True)]
    for batch, sequence in ((2, 16), (5, 16), (2, 33), (3, 7)):
        cases.append(case("gpt2", batch, sequence))
    cases += [case("gpt2", 3, 7, "bf16"), case("gpt2", 2, 33, "bf16-autocast"), case("vit", 2, 0, "bf16-autocast")]
    print(json.dumps({"about": __doc__.strip(), "torch": torch.__version__, "cases": cases}, separators=(",", ":")))


if __name__ == "__main__":
    main()
