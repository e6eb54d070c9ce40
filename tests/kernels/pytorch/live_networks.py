#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Networks that Memscape knows by their network files alone, and the probe's worker that runs them.

    live_networks.py worker           the worker of memscape_probe, which also knows the models live:NAME
    live_networks.py export FOLDER    FOLDER/NAME.json of each (torch 2.1 or newer)

They are written as users write them, need torch alone, and are small: a step takes milliseconds."""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../kernels/pytorch"))

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

from memscape_probe import models, training, worker

VOCABULARY, CLASSES, PICTURE = 101, 7, 32


def plainly(layer, *arguments):
    return layer(*arguments)


class Layered(nn.Module):
    """`run` calls a layer, or checkpoints it."""

    def __init__(self):
        super().__init__()
        self.run = plainly


# --- a LLaMA without transformers ---------------------------------------------------------------------------------


class RootMeanSquare(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        dtype = x.dtype
        x = x.float()
        x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * x.to(dtype)


def turned(x):
    first, second = x.chunk(2, dim=-1)
    return torch.cat((-second, first), dim=-1)


class RotaryAttention(nn.Module):
    """Grouped queries, halves of each head turned by position, a causal mask that is added."""

    def __init__(self, hidden=48, heads=4, groups=2, positions=64):
        super().__init__()
        self.heads, self.groups, self.width = heads, groups, hidden // heads
        self.q, self.k, self.v = (nn.Linear(hidden, n * self.width, bias=False) for n in (heads, groups, groups))
        self.out = nn.Linear(hidden, hidden, bias=False)
        angles = torch.outer(torch.arange(positions).float(), 1e4 ** -(torch.arange(0, self.width, 2) / self.width))
        angles = torch.cat((angles, angles), dim=-1)
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)
        self.register_buffer("mask", torch.full((positions, positions), -1e4).triu(1), persistent=False)

    def forward(self, x):
        batch, length, hidden = x.shape
        q = self.q(x).view(batch, length, self.heads, self.width).transpose(1, 2)
        k = self.k(x).view(batch, length, self.groups, self.width).transpose(1, 2)
        v = self.v(x).view(batch, length, self.groups, self.width).transpose(1, 2)
        cos, sin = self.cos[:length], self.sin[:length]
        q = q * cos + turned(q) * sin
        k = k * cos + turned(k) * sin
        k, v = (t[:, :, None].expand(-1, -1, self.heads // self.groups, -1, -1).reshape(batch, self.heads, length, self.width)
                for t in (k, v))
        scores = q @ k.transpose(2, 3) * self.width ** -0.5
        scores = scores + self.mask[:length, :length]
        weights = F.softmax(scores, dim=-1)
        mixed = (weights @ v).transpose(1, 2).reshape(batch, length, hidden)
        return self.out(mixed)


class GatedFeedForward(nn.Module):
    def __init__(self, hidden, inner):
        super().__init__()
        self.gate, self.up = nn.Linear(hidden, inner, bias=False), nn.Linear(hidden, inner, bias=False)
        self.down = nn.Linear(inner, hidden, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class LlamaLayer(nn.Module):
    def __init__(self, hidden=48, inner=120):
        super().__init__()
        self.norm1, self.attention = RootMeanSquare(hidden), RotaryAttention(hidden)
        self.norm2, self.feed = RootMeanSquare(hidden), GatedFeedForward(hidden, inner)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.feed(self.norm2(x))


class Llama(Layered):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, 48)
        self.layers = nn.ModuleList(LlamaLayer() for _ in range(2))
        self.norm, self.head = RootMeanSquare(48), nn.Linear(48, VOCABULARY, bias=False)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = self.run(layer, x)
        return self.head(self.norm(x))


# --- pictures -----------------------------------------------------------------------------------------------------


class Residual(nn.Module):
    """3x3 and depthwise convolutions around a shortcut."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, groups=outputs, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.shortcut = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1)

    def forward(self, x):
        y = F.relu(self.norm1(self.conv1(x)), inplace=True)
        y = self.norm2(self.conv2(y))
        return F.relu(y + self.shortcut(x))


class Convolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 5, padding=2), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2))
        self.blocks = nn.Sequential(Residual(16, 16, 1), Residual(16, 32, 2))
        self.head = nn.Linear(32, CLASSES)

    def forward(self, x):
        x = self.blocks(self.stem(x))
        x = torch.flatten(F.adaptive_avg_pool2d(x, 1), 1)
        return self.head(x)


class EncoderLayer(nn.Module):
    def __init__(self, hidden=32, heads=4):
        super().__init__()
        self.heads = heads
        self.norm1, self.qkv = nn.LayerNorm(hidden), nn.Linear(hidden, 3 * hidden)
        self.proj, self.norm2 = nn.Linear(hidden, hidden), nn.LayerNorm(hidden)
        self.feed = nn.Sequential(nn.Linear(hidden, 4 * hidden), nn.GELU(), nn.Linear(4 * hidden, hidden))

    def attention(self, x):
        batch, length, hidden = x.shape
        q, k, v = self.qkv(x).reshape(batch, length, 3, self.heads, hidden // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        weights = (q * (hidden // self.heads) ** -0.5 @ k.transpose(-2, -1)).softmax(dim=-1)
        return self.proj((weights @ v).transpose(1, 2).reshape(batch, length, hidden))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.feed(self.norm2(x))


class Vit(Layered):
    """Patches as products, a token for the class, positions that are learned."""

    def __init__(self, hidden=32, patch=8):
        super().__init__()
        self.patch, count = patch, (PICTURE // patch) ** 2
        self.embedding = nn.Linear(3 * patch * patch, hidden)
        self.token = nn.Parameter(torch.zeros(1, 1, hidden))
        self.positions = nn.Parameter(torch.zeros(1, count + 1, hidden))
        self.layers = nn.ModuleList(EncoderLayer(hidden) for _ in range(2))
        self.norm, self.head = nn.LayerNorm(hidden), nn.Linear(hidden, CLASSES)

    def forward(self, pictures):
        batch, rows = pictures.shape[0], PICTURE // self.patch
        x = pictures.reshape(batch, 3, rows, self.patch, rows, self.patch).permute(0, 2, 4, 1, 3, 5)
        x = self.embedding(x.reshape(batch, rows * rows, -1))
        x = torch.cat((self.token.expand(batch, -1, -1), x), dim=1) + self.positions
        for layer in self.layers:
            x = self.run(layer, x)
        return self.head(self.norm(x)[:, 0])


# --- an odd one ---------------------------------------------------------------------------------------------------


class Gate(nn.Module):
    """Operators that no family of Memscape has, and writes into parts of a tensor."""

    def __init__(self, width=24):
        super().__init__()
        self.up, self.down = nn.Linear(width, 3 * width), nn.Linear(width, width, bias=False)
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x):
        a, b, c = self.up(x).chunk(3, dim=-1)
        y = torch.sin(a) * self.scale
        y = y.roll(1, dims=0) + torch.sigmoid(b)
        y = y.mul(F.leaky_relu(c + 1, inplace=True))
        y = torch.cat([y[:, :y.shape[1] // 2], y.flip(1)[:, y.shape[1] // 2:]], dim=1)
        return x + self.down(F.hardtanh(y, -3, 3))


class Odd(Layered):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Gate() for _ in range(3))
        self.norm, self.head = nn.LayerNorm(24), nn.Linear(24, CLASSES)

    def forward(self, x):
        for layer in self.layers:
            x = self.run(layer, x)
        with torch.no_grad():
            center = x.mean(0, keepdim=True)
        return self.head(self.norm(x - center))


class Recurrent(nn.Module):
    """A cell of gates, step after step, whose states are written into one tensor."""

    def __init__(self, width=20):
        super().__init__()
        self.width, self.embedding = width, nn.Embedding(VOCABULARY, width)
        self.gates, self.head = nn.Linear(2 * width, 2 * width), nn.Linear(width, VOCABULARY)

    def forward(self, tokens):
        x = self.embedding(tokens)
        states = torch.zeros_like(x)
        state = torch.zeros_like(x[:, 0])
        for i in range(tokens.shape[1]):
            forget, new = self.gates(torch.cat((x[:, i], state), dim=1)).chunk(2, dim=1)
            forget = torch.sigmoid(forget)
            state = forget * state + (1 - forget) * torch.tanh(new)
            states[:, i] = state
        return self.head(states)


# --- as workloads -------------------------------------------------------------------------------------------------


class Rows(models.Workload):
    """Numbers in, a class out."""

    def inputs(self, batch, sequence, device, dtype):
        return (torch.randn(batch, self.width).to(dtype),), torch.randint(0, self.classes, (batch,))

    def loss(self, output, targets):
        return F.cross_entropy(output, targets)


def workload(name):
    if name == "llama":
        return models.Workload(Llama(), "torch", "tokens", vocab=VOCABULARY, has_float_logits=True)
    if name == "recurrent":
        return models.Workload(Recurrent(), "torch", "tokens", vocab=VOCABULARY, has_float_logits=True)
    if name == "odd":
        return Rows(Odd(), "torch", "rows", width=24, classes=CLASSES)
    make = {"vit": Vit, "convolutions": Convolutions}[name]
    return models.Workload(make(), "torch", "pictures", side=PICTURE, classes=CLASSES)


NAMES = ("llama", "recurrent", "odd", "vit", "convolutions")
SEQUENCES = {"llama": 16, "recurrent": 4}


def chosen(model, described, plan, sequence, others=models.chosen):
    word, _, name = model.partition(":")
    if word != "live":
        return others(model, described, plan, sequence)
    made = workload(name)
    made.module.to(plan.dtype)  # buffers, too
    if plan.checkpointing == "block":
        made.module.run = lambda layer, *x: checkpoint(layer, *x, use_reentrant=False, preserve_rng_state=False)
    return made


def export(folder):
    import memscape_probe
    for name in NAMES:
        made = workload(name)
        inputs, targets = made.inputs(2, SEQUENCES.get(name, 1), torch.device("cpu"), torch.float32)
        memscape_probe.export(made.module, inputs, os.path.join(folder, f"{name}.json"), loss=made.loss, targets=(targets,))


if __name__ == "__main__":
    if sys.argv[1] == "export":
        export(sys.argv[2])
    else:
        models.chosen = chosen
        training.TIMED_STEPS = training.LEAST_TIMED = 1
        sys.exit(worker.main([]))
