#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records what training steps and forward passes of a real PyTorch allocate and free, phase by phase.

No GPU is needed: tensors are fake ones (shapes without values), and a dispatch mode watches the storages
that operators return. Temporaries inside a kernel are not seen. The autocast of CUDA is spelled out, because
without a GPU nothing that is on "cuda" goes backward: operators of its lower-precision list cast their
operands (a parameter's cast is made once and kept until the region ends), those of its float list cast to
float (aten/src/ATen/autocast_mode.h). Forward passes are also run on a fake "cuda" under PyTorch's own
autocast, and must allocate and free the same.

Steps are those of a loop that has run before: optimizer state exists, gradients do not. Events are signed
bytes in time order: +n is an allocation, -n a free; frees between two operators are sorted.

Under a dispatch mode the engine adds two gradients of one tensor into a new one; without it, into the first
where nothing else holds that. Here it is always a new one.

Usage: training_steps.py > training_steps.json
"""
import contextlib
import json
import math

import torch
import torch.nn.functional as F
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.multiprocessing.reductions import StorageWeakRef
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.checkpoint import checkpoint


# Autograd writes gradients of lookups in place, except where a dispatch mode watches it.
ATEN = torch.ops.aten
IN_PLACE = {ATEN.scatter_add.default: ATEN.scatter_add_.default, ATEN.scatter.src: ATEN.scatter_.src,
            ATEN.index_put.default: ATEN.index_put_.default}


class Recorder(TorchDispatchMode):
    def __init__(self, known):
        super().__init__()
        self.live = {}
        self.events = []
        for t in known:
            self.watch(t.untyped_storage())
        self.events.clear()

    def watch(self, storage):
        if storage._cdata not in self.live and storage.nbytes() > 0:
            self.live[storage._cdata] = (StorageWeakRef(storage), storage.nbytes())
            self.events.append(storage.nbytes())

    def poll(self):
        dead = [key for key, (ref, _) in self.live.items() if ref.expired()]
        self.events += sorted(-self.live.pop(key)[1] for key in dead)

    def taken(self):
        self.poll()
        events, self.events = self.events, []
        return events

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.poll()
        result = IN_PLACE.get(func, func)(*args, **(kwargs or {}))
        for t in tree_leaves(result):
            if isinstance(t, torch.Tensor):
                self.watch(t.untyped_storage())
        return result


class CudaAutocast(TorchFunctionMode):
    LOWER = {torch.einsum, F.linear, torch.matmul, torch.bmm, torch.Tensor.matmul, torch.Tensor.__matmul__,
             F.scaled_dot_product_attention}
    FLOAT = {torch.exp, torch.log, torch.pow, torch.rsqrt, torch.sum, torch.Tensor.exp, torch.Tensor.log, torch.Tensor.pow,
             torch.Tensor.rsqrt, torch.Tensor.sum, F.softmax, torch.softmax, F.log_softmax, torch.nn.functional.layer_norm,
             torch.layer_norm}

    def __init__(self):
        super().__init__()
        self.cache = {}

    def lower(self, t):
        if not isinstance(t, torch.Tensor) or t.dtype != torch.float32:
            return t
        if isinstance(t, nn.Parameter) and t.requires_grad:
            if id(t) not in self.cache:
                self.cache[id(t)] = t.to(torch.bfloat16)
            return self.cache[id(t)]
        return t.to(torch.bfloat16)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is F.cross_entropy:  # asks log_softmax for the input's own type; nll_loss is on the float list
            logits, targets = args
            return F.nll_loss(F.log_softmax(logits, 1, dtype=logits.dtype).float(), targets)
        if func is torch.einsum:  # a list, cast from its front
            return func(*[self.lower(a) for a in args], **kwargs)
        if func in self.LOWER:  # arguments of a C++ call, which gcc evaluates from the last
            return func(*[self.lower(a) for a in reversed(args)][::-1], **kwargs)
        if func in self.FLOAT:
            wide = lambda a: a.float() if isinstance(a, torch.Tensor) and a.dtype == torch.bfloat16 else a
            kwargs = {name: wide(a) for name, a in reversed(kwargs.items())}
            args = [wide(a) for a in reversed(args)][::-1]
        return func(*args, **kwargs)

    def __exit__(self, *error):
        self.cache.clear()
        return super().__exit__(*error)


@contextlib.contextmanager
def own_autocast(dtype=torch.bfloat16):
    """torch.autocast("cuda", dtype), which would turn itself off where there is no GPU."""
    torch.set_autocast_dtype("cuda", dtype)
    torch.set_autocast_enabled("cuda", True)
    torch.autocast_increment_nesting()
    try:
        yield
    finally:
        if torch.autocast_decrement_nesting() == 0:
            torch.clear_autocast_cache()
        torch.set_autocast_enabled("cuda", False)


def forward_events(device, region, made):
    """What one forward pass allocates and frees; `made` returns a model and its arguments."""
    with FakeTensorMode(), torch.device(device):
        model, run, *arguments = made()
        recorder = Recorder(list(model.parameters()) + list(model.buffers()) + arguments)
        with recorder:
            with region():
                result = run(model, *arguments)
            events = recorder.taken()
        del result
    return [e for e in events if abs(e) > 8]  # numbers differ: on CUDA some stay on the host


def check_autocast(made):
    assert forward_events("cpu", CudaAutocast, made) == forward_events("cuda", own_autocast, made)
    assert forward_events("cpu", contextlib.nullcontext, made) == forward_events("cuda", contextlib.nullcontext, made)


# --- the decoder that courses let students write: every operator by itself ---------------------------------


class Linear(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outputs, inputs))

    def forward(self, x):
        return torch.einsum("bsi,oi->bso", x, self.weight)


class RMSNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width))

    def forward(self, x):
        dtype = x.dtype
        x = x.to(torch.float32)
        rms = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5)
        x = x * rms
        return (self.weight * x).to(dtype)


class Rotary(nn.Module):
    def __init__(self, positions, width):
        super().__init__()
        self.register_buffer("table", torch.empty(2, positions, width // 2))

    def forward(self, x):
        b, h, s, d = x.shape
        x1, x2 = x.view(b, h, s, d // 2, 2).permute(4, 0, 1, 2, 3).unbind(0)
        cos, sin = self.table[:, :s, :].unbind(0)
        first = cos * x1 - sin * x2
        second = sin * x1 + cos * x2
        return torch.concat((first, second), dim=-1)


def softmax(x):
    x = x - torch.max(x, dim=-1, keepdim=True)[0]
    exponentials = torch.exp(x)
    return exponentials / torch.sum(exponentials, dim=-1, keepdim=True)


def attend(q, k, v, mask):
    scores = torch.einsum("bhqd,bhkd->bhqk", q, k) / math.sqrt(q.shape[-1])
    scores = torch.where(mask, scores, float("-inf"))
    weights = softmax(scores)
    return torch.einsum("bhqk,bhkd->bhqd", weights, v)


class Attention(nn.Module):
    def __init__(self, width, heads, rotary):
        super().__init__()
        self.q_proj, self.k_proj, self.v_proj, self.output_proj = (Linear(width, width) for _ in range(4))
        self.heads = heads
        self.rotary = rotary
        self.is_core_checkpointed = False
        self.region = contextlib.nullcontext

    def forward(self, x):
        b, s, d = x.shape
        q = self.q_proj(x)
        k = self.k_proj(x)
        v = self.v_proj(x)
        q, k, v = (t.view(b, s, self.heads, d // self.heads).transpose(1, 2) for t in (q, k, v))
        q = self.rotary(q)
        k = self.rotary(k)
        sequence = torch.arange(s)
        mask = (sequence.view(s, 1) >= sequence.view(1, s))[None]
        if self.is_core_checkpointed:
            output = checkpoint(attend, q, k, v, mask, use_reentrant=False, preserve_rng_state=False,
                                context_fn=lambda: (contextlib.nullcontext(), self.region()))
        else:
            output = attend(q, k, v, mask)
        output = output.transpose(1, 2).contiguous().view(b, s, d)
        return self.output_proj(output)


class SwiGLU(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.w1, self.w3, self.w2 = Linear(width, inner), Linear(width, inner), Linear(inner, width)

    def forward(self, x):
        return self.w2(self.silu(self.w1(x)) * self.w3(x))

    @staticmethod
    def silu(x):
        return x * torch.sigmoid(x)


class Block(nn.Module):
    def __init__(self, width, heads, inner, rotary):
        super().__init__()
        self.ln1 = RMSNorm(width)
        self.attn = Attention(width, heads, rotary)
        self.ln2 = RMSNorm(width)
        self.ffn = SwiGLU(width, inner)

    def forward(self, x):
        attended = self.attn(self.ln1(x))
        middle = x + attended
        fed = self.ffn(self.ln2(middle))
        return middle + fed


class Decoder(nn.Module):
    def __init__(self, hidden, layers, heads, ffn, vocab, sequence):
        super().__init__()
        rotary = Rotary(sequence, hidden // heads)
        self.embedding = nn.Parameter(torch.empty(vocab, hidden))
        self.layers = nn.ModuleList(Block(hidden, heads, ffn, rotary) for _ in range(layers))
        self.ln_final = RMSNorm(hidden)
        self.lm_head = Linear(hidden, vocab)
        self.every = 0
        self.region = contextlib.nullcontext

    def forward(self, tokens):
        x = self.embedding[tokens, :]
        for first in range(0, len(self.layers), self.every or 1):
            if self.every:
                x = checkpoint(self.run, x, first, use_reentrant=False, preserve_rng_state=False,
                               context_fn=lambda: (contextlib.nullcontext(), self.region()))
            else:
                x = self.layers[first](x)
        x = self.ln_final(x)
        return self.lm_head(x)

    def run(self, x, first):
        for layer in self.layers[first:first + self.every]:
            x = layer(x)
        return x


def log_softmax(x):
    top = torch.max(x, dim=-1, keepdim=True)[0]
    x = x - top
    return x - torch.log(torch.sum(torch.exp(x), dim=-1, keepdim=True))


def cross_entropy(logits, targets):
    negative = -log_softmax(logits)
    return torch.mean(torch.gather(negative, -1, targets.unsqueeze(-1)))


class AdamW(torch.optim.Optimizer):
    """Every expression out of place."""

    def __init__(self, parameters):
        super().__init__(parameters, {"lr": 1e-3})

    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                grad = p.grad.data
                state = self.state[p]
                last_m = state.get("m", torch.zeros_like(grad))
                last_v = state.get("v", torch.zeros_like(grad))
                m = 0.9 * last_m + (1 - 0.9) * grad
                v = 0.95 * last_v + (1 - 0.95) * torch.square(grad)
                p.data -= group["lr"] * m / (torch.sqrt(v) + 1e-8)
                p.data -= group["lr"] * 0.1 * p.data
                state["m"] = m
                state["v"] = v


# --- recording ------------------------------------------------------------------------------------------------


def decoder_case(config, precision, phase, every=0, selective=False, names_logits=True):
    """names_logits: the loop says `logits = model(tokens)`, and so they live until the next step."""
    with FakeTensorMode():
        sizes = {k: config[k] for k in ("hidden", "layers", "heads", "ffn", "vocab", "sequence")}
        model = Decoder(**sizes)
        model.every = every
        tokens = torch.empty(config["batch"], config["sequence"], dtype=torch.long)
        targets = torch.empty_like(tokens)
        optimizer = AdamW(model.parameters())
        region = CudaAutocast if precision == "bf16-autocast" else contextlib.nullcontext
        model.region = region
        for layer in model.layers:
            layer.attn.is_core_checkpointed = selective
            layer.attn.region = region

        def forward():
            with region():
                logits = model(tokens)
                if phase != "training":
                    return logits
                loss = cross_entropy(logits, targets)
                return (loss, logits) if names_logits else (loss, None)

        def step(record=lambda name: None):
            if phase == "inference":
                with torch.no_grad():
                    result = forward()
                record("forward")
                return result
            result = forward()
            record("forward")
            if phase == "training":
                result[0].backward()
                record("backward")
                optimizer.step()
                record("optimizer")
            return result

        if phase == "training":
            step()
            optimizer.zero_grad()
        events = {}
        state = [t for s in optimizer.state.values() for t in s.values()]
        recorder = Recorder(list(model.parameters()) + list(model.buffers()) + [tokens, targets] + state)
        del state
        with recorder:
            kept = step(lambda name: events.__setitem__(name, recorder.taken()))
        del kept
    return {"model": "decoder", "precision": precision, "phase": phase, "every": every, "selective": selective,
            "names_logits": names_logits, **config, "events": events}


SMALL = {"hidden": 48, "layers": 2, "heads": 4, "ffn": 128, "vocab": 200, "batch": 2, "sequence": 16}
TALL = {"hidden": 64, "layers": 3, "heads": 2, "ffn": 96, "vocab": 1000, "batch": 1, "sequence": 24}
ODD = {"hidden": 60, "layers": 2, "heads": 3, "ffn": 100, "vocab": 257, "batch": 3, "sequence": 13}
LONG = {"hidden": 32, "layers": 1, "heads": 1, "ffn": 64, "vocab": 50, "batch": 1, "sequence": 129}
WORDS = {"hidden": 16, "layers": 1, "heads": 2, "ffn": 40, "vocab": 5003, "batch": 4, "sequence": 7}


def made_decoder(config):
    tokens = torch.empty(config["batch"], config["sequence"], dtype=torch.long)
    model = Decoder(**{k: config[k] for k in ("hidden", "layers", "heads", "ffn", "vocab", "sequence")})

    def run(model, tokens, targets):
        logits = model(tokens)
        return logits, cross_entropy(logits, targets)

    return model, run, tokens, torch.empty_like(tokens)


def main():
    for config in (SMALL, ODD, WORDS):
        check_autocast(lambda: made_decoder(config))
    cases = []
    for config in (SMALL, TALL):
        for precision in ("fp32", "bf16-autocast"):
            for phase in ("training", "forward", "inference"):
                cases.append(decoder_case(config, precision, phase))
    for config in (ODD, LONG, WORDS):
        for precision in ("fp32", "bf16-autocast"):
            for phase in ("training", "inference"):
                cases.append(decoder_case(config, precision, phase))
    for precision in ("fp32", "bf16-autocast"):
        cases.append(decoder_case(SMALL, precision, "training", names_logits=False))
        for every in (1, 2):
            cases.append(decoder_case(TALL, precision, "training", every))
        cases.append(decoder_case(TALL, precision, "training", selective=True))
    print(json.dumps({"about": __doc__.strip(), "torch": torch.__version__, "cases": cases}, separators=(",", ":")))


if __name__ == "__main__":
    main()
