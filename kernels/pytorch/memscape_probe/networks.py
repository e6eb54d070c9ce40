# SPDX-License-Identifier: Apache-2.0
"""The networks that Memscape knows by their code, with the modules, names and operators that it predicts
(core/network/families): the decoder that a course lets students write, a GPT-2 as nanoGPT writes it, a chain of linear
layers. They need torch alone.

Blocks run one by one or, where the plan says so, in checkpointed segments: Network.steps()."""
import functools
import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

try:  # since PyTorch 2.4
    from torch.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts
except ImportError:
    create_selective_checkpoint_contexts = None

from .problem import skipped


class Sizes:
    """hidden, layers, heads, kv_heads, head_dim, ffn, vocab, positions of a decoder; layer_sizes of a chain."""

    def __init__(self, described):
        for key in ("hidden", "layers", "heads", "kv_heads", "head_dim", "ffn", "vocab", "positions"):
            setattr(self, key, int(described.get(key) or 0))
        self.layer_sizes = [int(size) for size in described.get("mlp") or []]
        self.is_tied = bool(described.get("tied", True))
        self.activation = str(described.get("activation") or "")


class Options:
    """How a network runs: kernels, dropout, and what is checkpointed."""

    def __init__(self, attention="eager", is_written_out=False, dropout=0.0, every=0, checkpoints_core=False,
                 is_reentrant=False, keeps_results=False, skips_first=False):
        self.attention, self.is_written_out, self.dropout = attention, is_written_out, dropout
        self.every, self.checkpoints_core, self.is_reentrant = every, checkpoints_core, is_reentrant
        self.keeps_results = keeps_results  # of attention and of every second product without bias
        self.skips_first = skips_first  # of every two blocks

    def checkpointed(self, function, *arguments):
        policy = {"context_fn": kept_results} if self.keeps_results else {}
        # Without dropout nothing random is run again, and the generator's state needs no copy.
        return checkpoint(function, *arguments, use_reentrant=self.is_reentrant, preserve_rng_state=self.dropout > 0, **policy)

    def core(self, function, *arguments):
        return self.checkpointed(function, *arguments) if self.checkpoints_core else function(*arguments)


def kept_results():
    """What torchtitan's policy for single operators keeps of a block that runs."""
    aten = torch.ops.aten
    attention = (aten._scaled_dot_product_flash_attention.default, aten._scaled_dot_product_efficient_attention.default,
                 aten._scaled_dot_product_flash_attention_for_cpu.default)
    products = {False: 0, True: 0}

    def choose(context, function, *arguments, **options):
        if function == aten.mm.default:
            products[context.is_recompute] += 1
        is_kept = function in attention or (function == aten.mm.default and products[context.is_recompute] % 2 == 1)
        return CheckpointPolicy.MUST_SAVE if is_kept else CheckpointPolicy.PREFER_RECOMPUTE

    return create_selective_checkpoint_contexts(choose)


class Network(nn.Module):
    """One with a list of blocks."""

    def __init__(self, options):
        super().__init__()
        self.options = options

    def steps(self, blocks):
        """Functions of x alone: the blocks, or checkpointed segments of them. The caller loops, so that it holds no older x."""
        every = self.options.every
        if not every:
            return list(blocks)
        if self.options.skips_first:
            return [functools.partial(self.options.checkpointed, block) if index % 2 else block for index, block in enumerate(blocks)]
        return [functools.partial(self.options.checkpointed, run_all, blocks[first:first + every])
                for first in range(0, len(blocks), every)]


def run_all(functions, x):
    for function in functions:
        x = function(x)
    return x


def fused_attention(q, k, v, dropout=0.0):
    if k.shape[1] != q.shape[1]:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=dropout, enable_gqa=True)
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=dropout)


# --- the decoder from scratch ---------------------------------------------------------------------------------------


class Linear(nn.Linear):
    """A product by einsum. A Linear to those who look for one, as adapters do."""

    def __init__(self, inputs, outputs):
        super().__init__(inputs, outputs, bias=False)

    def forward(self, x):
        return torch.einsum("bsi,oi->bso", x, self.weight)


class Embedding(nn.Module):
    def __init__(self, rows, width):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(rows, width))

    def forward(self, tokens):
        return self.weight[tokens]


class RMSNorm(nn.Module):
    def __init__(self, width, options):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.is_written_out = options.is_written_out

    def forward(self, x):
        if not self.is_written_out:
            return F.rms_norm(x, (x.shape[-1],), self.weight, 1e-5)
        dtype = x.dtype
        x = x.to(torch.float32)
        root = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5)
        x = x * root
        return (self.weight * x).to(dtype)


class RotaryEmbedding(nn.Module):
    """Pairs of neighbours of each head turned; table: cosine and sine, (2, positions, width / 2)."""

    def __init__(self, positions, width):
        super().__init__()
        count = functools.partial(torch.arange, dtype=torch.float32)
        angles = torch.outer(count(positions), 10000.0 ** -(count(0, width, 2) / width))
        table = torch.stack((angles.cos(), angles.sin())).to(torch.get_default_dtype())
        self.register_buffer("table", table, persistent=False)

    def forward(self, x):
        batch, heads, length, width = x.shape
        x1, x2 = x.view(batch, heads, length, width // 2, 2).permute(4, 0, 1, 2, 3).unbind(0)
        cosine, sine = self.table[:, :length, :].unbind(0)
        first = cosine * x1 - sine * x2
        second = sine * x1 + cosine * x2
        return torch.cat((first, second), dim=-1)


def written_out_softmax(x):
    x = x - torch.max(x, dim=-1, keepdim=True)[0]
    exponentials = torch.exp(x)
    return exponentials / torch.sum(exponentials, dim=-1, keepdim=True)


def eager_attention(q, k, v, mask, softmax):
    scores = torch.einsum("bhqd,bhkd->bhqk", q, k) / math.sqrt(q.shape[-1])
    scores = torch.where(mask, scores, float("-inf"))
    weights = softmax(scores)
    return torch.einsum("bhqk,bhkd->bhqd", weights, v)


def repeated_heads(x, heads):
    batch, own, length, width = x.shape
    if own == heads:
        return x
    return x.unsqueeze(2).expand(batch, own, heads // own, length, width).reshape(batch, heads, length, width)


class CausalMultiHeadSelfAttention(nn.Module):
    def __init__(self, sizes, rotary, options):
        super().__init__()
        self.heads, self.kv_heads, self.width = sizes.heads, sizes.kv_heads, sizes.head_dim
        self.q_proj = Linear(sizes.hidden, self.heads * self.width)
        self.k_proj = Linear(sizes.hidden, self.kv_heads * self.width)
        self.v_proj = Linear(sizes.hidden, self.kv_heads * self.width)
        self.output_proj = Linear(self.heads * self.width, sizes.hidden)
        self.positional_encoder = rotary
        self.options = options
        self.softmax = written_out_softmax if options.is_written_out else lambda scores: F.softmax(scores, dim=-1)

    def forward(self, x):
        batch, length, _ = x.shape
        q = self.q_proj(x)
        k = self.k_proj(x)
        v = self.v_proj(x)
        q, k, v = (t.view(batch, length, t.shape[-1] // self.width, self.width).transpose(1, 2) for t in (q, k, v))
        q = self.positional_encoder(q)
        k = self.positional_encoder(k)
        sequence = torch.arange(length, device=x.device)
        mask = (sequence.view(length, 1) >= sequence.view(1, length)).unsqueeze(0)
        if self.options.attention == "eager":
            k, v = repeated_heads(k, self.heads), repeated_heads(v, self.heads)
            output = self.options.core(eager_attention, q, k, v, mask, self.softmax)
        else:
            output = fused_attention(q, k, v)
        output = output.transpose(1, 2).contiguous().view(batch, length, self.heads * self.width)
        return self.output_proj(output)


class SwiGLU(nn.Module):
    def __init__(self, sizes, options):
        super().__init__()
        self.w1, self.w3 = Linear(sizes.hidden, sizes.ffn), Linear(sizes.hidden, sizes.ffn)
        self.w2 = Linear(sizes.ffn, sizes.hidden)
        self.silu = self.written_out_silu if options.is_written_out else F.silu

    def forward(self, x):
        return self.w2(self.silu(self.w1(x)) * self.w3(x))

    @staticmethod
    def written_out_silu(x):
        return x * torch.sigmoid(x)


class TransformerBlock(nn.Module):
    def __init__(self, sizes, rotary, options):
        super().__init__()
        self.ln1, self.attn = RMSNorm(sizes.hidden, options), CausalMultiHeadSelfAttention(sizes, rotary, options)
        self.ln2, self.ffn = RMSNorm(sizes.hidden, options), SwiGLU(sizes, options)

    def forward(self, x):
        attended = self.attn(self.ln1(x))
        middle = x + attended
        fed = self.ffn(self.ln2(middle))
        return middle + fed


class Decoder(Network):
    def __init__(self, sizes, sequence, options):
        super().__init__(options)
        if not options.is_written_out and not hasattr(F, "rms_norm"):
            raise skipped(f"PyTorch {torch.__version__} has no fused RMSNorm", "choose operators=written-out, or torch 2.4 or newer")
        rotary = RotaryEmbedding(max(sizes.positions, sequence), sizes.head_dim)
        self.token_embeddings = Embedding(sizes.vocab, sizes.hidden)
        self.layers = nn.ModuleList(TransformerBlock(sizes, rotary, options) for _ in range(sizes.layers))
        self.ln_final = RMSNorm(sizes.hidden, options)
        self.lm_head = Linear(sizes.hidden, sizes.vocab)

    def forward(self, tokens):
        x = self.token_embeddings(tokens)
        for step in self.steps(self.layers):
            x = step(x)
        x = self.ln_final(x)
        return self.lm_head(x)


def written_out_log_softmax(x):
    top = torch.max(x, dim=-1, keepdim=True)[0]
    x = x - top
    return x - torch.log(torch.sum(torch.exp(x), dim=-1, keepdim=True))


def written_out_cross_entropy(logits, targets):
    negative = -written_out_log_softmax(logits)
    return torch.mean(torch.gather(negative, -1, targets.unsqueeze(-1)))


# --- GPT-2 ------------------------------------------------------------------------------------------------------------


def new_gelu(x):
    return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))


class Gpt2Attention(nn.Module):
    def __init__(self, sizes, options):
        super().__init__()
        inner = sizes.heads * sizes.head_dim
        self.qkv, self.proj = nn.Linear(sizes.hidden, 3 * inner), nn.Linear(inner, sizes.hidden)
        self.heads, self.width, self.options = sizes.heads, sizes.head_dim, options
        mask = torch.tril(torch.ones(1, 1, sizes.positions, sizes.positions, dtype=torch.bool))
        self.register_buffer("mask", mask, persistent=False)

    def weights(self, q, k):
        length = q.shape[2]
        scores = (q @ k.transpose(-2, -1)) * (self.width ** -0.5)
        scores = scores.masked_fill(self.mask[:, :, :length, :length] == 0, float("-inf"))
        scores = F.softmax(scores, dim=-1)
        scores = dropped(scores, self)
        return scores

    def core(self, q, k, v):
        return self.weights(q, k) @ v

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = self.qkv(x).chunk(3, dim=2)
        q, k, v = (t.view(batch, length, self.heads, self.width).transpose(1, 2) for t in (q, k, v))
        if self.options.attention != "eager":
            y = fused_attention(q, k, v, self.options.dropout if self.training else 0.0)
        elif self.options.checkpoints_core:
            y = self.options.core(self.core, q, k, v)
        else:
            scores = self.weights(q, k)  # nanoGPT names them until the method ends
            y = scores @ v
        y = y.transpose(1, 2).contiguous().view(batch, length, self.heads * self.width)
        return dropped(self.proj(y), self)


def dropped(x, module):
    """Without a probability nothing is called, as the prediction has it."""
    return F.dropout(x, module.options.dropout, module.training) if module.options.dropout > 0 else x


class Gpt2Block(nn.Module):
    def __init__(self, sizes, options):
        super().__init__()
        self.ln1, self.attn = nn.LayerNorm(sizes.hidden), Gpt2Attention(sizes, options)
        self.ln2 = nn.LayerNorm(sizes.hidden)
        self.fc, self.pj = nn.Linear(sizes.hidden, sizes.ffn), nn.Linear(sizes.ffn, sizes.hidden)
        self.options = options
        self.activation = F.relu if sizes.activation == "relu" else F.gelu
        if sizes.activation == "gelu_new" and options.is_written_out:
            self.activation = new_gelu

    def feed(self, x):
        x = self.fc(x)
        x = self.activation(x)
        x = self.pj(x)
        return dropped(x, self)

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        x = x + self.feed(self.ln2(x))
        return x


class Gpt2(Network):
    def __init__(self, sizes, options):
        super().__init__(options)
        self.wte, self.wpe = nn.Embedding(sizes.vocab, sizes.hidden), nn.Embedding(sizes.positions, sizes.hidden)
        self.blocks = nn.ModuleList(Gpt2Block(sizes, options) for _ in range(sizes.layers))
        self.lnf = nn.LayerNorm(sizes.hidden)
        self.head = None if sizes.is_tied else nn.Linear(sizes.hidden, sizes.vocab, bias=False)
        self.register_buffer("pos", torch.arange(sizes.positions)[None], persistent=False)
        for table in (self.wte, self.wpe):
            nn.init.normal_(table.weight, std=0.02)  # Radford et al. 2019; with 1 a tied head's gradients are subnormal: slow

    def forward(self, tokens, loss_of=None):
        """Logits, or logits and the loss that loss_of makes of them."""
        x = self.wte(tokens) + self.wpe(self.pos[:, :tokens.shape[1]])
        x = dropped(x, self)
        for step in self.steps(self.blocks):
            x = step(x)
        x = self.lnf(x)
        logits = self.head(x) if self.head is not None else F.linear(x, self.wte.weight)
        return logits if loss_of is None else (logits, loss_of(logits))


# --- a chain of linear layers -----------------------------------------------------------------------------------------


class Chain(Network):
    """Linear and ReLU in turn; each layer is a block."""

    def __init__(self, sizes, options):
        super().__init__(options)
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes.layer_sizes, sizes.layer_sizes[1:]))

    def layer(self, index, x):
        x = self.layers[index](x)
        return F.relu(x) if index + 1 < len(self.layers) else x

    def forward(self, x):
        for step in self.steps([functools.partial(self.layer, index) for index in range(len(self.layers))]):
            x = step(x)
        return x


# --- DiT --------------------------------------------------------------------------------------------------------------


class TimestepEmbedder(nn.Module):
    def __init__(self, hidden, channels=256):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(channels, hidden), nn.SiLU(), nn.Linear(hidden, hidden))
        self.channels = channels

    def forward(self, times):
        half = self.channels // 2
        rates = torch.exp(torch.arange(half, dtype=torch.float32, device=times.device) * (-math.log(10000) / half))
        angles = times[:, None].float() * rates[None]
        waves = torch.cat((angles.cos(), angles.sin()), dim=-1)
        return self.mlp(waves.to(self.mlp[0].weight.dtype))


class LabelEmbedder(nn.Module):
    """One row more than classes: what a dropped label is."""

    def __init__(self, classes, hidden):
        super().__init__()
        self.embedding_table = nn.Embedding(classes + 1, hidden)
        self.classes = classes

    def forward(self, labels):
        if self.training:
            labels = torch.where(torch.rand(labels.shape[0], device=labels.device) < 0.1, self.classes, labels)
        return self.embedding_table(labels)


def modulated(x, shift, scale):
    return x * (1 + scale.unsqueeze(1)) + shift.unsqueeze(1)


class DiffusionAttention(nn.Module):
    def __init__(self, hidden, heads, options):
        super().__init__()
        self.qkv, self.proj = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
        self.heads, self.options = heads, options

    def forward(self, x):
        batch, length, hidden = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, hidden // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        x = self.options.core(self.scored, q, k, v) if self.options.attention == "eager" else F.scaled_dot_product_attention(q, k, v)
        return self.proj(x.transpose(1, 2).reshape(batch, length, hidden))

    @staticmethod
    def scored(q, k, v):
        q = q * q.shape[-1] ** -0.5
        return (q @ k.transpose(-2, -1)).softmax(dim=-1) @ v


class FeedForward(nn.Module):
    def __init__(self, hidden, inner):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(hidden, inner), nn.Linear(inner, hidden)

    def forward(self, x):
        return self.fc2(F.gelu(self.fc1(x), approximate="tanh"))


class DiffusionBlock(nn.Module):
    def __init__(self, hidden, heads, inner, options):
        super().__init__()
        self.norm1, self.norm2 = (nn.LayerNorm(hidden, elementwise_affine=False, eps=1e-6) for _ in range(2))
        self.attn, self.mlp = DiffusionAttention(hidden, heads, options), FeedForward(hidden, inner)
        self.adaLN_modulation = nn.Sequential(nn.SiLU(), nn.Linear(hidden, 6 * hidden))

    def forward(self, condition, x):
        shift, scale, gate, shift_mlp, scale_mlp, gate_mlp = self.adaLN_modulation(condition).chunk(6, dim=1)
        x = x + gate.unsqueeze(1) * self.attn(modulated(self.norm1(x), shift, scale))
        return x + gate_mlp.unsqueeze(1) * self.mlp(modulated(self.norm2(x), shift_mlp, scale_mlp))


class FinalLayer(nn.Module):
    def __init__(self, hidden, outputs):
        super().__init__()
        self.norm_final = nn.LayerNorm(hidden, elementwise_affine=False, eps=1e-6)
        self.linear = nn.Linear(hidden, outputs)
        self.adaLN_modulation = nn.Sequential(nn.SiLU(), nn.Linear(hidden, 2 * hidden))

    def forward(self, x, condition):
        shift, scale = self.adaLN_modulation(condition).chunk(2, dim=1)
        return self.linear(modulated(self.norm_final(x), shift, scale))


class PatchEmbedder(nn.Module):
    def __init__(self, channels, hidden, patch):
        super().__init__()
        self.proj = nn.Conv2d(channels, hidden, patch, stride=patch)

    def forward(self, x):
        return self.proj(x).flatten(2).transpose(1, 2)


class DiffusionTransformer(Network):
    """DiT with adaLN-Zero (Peebles & Xie 2023); config: the arguments of its authors' constructor."""

    def __init__(self, config, options):
        super().__init__(options)
        hidden, self.patch = config["hidden_size"], config["patch_size"]
        self.side = config["input_size"] // self.patch
        self.outputs = config["in_channels"] * (2 if config.get("learn_sigma", True) else 1)
        self.x_embedder = PatchEmbedder(config["in_channels"], hidden, self.patch)
        self.t_embedder, self.y_embedder = TimestepEmbedder(hidden), LabelEmbedder(config["num_classes"], hidden)
        self.pos_embed = nn.Parameter(torch.zeros(1, self.side ** 2, hidden), requires_grad=False)
        inner = int(hidden * config.get("mlp_ratio", 4.0))
        self.blocks = nn.ModuleList(DiffusionBlock(hidden, config["num_heads"], inner, options) for _ in range(config["depth"]))
        self.final_layer = FinalLayer(hidden, self.patch ** 2 * self.outputs)

    def forward(self, latents, times, labels):
        x = self.x_embedder(latents) + self.pos_embed
        condition = self.t_embedder(times) + self.y_embedder(labels)
        for step in self.steps([functools.partial(block, condition) for block in self.blocks]):
            x = step(x)
        x = self.final_layer(x, condition)
        x = x.view(-1, self.side, self.side, self.patch, self.patch, self.outputs).permute(0, 5, 1, 3, 2, 4)
        return x.reshape(-1, self.outputs, self.side * self.patch, self.side * self.patch)
