# SPDX-License-Identifier: Apache-2.0
"""From the model that the parameters name to a module with random weights, what goes in and what comes out. Nothing is
downloaded.

    from-scratch:…, mlp:…, gpt2 …     networks.py: torch is enough
    a name of Memscape's catalogue    transformers, torchvision for convolutional networks, diffusers for UNets, by the
                                      catalogue's configuration; a DiT: networks.py
    …/config.json, params:N           transformers
    torchvision:NAME, timm:NAME       those libraries

`described` is what Memscape knows of the model: name, architecture, family and sizes, params:N already resolved."""
import contextlib
import importlib.util
import inspect
import json
import os
import pathlib

import torch
import torch.nn.functional as F

from . import networks
from .problem import Problem, first_line, skipped

TORCHVISION_NAMES = {"alexnet": "alexnet", "vgg": None, "resnet": None, "mobilenet_v2": "mobilenet_v2",
                     "efficientnet": None, "densenet": None}  # None: the catalogue's name
PICTURE_SIDE = 224
QWEN_SIDE = 448  # as core/network/config_other.cpp has it, where a configuration names none
CLASSES_BY_FAMILY = {"decoder": "AutoModelForCausalLM", "encoder": "AutoModel", "encoder-decoder": "AutoModelForSeq2SeqLM",
                     "vision transformer": "AutoModelForImageClassification",
                     "convolutional network": "AutoModelForImageClassification"}


class Workload:
    """A module and how a training loop talks to it.

    inputs(batch, sequence): what the module is called with, and the targets. forward(inputs): what the loss is made of."""

    def __init__(self, module, library, kind, vocab=0, side=PICTURE_SIDE, classes=0, width=0, has_float_logits=False,
                 loss=None, returns_loss=False, takes_labels=False, frames=(0, 0), picture_token=0, picture_tokens=0,
                 outputs=0, grid=0, is_padded=False):
        self.returns_loss, self.takes_labels = returns_loss, takes_labels  # the model computes it: forward_with_loss()
        self.is_padded = is_padded  # the first text is shorter by a token, as an attention_mask says
        self.module, self.library, self.kind = module, library, kind
        self.vocab, self.side, self.classes, self.width = vocab, side, classes, width
        self.has_float_logits, self.own_loss = has_float_logits, loss
        self.frames = frames  # of a recording: channels, length; of a latent picture: channels, side, side
        self.grid = grid  # patches of a picture's side where they are rows (Qwen2-VL), of frames[0] numbers each
        self.outputs = outputs  # channels of the noise
        self.picture_token, self.picture_tokens = picture_token, picture_tokens  # what stands for a picture in a text

    def inputs(self, batch, sequence, device, dtype):
        if self.kind in ("tokens", "pairs"):
            tokens = torch.randint(0, self.vocab, (batch, sequence), device=device)
            targets = torch.randint(0, self.vocab, (batch, sequence), device=device)
            if self.kind == "pairs":
                return (tokens, targets), targets
            return (tokens, *self.padding(tokens)), targets
        if self.kind == "latents":
            latents = torch.randn(batch, *self.frames, device=device).to(dtype)
            times = torch.randint(0, 1000, (batch,), device=device)
            told = (torch.randn(batch, 77, self.width, device=device).to(dtype) if self.width
                    else torch.randint(0, self.classes, (batch,), device=device))
            return (latents, times, told), torch.randn(batch, self.outputs, *self.frames[1:], device=device).to(dtype)
        if self.kind in ("recordings", "captions"):
            return self.inputs_beside_text(batch, sequence, device, dtype)
        if self.kind == "rows":
            rows = torch.randn(batch, self.width, device=device).to(dtype)
            return (rows,), torch.randn(batch, self.classes, device=device).to(dtype)
        pictures = torch.randn(batch, 3, self.side, self.side, device=device).to(dtype)
        return (pictures,), torch.randint(0, self.classes, (batch,), device=device)

    def padding(self, tokens):
        if not self.is_padded:
            return ()
        mask = torch.ones_like(tokens)
        mask[0, -1] = 0
        return (mask,)

    def inputs_beside_text(self, batch, sequence, device, dtype):
        """Recordings, or pictures whose tokens begin each text."""
        tokens = torch.randint(0, self.vocab, (batch, sequence), device=device)
        targets = torch.randint(0, self.vocab, (batch, sequence), device=device)
        if self.kind == "recordings":
            return (torch.randn(batch, *self.frames, device=device).to(dtype), tokens), targets
        if sequence < self.picture_tokens:
            raise Problem("model.range", f"{sequence} tokens are fewer than the {self.picture_tokens} of a picture",
                          f"choose sequence={self.picture_tokens} or more")
        tokens[tokens == self.picture_token] = 0
        tokens[:, :self.picture_tokens] = self.picture_token
        if self.grid:
            patches = torch.randn(batch * self.grid ** 2, *self.frames, device=device).to(dtype)
            return (patches, tokens, torch.tensor([[1, self.grid, self.grid]] * batch, device=device)), targets
        return (torch.randn(batch, 3, self.side, self.side, device=device).to(dtype), tokens), targets

    def forward(self, inputs):
        if self.library != "transformers":
            output = self.module(*inputs, return_dict=False) if self.library == "diffusers" else self.module(*inputs)
            return output if isinstance(output, torch.Tensor) else output[0]
        if self.kind == "pairs":
            return self.module(input_ids=inputs[0], decoder_input_ids=inputs[1]).logits
        if self.kind == "recordings":
            return self.module(input_features=inputs[0], decoder_input_ids=inputs[1]).logits
        if self.grid:
            return self.module(pixel_values=inputs[0], input_ids=inputs[1], image_grid_thw=inputs[2],
                               mm_token_type_ids=(inputs[1] == self.picture_token).int()).logits
        if self.kind == "captions":
            return self.module(pixel_values=inputs[0], input_ids=inputs[1]).logits
        output = self.module(pixel_values=inputs[0]) if self.kind == "pictures" else self.module(**texts(inputs))
        if "logits" in output:
            return output.logits
        pooled = getattr(output, "pooler_output", None)
        return pooled if pooled is not None else output.last_hidden_state

    def forward_with_loss(self, inputs, targets):
        """(output, loss) of a model that returns both."""
        if self.takes_labels:  # labels alone would be shifted, which makes copies of them
            output = self.module(**texts(inputs), labels=targets, shift_labels=targets)
            return output.logits, output.loss
        if self.library == "transformers":
            output = self.forward(inputs)
            return output, self.loss(output, targets)
        return self.module(*inputs, loss_of=lambda output: self.loss(output, targets))

    def loss(self, output, targets):
        if self.own_loss is not None:
            return self.own_loss(output, targets)
        if self.kind == "rows":
            return F.mse_loss(output, targets)
        if self.kind == "latents":
            return F.mse_loss(output.float(), targets.float())
        if self.kind == "pictures":
            return F.cross_entropy(output, targets)
        if output.shape[-1] != self.vocab:  # an encoder without a head
            return output.sum()
        if self.has_float_logits:
            output = output.float()
        return F.cross_entropy(output.view(-1, output.size(-1)), targets.view(-1))


def texts(inputs):
    return dict(zip(("input_ids", "attention_mask"), inputs))


@contextlib.contextmanager
def default_dtype(dtype):
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def library(name, what):
    """A package, or what to install."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        if getattr(error, "name", None) not in (None, name):
            raise Problem("run.failed", f"{name} cannot be imported: {error}", f"repair it: python3 -m pip install --upgrade {name}")
        raise skipped(f"{what} needs {name}, which this Python does not have", f"python3 -m pip install {name}")


def build(model, described, plan, sequence):
    """A Workload on the CPU in plan.dtype. Errors: run.skipped with what to install, model.*."""
    with default_dtype(plan.dtype):
        workload = chosen(model, described or {}, plan, sequence)
    for part in workload.module.modules():
        if isinstance(part, torch.nn.Dropout):
            part.p = plan.dropout
        elif type(part).__name__ == "StochasticDepth":
            part.p = 0.0
    return workload


def chosen(model, described, plan, sequence):
    word, _, rest = model.partition(":")
    if word == "torchvision":
        return from_torchvision(rest, plan)
    if word == "timm":
        return from_timm(rest, plan)
    architecture = described.get("architecture", "")
    is_cached = plan.keeps_cache and architecture == "gpt2" and importlib.util.find_spec("transformers") is not None
    if architecture in ("from-scratch", "mlp", "gpt2") and not is_cached:
        return own_network(architecture, described, plan, sequence)
    if word == "params":
        return with_remainder(from_transformers(llama_config(described), "decoder", plan, model), int(described.get("remainder") or 0))
    path = config_path(model)
    if architecture in ("dit", "unet"):
        fields = read_json(path) if path is not None else catalogue_config(described.get("name", model)) or {}
        return diffusion_transformer(fields, plan) if architecture == "dit" else from_diffusers(fields, plan, model)
    if path is not None:
        return from_transformers(read_json(path), described.get("family", ""), plan, model)
    config = catalogue_config(described.get("name", model))
    if config is None:
        raise Problem("model.unknown", f"the probe knows no model \"{model}\"",
                      "a name of the catalogue, the path of a config.json, torchvision:resnet50 or timm:vit_base_patch16_224")
    if config.get("model_type") in TORCHVISION_NAMES:
        name = TORCHVISION_NAMES[config["model_type"]] or described["name"].replace("-", "_")
        return from_torchvision(name, plan, config.get("image_size", PICTURE_SIDE))
    if config.get("model_type") == "mobilenet_v1" and described.get("name", "").endswith("-standard"):
        raise skipped("no library has MobileNet with standard convolutions", "choose mobilenet-v1, or look at the prediction")
    return from_transformers(config, described.get("family", ""), plan, model)


def own_network(architecture, described, plan, sequence):
    sizes = networks.Sizes(described)
    options = plan.network_options()
    if architecture == "mlp":
        return Workload(networks.Chain(sizes, options), "torch", "rows", width=sizes.layer_sizes[0], classes=sizes.layer_sizes[-1])
    if architecture == "gpt2":
        if sequence > sizes.positions:
            raise Problem("model.range", f"{sequence} tokens are more than the {sizes.positions} positions of the model",
                          f"choose sequence={sizes.positions} or less")
        return Workload(networks.Gpt2(sizes, options), "torch", "tokens", vocab=sizes.vocab, has_float_logits=plan.has_float_logits,
                        returns_loss=True)
    loss = networks.written_out_cross_entropy if plan.is_written_out else None
    return Workload(networks.Decoder(sizes, sequence, options), "torch", "tokens", vocab=sizes.vocab, loss=loss)


def diffusion_transformer(fields, plan):
    module = networks.DiffusionTransformer(fields, plan.network_options())
    channels, side = module.x_embedder.proj.in_channels, module.side * module.patch
    return Workload(module, "torch", "latents", classes=module.y_embedder.classes, frames=(channels, side, side),
                    outputs=module.outputs)


def from_diffusers(fields, plan, model):
    diffusers = library("diffusers", f"the model {model}")
    known = {key: value for key, value in fields.items() if key not in ("_class_name", "torch_dtype")}
    module = diffusers.UNet2DConditionModel.from_config(known)
    if plan.attention == "eager":
        module.set_attn_processor(diffusers.models.attention_processor.AttnProcessor())
    if plan.checkpointing == "block":
        module.enable_gradient_checkpointing()
    elif plan.checkpointing != "none":
        raise skipped(f"diffusers checkpoints every block or none, not {plan.checkpointing}", "choose checkpointing=block or none")
    config, side = module.config, module.config.sample_size
    return Workload(module, "diffusers", "latents", width=config.cross_attention_dim, frames=(config.in_channels, side, side),
                    outputs=config.out_channels)


def llama_config(described):
    return {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": described["hidden"],
            "num_hidden_layers": described["layers"], "num_attention_heads": described["heads"],
            "num_key_value_heads": described["kv_heads"], "head_dim": described["head_dim"],
            "intermediate_size": described["ffn"], "vocab_size": described["vocab"], "tie_word_embeddings": False,
            "max_position_embeddings": max(int(described.get("positions") or 0), 131072)}


def with_remainder(workload, elements):
    """The vector that completes a number of parameters; its mean is added to the embeddings."""
    if elements:
        decoder = workload.module.model
        decoder.register_parameter("remainder", torch.nn.Parameter(torch.zeros(elements)))
        decoder.get_input_embeddings().register_forward_hook(lambda part, inputs, output: output + decoder.remainder.mean())
    return workload


def config_path(model):
    """The config.json that a path means; None where it is no path."""
    path = pathlib.Path(model)
    try:
        if path.is_dir():
            path = path / "config.json"
        elif path.name.endswith((".safetensors", ".safetensors.index.json")):
            path = path.parent / "config.json"
        return path if path.is_file() else None
    except OSError:
        return None


def read_json(path):
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Problem("model.config", f"{path} cannot be read: {error}", "name a model's config.json")
    if not isinstance(fields, dict):
        raise Problem("model.config", f"{path} is not the configuration of a model", "name a model's config.json")
    if fields.get("format") == "memscape-network":
        raise skipped("a network file holds the operators of a model, not the module that makes them",
                      "run the model itself: `with memscape_probe.record(…)` in your own program")
    return fields


def catalogue_config(name):
    folder = pathlib.Path(os.environ.get("MEMSCAPE_RESOURCES", "")) / "models"
    for path in sorted(folder.glob("*.json")):
        for model in json.loads(path.read_text(encoding="utf-8")).get("models", []):
            if name.lower() in [model["name"].lower()] + [alias.lower() for alias in model.get("aliases", [])]:
                return model["config"]
    return None


# --- libraries --------------------------------------------------------------------------------------------------------


def from_torchvision(name, plan, side=PICTURE_SIDE):
    refuse_block_choices(plan, "torchvision's networks")
    models = library("torchvision", f"the model {name}").models
    make = getattr(models, name, None)
    if not callable(make) or name.startswith("_") or not name.islower():
        raise Problem("model.unknown", f"torchvision has no model \"{name}\"", "its names: https://pytorch.org/vision/stable/models.html")
    module = make()
    classes = [part.out_features for part in module.modules() if isinstance(part, torch.nn.Linear)]
    return Workload(module, "torchvision", "pictures", side=side, classes=classes[-1] if classes else 1000)


def from_timm(name, plan):
    refuse_block_choices(plan, "timm's networks")
    timm = library("timm", f"the model {name}")
    if not timm.is_model(name):
        near = timm.list_models(f"*{name.split('_')[0]}*")[:3]
        raise Problem("model.unknown", f"timm has no model \"{name}\"", f"near: {', '.join(near)}" if near else "timm.list_models() names them")
    module = timm.create_model(name, pretrained=False)
    side = getattr(module, "default_cfg", {}).get("input_size", (3, PICTURE_SIDE, PICTURE_SIDE))[-1]
    return Workload(module, "timm", "pictures", side=side, classes=getattr(module, "num_classes", 1000))


def refuse_block_choices(plan, what):
    if plan.checkpointing != "none":
        raise skipped(f"the probe does not checkpoint {what}", "choose checkpointing=none")


def from_transformers(fields, family, plan, model):
    os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    transformers = library("transformers", f"the model {model}")
    config = configuration(transformers, fields)
    config.use_cache = False
    attention = {"auto": None, "eager": "eager"}.get(plan.attention, "sdpa")
    make = model_class(transformers, fields, family)
    module = make(config, attention, plan.dtype)
    text = getattr(config, "get_text_config", lambda: config)()
    if plan.checkpointing in ("block", "block-reentrant"):
        is_reentrant = plan.checkpointing == "block-reentrant"
        module.gradient_checkpointing_enable({"use_reentrant": is_reentrant, "preserve_rng_state": plan.dropout > 0})
    elif plan.checkpointing != "none":
        raise skipped(f"transformers checkpoints every block or none, not {plan.checkpointing}", "choose checkpointing=block or none")
    side = getattr(config, "image_size", None)
    kind = "pictures" if family in ("vision transformer", "convolutional network") or (side and not getattr(text, "vocab_size", 0)) else "tokens"
    if getattr(config, "is_encoder_decoder", False):
        kind = "recordings" if hasattr(config, "num_mel_bins") else "pairs"
    beside = {"frames": (config.num_mel_bins, 2 * config.max_source_positions)} if kind == "recordings" else {}
    vision = getattr(config, "vision_config", None)
    if fields.get("model_type") == "llava":
        kind, side = "captions", vision.image_size
        beside = {"picture_token": config.image_token_id, "picture_tokens": (side // vision.patch_size) ** 2}
    if fields.get("model_type") in ("qwen2_vl", "qwen2_5_vl"):
        kind, side = "captions", getattr(vision, "image_size", QWEN_SIDE)
        grid, merged = side // vision.patch_size, vision.spatial_merge_size
        beside = {"picture_token": config.image_token_id, "picture_tokens": (grid // merged) ** 2, "grid": grid,
                  "frames": (vision.in_channels * vision.temporal_patch_size * vision.patch_size ** 2,)}
    return Workload(module, "transformers", kind, vocab=getattr(text, "vocab_size", 0) or 0, side=side or PICTURE_SIDE, **beside,
                    classes=getattr(config, "num_labels", 0), has_float_logits=plan.has_float_logits,
                    returns_loss=type(module).__name__.endswith(("ForCausalLM", "ForMaskedLM", "ForConditionalGeneration")),
                    takes_labels=plan.has_float_logits and takes_shifted_labels(module), is_padded=plan.is_padded and kind == "tokens")


def takes_shifted_labels(module):
    """Decoders of transformers 4.50 and newer hand what they do not know to their loss."""
    kinds = [p.kind for p in inspect.signature(type(module).forward).parameters.values()]
    return type(module).__name__.endswith("ForCausalLM") and inspect.Parameter.VAR_KEYWORD in kinds


def configuration(transformers, fields):
    """The configuration class of a config.json, every probability of dropout that of the plan later on."""
    kind = fields.get("model_type", "")
    mapping = transformers.models.auto.configuration_auto.CONFIG_MAPPING
    if kind not in mapping:
        raise skipped(f"transformers {transformers.__version__} does not know models of the type \"{kind}\"",
                      "python3 -m pip install --upgrade transformers")
    known = {key: value for key, value in fields.items() if key not in ("model_type", "torch_dtype", "dtype", "quantization_config")}
    try:
        return mapping[kind](**known)
    except Exception as error:  # a library's own checks, of any type
        raise Problem("model.config", f"transformers refuses this configuration: {first_line(error)}", "correct the config.json")


def model_class(transformers, fields, family):
    names = [name for name in fields.get("architectures") or [] if hasattr(transformers, name)]
    made = getattr(transformers, names[0]) if names else None

    def make(config, attention, dtype):
        set_dropout(config, make.dropout)
        if made is not None:
            return made._from_config(config, attn_implementation=attention)
        auto = getattr(transformers, CLASSES_BY_FAMILY.get(family, "AutoModelForCausalLM"))
        return auto.from_config(config, attn_implementation=attention)

    make.dropout = 0.0
    return make


def set_dropout(config, probability):
    for key, value in config.to_dict().items():
        if isinstance(value, float) and "drop" in key and "layer" not in key:
            setattr(config, key, 0.0 if "path" in key else probability)
