#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records whole training steps of library models as training_steps.py records those of a decoder from
scratch, and with its recorder: a GPT-2 in the manner of nanoGPT, transformers' LLaMA, PyTorch's own AdamW,
gradient clipping and accumulation, attention as FlashAttention and the memory-efficient kernel return it.

Without a GPU F.scaled_dot_product_attention would choose a CPU kernel. So the functions that it calls on
CUDA are called here (aten/src/ATen/native/transformers/attention.cpp), which fake tensors answer with the
shapes that CUDA's kernels return. What a kernel allocates and frees within itself is not seen.

Usage: model_steps.py > model_steps.json
"""
import contextlib
import json
import sys

sys.dont_write_bytecode = True

import torch
import torch.nn.functional as F
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import TorchFunctionMode
from torch.utils.checkpoint import checkpoint

from training_steps import CudaAutocast, Recorder, check_autocast, forward_events, own_autocast

ATEN = torch.ops.aten


class CudaAttention(TorchFunctionMode):
    """F.scaled_dot_product_attention as CUDA runs it, causal or with a mask of Bool, and without dropout."""

    def __init__(self, kernel):
        super().__init__()
        self.kernel = kernel

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is not F.scaled_dot_product_attention:
            return func(*args, **kwargs)
        q, k, v = args[:3]
        mask, keeps = kwargs.get("attn_mask"), torch.is_grad_enabled() and q.requires_grad
        assert not kwargs.get("dropout_p") and kwargs["is_causal"] == (mask is None)
        if mask is not None:  # convert_boolean_attn_mask(), rows of a multiple of 16
            assert self.kernel == "efficient" and mask.dtype == torch.bool and mask.size(-1) % 16 == 0
            bias = torch.where(mask, torch.zeros((), dtype=q.dtype), -torch.inf).expand(-1, q.size(1), -1, -1)
            return ATEN._scaled_dot_product_efficient_attention(q, k, v, bias, keeps, 0.0, False)[0]
        if self.kernel == "flash":
            return ATEN._scaled_dot_product_flash_attention(q, k, v, 0.0, True, return_debug_mask=False)[0]
        return ATEN._scaled_dot_product_efficient_attention(q, k, v, None, keeps, 0.0, True)[0]


# --- a GPT-2 as nanoGPT writes it ---------------------------------------------------------------------------


class SelfAttention(nn.Module):
    def __init__(self, width, heads, sequence, kernel):
        super().__init__()
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.heads, self.kernel = heads, kernel
        self.register_buffer("mask", torch.tril(torch.ones(1, 1, sequence, sequence, dtype=torch.bool)))

    def forward(self, x):
        b, s, d = x.shape
        q, k, v = self.c_attn(x).split(d, dim=2)
        q, k, v = (t.view(b, s, self.heads, d // self.heads).transpose(1, 2) for t in (q, k, v))
        if self.kernel == "eager":
            scores = (q @ k.transpose(-2, -1)) * (k.size(-1) ** -0.5)
            scores = scores.masked_fill(self.mask[:, :, :s, :s] == 0, float("-inf"))
            scores = F.softmax(scores, dim=-1)
            y = scores @ v
        else:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        y = y.transpose(1, 2).contiguous().view(b, s, d)
        return self.c_proj(y)


class Gpt2Block(nn.Module):
    def __init__(self, width, heads, sequence, kernel):
        super().__init__()
        self.ln_1 = nn.LayerNorm(width)
        self.attn = SelfAttention(width, heads, sequence, kernel)
        self.ln_2 = nn.LayerNorm(width)
        self.c_fc, self.c_proj = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def feed(self, x):
        x = self.c_fc(x)
        x = F.gelu(x)
        return self.c_proj(x)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        x = x + self.feed(self.ln_2(x))
        return x


def chunked_loss(logits, targets):
    """The sum over pieces of the sequence, each in float (as torchtune's CEWithChunkedOutputLoss)."""
    count = (targets != -100).sum()
    labels = [piece.reshape(-1) for piece in targets.chunk(len(logits), dim=1)]
    logits = [piece.reshape(-1, piece.size(-1)) for piece in logits]
    total = 0.0
    for piece, wanted in zip(logits, labels):
        total += F.cross_entropy(piece.float(), wanted, reduction="sum")
    return total / count


class Gpt2(nn.Module):
    def __init__(self, hidden, layers, heads, vocab, sequence, kernel):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab, hidden), nn.Embedding(sequence, hidden)
        self.h = nn.ModuleList(Gpt2Block(hidden, heads, sequence, kernel) for _ in range(layers))
        self.ln_f = nn.LayerNorm(hidden)
        self.lm_head = nn.Linear(hidden, vocab, bias=False)
        self.wte.weight = self.lm_head.weight
        self.register_buffer("positions", torch.arange(sequence)[None])
        self.run = lambda block, x: block(x)
        self.chunks = 0

    def forward(self, tokens, targets):
        x = self.wte(tokens) + self.wpe(self.positions)
        for block in self.h:
            x = self.run(block, x)
        x = self.ln_f(x)
        if self.chunks:
            return [self.lm_head(chunk) for chunk in x.chunk(self.chunks, dim=1)]
        logits = self.lm_head(x)
        loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))
        return logits, loss


def llama(config, kernel):
    from transformers import LlamaConfig
    from transformers.integrations import sdpa_attention
    from transformers.models.llama import modeling_llama
    # How the mask and the tables of rotary positions are made is not compared: they just appear.
    modeling_llama.create_causal_mask = lambda inputs_embeds, **rest: None if kernel != "eager" else torch.empty(
        config["batch"], 1, config["sequence"], config["sequence"], dtype=inputs_embeds.dtype)
    # Before PyTorch 2.14 the memory-efficient kernel shared no heads, and transformers copied them for it.
    sdpa_attention.use_gqa_in_sdpa = lambda *_: kernel != "efficient"
    modeling_llama.LlamaRotaryEmbedding.forward = lambda self, x, position_ids: tuple(
        torch.empty(1, config["sequence"], config["hidden"] // config["heads"], dtype=x.dtype) for _ in range(2))
    return modeling_llama.LlamaForCausalLM(LlamaConfig(
        hidden_size=config["hidden"], num_hidden_layers=config["layers"], num_attention_heads=config["heads"],
        num_key_value_heads=config["kv_heads"], intermediate_size=config["ffn"], vocab_size=config["vocab"],
        max_position_embeddings=config["sequence"], tie_word_embeddings=False, use_cache=False,
        attn_implementation="eager" if kernel == "eager" else "sdpa"))


# --- recording ------------------------------------------------------------------------------------------------


OPTIMIZERS = {"sgd": torch.optim.SGD, "adamw": torch.optim.AdamW}


def step_case(config, precision="fp32", attention="eager", optimizer="adamw", update="foreach", accumulation=1,
              clipping=False, checkpointed=False,
              chunks=0):
    with FakeTensorMode(allow_non_fake_inputs=True):
        torch.set_default_dtype(torch.bfloat16 if precision in ("bf16", "bf16-under-autocast") else torch.float32)
        if config["model"] == "gpt2":
            sizes = {k: config[k] for k in ("hidden", "layers", "heads", "vocab", "sequence")}
            model = Gpt2(**sizes, kernel=attention)
            model.chunks = chunks
        else:
            model = llama(config, attention)
        torch.set_default_dtype(torch.float32)

        @contextlib.contextmanager
        def region():  # also around what is run again: backward() itself is called without modes
            with contextlib.ExitStack() as stack:
                if attention != "eager":
                    stack.enter_context(CudaAttention(attention))
                if precision.endswith("-autocast"):
                    stack.enter_context(CudaAutocast())
                yield

        if checkpointed:
            model.run = lambda block, x: checkpoint(
                block, x, use_reentrant=False, preserve_rng_state=False,
                context_fn=lambda: (contextlib.nullcontext(), region()))
        tokens = torch.empty(config["batch"], config["sequence"], dtype=torch.long)
        targets = torch.empty_like(tokens)
        positions = torch.empty(1, config["sequence"], dtype=torch.long)
        style = {"foreach": update == "foreach"} | ({"fused": True} if update == "fused" else {})
        updater = OPTIMIZERS[optimizer](model.parameters(), lr=0.1, **style)

        def forward():
            with region():
                if config["model"] == "gpt2":
                    return model(tokens, targets)
                outputs = model(input_ids=tokens, position_ids=positions, shift_labels=targets, labels=targets)
                return outputs, outputs.loss

        def step(record=lambda name: None):
            kept, loss = None, None
            for i in range(accumulation):
                if chunks:  # the loop computes the loss
                    with region():
                        kept = model(tokens, targets)
                        loss = chunked_loss(kept, targets)
                else:
                    kept, loss = forward()
                record(f"forward {i}")
                loss.backward()
                record(f"backward {i}")
            if clipping:
                nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
                record("clipping")
            updater.step()
            record("optimizer")
            updater.zero_grad()
            record("zero")
            return kept, loss

        step()
        events = {}
        state = [t for s in updater.state.values() for t in s.values() if isinstance(t, torch.Tensor)]
        recorder = Recorder(list(model.parameters()) + list(model.buffers()) + [tokens, targets, positions] + state)
        del state
        with recorder:
            kept = step(lambda name: events.__setitem__(name, recorder.taken()))
        del kept
    return {**config, "precision": precision, "attention": attention, "optimizer": optimizer, "update": update,
            "accumulation": accumulation, "clipping": clipping, "checkpointed": checkpointed, "chunks": chunks, "events": events}


GPT2 = {"model": "gpt2", "hidden": 48, "layers": 2, "heads": 4, "vocab": 211, "batch": 2, "sequence": 24}
LLAMA = {"model": "llama", "hidden": 64, "layers": 2, "heads": 4, "kv_heads": 2, "ffn": 120, "vocab": 203, "batch": 2,
         "sequence": 20}


def made_gpt2(attention, weights=torch.float32):
    torch.set_default_dtype(weights)
    tokens = torch.empty(GPT2["batch"], GPT2["sequence"], dtype=torch.long)
    model = Gpt2(*(GPT2[k] for k in ("hidden", "layers", "heads", "vocab", "sequence")), attention)
    torch.set_default_dtype(torch.float32)
    return model, lambda model, *arguments: model(*arguments), tokens, torch.empty_like(tokens)


def main():
    """Layer norms of fake CPU tensors in bf16 keep their statistics in bf16, those of CUDA in float."""
    check_autocast(lambda: made_gpt2("eager"))
    half_gpt2 = lambda: made_gpt2("eager", torch.bfloat16)
    assert forward_events("cpu", CudaAutocast, half_gpt2) == forward_events("cuda", own_autocast, half_gpt2)
    cases = []
    for config in (GPT2, LLAMA):
        for precision in ("fp32", "bf16-autocast", "bf16"):
            for attention in ("eager", "flash", "efficient"):
                if attention == "flash" and precision == "fp32":
                    continue  # FlashAttention is for halves
                print(config["model"], precision, attention, file=sys.stderr)
                cases.append(step_case(config, precision, attention))
    for update in ("loop", "fused"):
        cases.append(step_case(GPT2, "fp32", update=update))
    cases.append(step_case(GPT2, "bf16-autocast", accumulation=2, clipping=True))
    cases.append(step_case(GPT2, "fp32", checkpointed=True))
    cases.append(step_case(GPT2, "bf16-autocast", "flash", checkpointed=True))
    for precision in ("fp32", "bf16-autocast", "bf16"):
        cases.append(step_case(GPT2, precision, accumulation=2, chunks=5))
    for config in (GPT2, LLAMA):
        for attention in ("eager", "flash"):
            cases.append(step_case(config, "bf16-under-autocast", attention))
    half = forward_events("cuda", lambda: own_autocast(torch.float16), lambda: made_gpt2("eager"))
    cases.append({**GPT2, "precision": "fp16-autocast", "attention": "eager", "optimizer": "adamw", "update": "foreach",
                  "accumulation": 1, "clipping": False, "checkpointed": False, "events": {"forward 0": half}})
    print(json.dumps({"about": __doc__.strip(), "torch": torch.__version__, "cases": cases}, separators=(",", ":")))


if __name__ == "__main__":
    main()
