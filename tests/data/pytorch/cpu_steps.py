#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records every allocation and free of real training and inference steps on a CPU, in order.

PyTorch's allocator for processors reports to the profiler (c10/core/CPUAllocator.cpp): bytes as they were asked
for, +n an allocation, -n a free; [n, "scratchpad"] is one of oneDNN's, whose size is that of its implementation for
this processor. A block of MARK bytes and an index marks where a phase ends. The step that is
written down is one of a loop that has run before: optimizer state exists, gradients do not. Blocks of the
profiler's and the optimizer's own record_function, which PyTorch 1.13 makes of tensors, are left out.

One thread where a case names no other number, and the collector of cycles is off, so that a run is repeatable.
"parameters" are those of memscape's training-memory; "config" is a configuration of transformers. "compares": "peaks"
where the order of a library's model differs for a reason that the case gives.

Usage: cpu_steps.py [--paths] [NAME…] > cpu_steps_2.15.json
--paths adds where each event happened; a name runs the cases that begin with it.
"""
import contextlib
import gc
import json
import os
import sys

sys.dont_write_bytecode = True
os.environ["KINETO_LOG_LEVEL"] = "5"

import torch
import torch.nn.functional as F
from torch import nn
from torch.profiler import ProfilerActivity, profile
from torch.utils.checkpoint import checkpoint

IS_OLD = torch.__version__.startswith("1.")
MARK = 7777000
PICTURE = 224
ARTEFACTS = ("aten::empty", "aten::zeros", "aten::zeros>aten::empty")


class Recorder:
    """Events of the profiler between marks."""

    def __init__(self):
        self.names = []
        self.convolved = set()

    def sizes_of_convolution(self, module, inputs, output):
        tensors = [inputs[0], output, module.weight] + ([] if module.bias is None else [module.bias])
        self.convolved.update(t.numel() * t.element_size() for t in tensors)

    def is_scratchpad(self, size, path):
        """oneDNN's own, in a convolution: neither input, weight nor result."""
        return bool(self.convolved) and abs(size) not in self.convolved and (
            path.endswith("mkldnn_convolution") or path.endswith("convolution_backward"))

    def mark(self, name):
        torch.empty(MARK + len(self.names), dtype=torch.uint8)
        self.names.append(name)

    def just_appears(self, function):
        """The same function; of what it allocates, only what it leaves is written down."""
        def called(*arguments, **keywords):
            self.mark("collapse")
            result = function(*arguments, **keywords)
            self.mark("collapsed")
            return result
        return called

    def run(self, body):
        gc.collect()
        gc.disable()
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
            kept = body()
        gc.enable()
        del kept
        events = []

        def walk(event, path):
            if type(event.extra_fields).__name__ == "_ExtraFields_Allocation":
                fields = event.extra_fields
                events.append((event.start_time_ns, fields.alloc_size, fields.ptr, ">".join(path)))
            for child in event.children:
                walk(child, (*path, event.name))

        for event in profiler.profiler.kineto_results.experimental_event_tree():
            walk(event, ())
        events.sort(key=lambda event: event[0])
        return self.phases(events)

    def phases(self, events):
        phases, current, handles = {}, [], set()
        for _, size, address, path in events:
            index = abs(size) - MARK
            if 0 <= index < len(self.names):
                if size > 0 and self.names[index] == "collapse":
                    before = current
                    current = []
                elif size > 0 and self.names[index] == "collapsed":
                    current = before + survivors(current)
                elif size > 0:
                    phases[self.names[index]] = [(size, path) for size, path, _ in current]
                    current = []
                continue
            if self.is_handle(size, address, path, handles):
                continue
            if self.is_scratchpad(size, path):
                path = "scratchpad"
            current.append((size, path, address))
        return phases

    @staticmethod
    def is_handle(size, address, path, handles):
        """record_function of 1.13: a number as long as it runs, and 288 bytes in it that die at once."""
        last = path.split(">", 1)[-1] if path.startswith("Optimizer.") else path
        if IS_OLD and size in (4, 288) and last in ARTEFACTS:
            handles.add(address)
            return True
        if size < 0 and address in handles:
            handles.remove(address)
            return True
        return False


def survivors(events):
    """Those events of which no other one is the end."""
    left = []
    for size, path, address in events:
        born = [i for i, event in enumerate(left) if event[2] == address and event[0] == -size]
        if size < 0 and born:
            left.pop(born[-1])
        else:
            left.append((size, path, address))
    return left


# --- networks ---------------------------------------------------------------------------------------------------


class Chain(nn.Module):
    """Linear layers with ReLU between them."""

    def __init__(self, sizes):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = F.relu(layer(x))
        return self.layers[-1](x)


class SelfAttention(nn.Module):
    def __init__(self, width, heads, sequence, kernel, dropout):
        super().__init__()
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.heads, self.kernel, self.dropout = heads, kernel, dropout
        self.register_buffer("mask", torch.tril(torch.ones(1, 1, sequence, sequence, dtype=torch.bool)))

    def forward(self, x):
        b, s, d = x.shape
        q, k, v = self.c_attn(x).split(d, dim=2)
        q, k, v = (t.view(b, s, self.heads, d // self.heads).transpose(1, 2) for t in (q, k, v))
        if self.kernel == "eager":
            scores = (q @ k.transpose(-2, -1)) * (k.size(-1) ** -0.5)
            scores = scores.masked_fill(self.mask[:, :, :s, :s] == 0, float("-inf"))
            scores = F.softmax(scores, dim=-1)
            scores = F.dropout(scores, self.dropout, self.training)
            y = scores @ v
        else:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        y = y.transpose(1, 2).contiguous().view(b, s, d)
        return F.dropout(self.c_proj(y), self.dropout, self.training)


class Gpt2Block(nn.Module):
    def __init__(self, width, heads, sequence, kernel, dropout):
        super().__init__()
        self.ln_1 = nn.LayerNorm(width)
        self.attn = SelfAttention(width, heads, sequence, kernel, dropout)
        self.ln_2 = nn.LayerNorm(width)
        self.c_fc, self.c_proj = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.dropout = dropout

    def feed(self, x):
        x = self.c_fc(x)
        x = F.gelu(x)
        x = self.c_proj(x)
        return F.dropout(x, self.dropout, self.training)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        x = x + self.feed(self.ln_2(x))
        return x


class Gpt2(nn.Module):
    """As nanoGPT writes it."""

    def __init__(self, hidden, layers, heads, vocab, sequence, kernel, dropout=0.0):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab, hidden), nn.Embedding(sequence, hidden)
        self.h = nn.ModuleList(Gpt2Block(hidden, heads, sequence, kernel, dropout) for _ in range(layers))
        self.ln_f = nn.LayerNorm(hidden)
        self.lm_head = nn.Linear(hidden, vocab, bias=False)
        self.wte.weight = self.lm_head.weight
        self.register_buffer("positions", torch.arange(sequence)[None])
        self.dropout = dropout
        self.run = lambda block, x: block(x)

    def forward(self, tokens, targets=None):
        x = self.wte(tokens) + self.wpe(self.positions[:, :tokens.shape[1]])
        x = F.dropout(x, self.dropout, self.training)
        for block in self.h:
            x = self.run(block, x)
        x = self.ln_f(x)
        logits = self.lm_head(x)
        if targets is None:
            return logits
        loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))
        return logits, loss


# --- steps ------------------------------------------------------------------------------------------------------


OPTIMIZERS = {
    "sgd": lambda parameters, style: torch.optim.SGD(parameters, lr=0.01, **style),
    "momentum": lambda parameters, style: torch.optim.SGD(parameters, lr=0.01, momentum=0.9, **style),
    "adam": lambda parameters, style: torch.optim.Adam(parameters, lr=1e-3, **style),
    "adamw": lambda parameters, style: torch.optim.AdamW(parameters, lr=1e-3, **style),
}
STYLES = {"auto": {}, "loop": {"foreach": False}, "foreach": {"foreach": True}, "fused": {"fused": True}}


def made_mlp(case, parameters, _):
    sizes = [int(size) for size in case["model"].split(":")[1].split(",")]
    model = Chain(sizes)
    x, target = torch.randn(parameters["batch"], sizes[0]), torch.randn(parameters["batch"], sizes[-1])

    return model, lambda: model(x), lambda y: F.mse_loss(y, target)


def made_gpt2(case, parameters, _):
    config = case["config"]
    model = Gpt2(config["n_embd"], config["n_layer"], config["n_head"], config["vocab_size"], config["n_positions"],
                 parameters.get("attention", "eager"), parameters.get("dropout", 0.0))
    if parameters.get("checkpointing") == "block":
        keeps = parameters.get("dropout", 0) > 0  # the generator's state, where something random is run again
        model.run = lambda block, x: checkpoint(block, x, use_reentrant=False, preserve_rng_state=keeps)
    shape = (parameters["batch"], parameters["sequence"])
    tokens, targets = (torch.randint(0, config["vocab_size"], shape) for _ in range(2))
    if parameters.get("phase", "training") != "training":
        return model, lambda: model(tokens), None
    return model, lambda: model(tokens, targets), None


def made_pictures(case, parameters, recorder):
    import torchvision
    model = getattr(torchvision.models, case["torchvision"])()
    for part in model.modules():
        if isinstance(part, nn.Dropout):
            part.p = 0.0
        if isinstance(part, nn.Conv2d):
            part.register_forward_hook(recorder.sizes_of_convolution)
    x = torch.randn(parameters["batch"], 3, PICTURE, PICTURE)
    target = torch.randint(0, 1000, (parameters["batch"],))

    return model, lambda: model(x), lambda logits: F.cross_entropy(logits, target)


WRITTEN_OUT = {}


def choose_operators(parts, is_fused, attention):
    """The decoder of training_steps.py with one call for each norm, softmax, activation and attention, or as it is."""
    if not WRITTEN_OUT:
        WRITTEN_OUT.update(softmax=parts.softmax, attend=parts.attend, norm=parts.RMSNorm.forward, silu=parts.SwiGLU.silu)
    parts.softmax = (lambda x: F.softmax(x, dim=-1)) if is_fused else WRITTEN_OUT["softmax"]
    parts.RMSNorm.forward = fused_norm if is_fused else WRITTEN_OUT["norm"]
    parts.SwiGLU.silu = staticmethod(F.silu if is_fused else WRITTEN_OUT["silu"])
    parts.attend = WRITTEN_OUT["attend"] if attention == "eager" else fused_attention


def fused_norm(self, x):
    return F.rms_norm(x, (x.shape[-1],), self.weight, 1e-5)


def fused_attention(q, k, v, mask):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def made_decoder(case, parameters, _):
    import training_steps
    from training_steps import Decoder, cross_entropy
    is_fused = parameters["operators"] == "fused"
    choose_operators(training_steps, is_fused, parameters.get("attention", "eager"))
    sizes = {key: int(size) for key, size in (pair.split("=") for pair in case["model"].split(":")[1].split(","))}
    model = Decoder(**sizes, sequence=parameters["sequence"])
    model.every = 1 if parameters.get("checkpointing") == "block" else 0
    for p in model.parameters():
        nn.init.normal_(p, std=0.02)
    tokens, targets = (torch.randint(0, sizes["vocab"], (parameters["batch"], parameters["sequence"])) for _ in range(2))
    if is_fused:
        return model, lambda: model(tokens), lambda logits: F.cross_entropy(logits.view(-1, logits.size(-1)),
                                                                            targets.view(-1))
    return model, lambda: model(tokens), lambda logits: cross_entropy(logits, targets)


def hide_preparations(recorder):
    from transformers.models.bert import modeling_bert
    from transformers.models.llama import modeling_llama
    from transformers.models.t5 import modeling_t5
    for module in (modeling_bert, modeling_llama, modeling_t5):
        for name in ("create_causal_mask", "create_bidirectional_mask"):
            if hasattr(module, name):
                original = getattr(module, name)
                original = getattr(original, "original", original)
                hidden = recorder.just_appears(original)
                hidden.original = original
                setattr(module, name, hidden)
    rotary = modeling_llama.LlamaRotaryEmbedding
    original = getattr(rotary.forward, "original", rotary.forward)
    hidden = recorder.just_appears(original)
    hidden.original = original
    rotary.forward = lambda self, *arguments, **keywords: hidden(self, *arguments, **keywords)
    rotary.forward.original = original


def made_transformer(case, parameters, recorder):
    """How masks, positions and tables of rotary positions are made is not written down: they just appear."""
    import transformers
    hide_preparations(recorder)
    config = {"attn_implementation": "eager" if parameters.get("attention", "eager") == "eager" else "sdpa",
              "use_cache": False, **case["config"]}
    config.pop("model_type")
    config.pop("id2label", None)
    name = config.pop("architectures")[0]
    make = getattr(transformers, name)
    model = make(make.config_class(**config))
    shape = (parameters["batch"], parameters.get("sequence", 1))
    if "image_size" in config:
        pictures = torch.randn(parameters["batch"], 3, config["image_size"], config["image_size"])
        target = torch.randint(0, model.config.num_labels, (parameters["batch"],))
        return model, lambda: model(pixel_values=pictures).logits, lambda logits: F.cross_entropy(logits, target)
    tokens, targets = (torch.randint(0, config["vocab_size"], shape) for _ in range(2))
    if parameters.get("checkpointing") == "block":
        model.gradient_checkpointing_enable({"use_reentrant": False, "preserve_rng_state": False})
    if name.startswith("T5"):
        return model, lambda: model(input_ids=tokens, decoder_input_ids=targets).logits, lambda logits: F.cross_entropy(
            logits.view(-1, logits.size(-1)), targets.view(-1))
    if parameters.get("phase", "training") != "training":
        return model, lambda: model(input_ids=tokens).logits, None
    labels = {"labels": targets, "shift_labels": targets} if name.startswith("Llama") else {"labels": targets}

    def run():
        outputs = model(input_ids=tokens, **labels)
        return outputs.logits, outputs.loss

    return model, run, None


MAKERS = {"decoder": made_decoder, "transformer": made_transformer, "mlp": made_mlp, "gpt2": made_gpt2, "pictures": made_pictures}


def autocast_of(precision):
    if precision.endswith("autocast"):
        return lambda: torch.autocast("cpu", torch.bfloat16 if precision.startswith("bf16") else torch.float16)
    return contextlib.nullcontext


def steps_of(case, recorder):
    parameters = case["parameters"]
    torch.set_num_threads(case.get("threads", 1))
    precision = parameters.get("precision", "fp32")
    torch.manual_seed(1)
    torch.set_default_dtype(torch.bfloat16 if precision == "bf16" else torch.float32)
    model, output_of, loss_of = MAKERS[case["maker"]](case, parameters, recorder)
    torch.set_default_dtype(torch.float32)
    region = autocast_of(precision)
    phase = parameters.get("phase", "training")
    keeps = parameters.get("keeps_logits", "true") == "true"

    def run():
        with torch.set_grad_enabled(phase == "forward"), region():
            output = output_of()
        recorder.mark("forward 0")
        return output

    if phase != "training":
        for _ in range(3):
            recorder.mark("before")
            run()
        return model
    optimizer = OPTIMIZERS[parameters["optimizer"]](
        model.parameters(), STYLES[parameters.get("optimizer_implementation", "auto")])
    accumulation = parameters.get("accumulation", 1)

    def step():
        """A model without a loss_of returns its loss beside the logits."""
        output = loss = None
        for i in range(accumulation):
            with region():
                if loss_of is None and keeps:
                    output, loss = output_of()
                elif loss_of is None:
                    loss = output_of()[1]
                elif keeps:
                    output = output_of()
                    loss = loss_of(output)
                else:
                    loss = loss_of(output_of())
            recorder.mark(f"forward {i}")
            loss.backward()
            recorder.mark(f"backward {i}")
        if parameters.get("clipping"):
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            recorder.mark("clipping")
        optimizer.step()
        recorder.mark("optimizer")
        optimizer.zero_grad(**({"set_to_none": True} if IS_OLD else {}))
        recorder.mark("zero_grad")

    for _ in range(3):
        recorder.mark("before")
        step()
    return model, optimizer


def recorded(case, with_paths):
    recorder = Recorder()
    phases = recorder.run(lambda: steps_of(case, recorder))
    phases.pop("before")
    events = {name: [event if with_paths or event[1] == "scratchpad" else event[0] for event in phase]
              for name, phase in phases.items()}
    return {**case, "events": events}


# --- cases ------------------------------------------------------------------------------------------------------


GPT2 = {"maker": "gpt2", "config": {"model_type": "gpt2", "n_embd": 48, "n_layer": 2, "n_head": 4, "vocab_size": 211,
                                    "n_positions": 24}}
LONG_GPT2 = {"maker": "gpt2", "config": {"model_type": "gpt2", "n_embd": 96, "n_layer": 1, "n_head": 3, "vocab_size": 500,
                                         "n_positions": 256}}
GPT2_RUN = {"batch": 2, "sequence": 20, "precision": "fp32", "optimizer": "adamw"}


def gpt2_case(name, **changes):
    return {"name": "gpt2 " + name, **GPT2, "parameters": {**GPT2_RUN, **changes}}


def mlp_case(name, **changes):
    return {"name": "mlp " + name, "maker": "mlp", "model": "mlp:20,37,41,10",
            "parameters": {"batch": 9, "precision": "fp32", "optimizer": "sgd", **changes}}


def picture_case(name, known, batch, **changes):
    return {"name": name, "maker": "pictures", "torchvision": name, "model": known, "threads": 2,
            "parameters": {"batch": batch, "precision": "fp32", "optimizer": "sgd", **changes}}


def decoder_case(name, **changes):
    return {"name": "decoder " + name, "maker": "decoder",
            "model": "from-scratch:hidden=48,layers=2,heads=4,ffn=128,vocab=200",
            "parameters": {"batch": 2, "sequence": 16, "precision": "fp32", "optimizer": "adamw",
                           "operators": "written-out", "optimizer_implementation": "loop", **changes}}


def transformer_case(name, config, **changes):
    return {"name": name, "maker": "transformer", "config": config,
            "parameters": {"batch": 2, "sequence": 20, "precision": "fp32", "optimizer": "adamw", **changes}}


LLAMA = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 64, "num_hidden_layers": 2,
         "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 120, "vocab_size": 203,
         "max_position_embeddings": 32, "tie_word_embeddings": False}
BERT = {"model_type": "bert", "architectures": ["BertForMaskedLM"], "hidden_size": 48, "num_hidden_layers": 2,
        "num_attention_heads": 4, "intermediate_size": 120, "vocab_size": 203, "max_position_embeddings": 32,
        "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
VIT = {"model_type": "vit", "num_labels": 10, "id2label": {str(i): str(i) for i in range(10)}, "architectures": ["ViTForImageClassification"], "hidden_size": 48, "num_hidden_layers": 2,
       "num_attention_heads": 4, "intermediate_size": 120, "image_size": 32, "patch_size": 8,
       "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
T5 = {"model_type": "t5", "architectures": ["T5ForConditionalGeneration"], "d_model": 48, "d_kv": 12, "d_ff": 96,
      "num_layers": 2, "num_heads": 4, "vocab_size": 203, "dropout_rate": 0.0}


def cases():
    yield mlp_case("sgd")
    yield mlp_case("momentum", optimizer="momentum")
    yield mlp_case("adam", optimizer="adam")
    yield mlp_case("adam foreach", optimizer="adam", optimizer_implementation="foreach")
    yield mlp_case("accumulation, clipping", optimizer="adamw", accumulation=3, clipping=True)
    yield gpt2_case("eager")
    yield gpt2_case("forward", phase="forward")
    yield gpt2_case("inference", phase="inference")
    yield gpt2_case("dropout", dropout=0.1)
    yield gpt2_case("checkpointed", checkpointing="block")
    yield gpt2_case("checkpointed, dropout", checkpointing="block", dropout=0.1)
    yield gpt2_case("bf16 autocast", precision="bf16-autocast")
    yield gpt2_case("accumulation, clipping, foreach", accumulation=2, clipping=True, optimizer_implementation="foreach")
    if not IS_OLD:
        yield decoder_case("fp32")
        yield decoder_case("forward", phase="forward")
        yield decoder_case("bf16 autocast", precision="bf16-autocast")
        yield decoder_case("fused", operators="fused")
        yield decoder_case("fused, flash, bf16 autocast", operators="fused", attention="flash", precision="bf16-autocast")
        yield transformer_case("llama", LLAMA)
        yield transformer_case("llama flash", LLAMA, attention="flash")
        yield transformer_case("llama inference", LLAMA, phase="inference")
        yield transformer_case("llama bf16 autocast", LLAMA, precision="bf16-autocast")
        yield transformer_case("bert", BERT)
        yield transformer_case("bert flash", BERT, attention="flash")
        yield transformer_case("vit", VIT) | {"compares": "peaks", "reason": "the patches die before the positions are added"}
        yield transformer_case("t5", T5) | {
            "compares": "peaks", "reason": "the first layer makes the bias of relative positions, here it just appears"}
        yield gpt2_case("flash", attention="flash")
        yield LONG_GPT2 | {"name": "gpt2 long, flash, 2 threads", "threads": 2, "parameters": {
            **GPT2_RUN, "sequence": 200, "attention": "flash", "optimizer_implementation": "fused"}}
        yield gpt2_case("bf16", precision="bf16", logits_fp32="false")
        yield gpt2_case("flash bf16 autocast", attention="flash", precision="bf16-autocast")
        yield picture_case("resnet18", "resnet18", 2)
        yield picture_case("vgg11", "vgg11", 1, optimizer="momentum")
        yield picture_case("mobilenet_v2", "mobilenet-v2", 2)


def main():
    arguments = sys.argv[1:]
    with_paths = "--paths" in arguments
    names = [argument for argument in arguments if argument != "--paths"]
    results = [recorded(case, with_paths) for case in cases()
               if not names or any(case["name"].startswith(name) for name in names)]
    head = json.dumps({"about": __doc__.strip(), "torch": torch.__version__}, separators=(",", ":"))
    cases_of = ",\n".join(json.dumps(case, separators=(",", ":")) for case in results)
    print(f'{head[:-1]},"cases":[\n{cases_of}\n]}}')


if __name__ == "__main__":
    main()
