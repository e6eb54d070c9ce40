# SPDX-License-Identifier: Apache-2.0
"""Adapters of a plan: which layers get one, by PEFT, and the frozen base in fewer bits, by bitsandbytes.

Targets that are not named are PEFT's own for the architecture; where it has none, and for QLoRA, every linear layer of the
numbered blocks. What prepare_model_for_kbit_training casts is cast here too: it knows models of transformers alone."""
import torch

from .problem import Problem, skipped

TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
QUANTIZED = ("int8", "nf4", "nf4-double")
# Our own GPT-2 has the names of its code for those of transformers.
NAMES_OF_GPT2 = {"c_attn": ["qkv"], "c_proj": ["proj", "pj"], "mlp.c_proj": ["pj"], "c_fc": ["fc"], "lm_head": ["head"],
                 "ln_1": ["ln1"], "ln_2": ["ln2"], "ln_f": ["lnf"]}


def element_count(parameter):
    """Of a weight; two of 4 bits lie in a byte."""
    state = getattr(parameter, "quant_state", None)
    return parameter.numel() if state is None else torch.Size(state.shape).numel()


def scale_bytes(module):
    """What bitsandbytes keeps beside the codes of quantized weights: scales, their tables and offset."""
    states = [getattr(parameter, "quant_state", None) for parameter in module.parameters()]
    tensors = [getattr(getattr(part, "state", None), "SCB", None) for part in module.modules()]
    for state in filter(None, states):
        tensors += [state.absmax, state.code] + ([state.offset, state.state2.absmax, state.state2.code] if state.nested else [])
    tensors = {id(tensor): tensor for tensor in tensors if tensor is not None}.values()
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def names(text):
    return [] if text.strip() == "none" else [name.strip() for name in text.split(",")]


class Adapters:
    """The parameters of adapters; `kind` is none without."""

    def __init__(self, parameters):
        get = parameters.get
        self.kind, self.rank = get("adapter", "none"), int(get("adapter_rank", 16))
        self.targets, self.saved = names(get("adapter_targets", "default")), names(get("modules_to_save", "none"))
        self.virtual_tokens = int(get("virtual_tokens", 20))
        self.dropout, self.variant = float(get("adapter_dropout", 0)), get("adapter_variant", "lora")
        self.precision, self.compute = get("adapter_precision", "auto"), get("compute_precision", "auto")
        base = get("base_precision", "auto") if self.kind != "none" else "auto"
        self.base = "nf4-double" if base == "auto" and self.kind == "qlora" else base
        self.is_prepared = self.base in QUANTIZED and get("kbit_preparation", "peft") == "peft"
        self.quantizes_head, self.version = bool(get("quantized_head", False)), get("bitsandbytes", "0.44")
        self.architecture = (get("described") or {}).get("architecture", "")
        if self.kind == "qlora" and self.targets == ["default"]:
            self.targets = ["all-linear"]

    def is_wide(self, precision):
        """Whether they are kept in fp32 beside half weights: PEFT's autocast_adapter_dtype."""
        if self.kind == "none":
            return False
        return self.is_prepared or self.precision == "fp32" or (self.precision == "auto" and not precision.endswith("-mixed"))

    def compute_type(self, precision):
        if self.compute != "auto":
            return TYPES[self.compute]
        return torch.float32 if precision == "fp32" else TYPES["fp16" if precision.startswith("fp16") else "bf16"]

    def add(self, module, precision, device):
        """Quantizes and prepares the base and puts the adapters beside it, in place. Errors: plan.lora, run.skipped."""
        if self.kind == "none":
            return
        from .models import library
        peft = library("peft", f"adapter={self.kind}")
        if self.base in QUANTIZED:
            bitsandbytes = library("bitsandbytes", f"base_precision={self.base}")
            self.check_version(bitsandbytes.__version__)
            self.quantize(module, bitsandbytes.nn, precision, device)
        if self.kind in ("prompt", "prefix"):
            raise skipped(f"adapter={self.kind}: PEFT puts virtual tokens before models of transformers alone",
                          "predict it, or choose adapter=lora")
        config = self.config(module, peft)
        try:
            peft.get_peft_model(module, config, autocast_adapter_dtype=self.is_wide(precision))
        except (ImportError, TypeError) as error:  # optional libraries whose versions it refuses, an old peft
            raise skipped(f"peft cannot be used: {str(error).splitlines()[0]}", "python3 -m pip install --upgrade peft")
        except ValueError as error:
            raise Problem("plan.lora", str(error).splitlines()[0], "choose other adapter_targets or modules_to_save")
        if self.kind in ("lora", "qlora") and self.variant == "lora-fa":  # as PEFT's create_lorafa_optimizer does
            for name, parameter in module.named_parameters():
                if "lora_A" in name:
                    parameter.requires_grad_(False)

    def config(self, module, peft):
        saved = self.own_names(self.saved) or None
        if self.kind == "norms":
            return peft.LNTuningConfig(target_modules=self.norm_paths(module, peft), modules_to_save=saved)
        paths = self.target_paths(module, peft)
        if self.kind == "ia3":
            ends = self.mapped(peft, "IA3_FEEDFORWARD")
            scaled = [path for path in paths if any(self.is_target(path, name, {}) for name in self.own_names(ends))]
            return peft.IA3Config(target_modules=paths, feedforward_modules=scaled, modules_to_save=saved)
        if self.kind == "vera":
            return peft.VeraConfig(r=self.rank, target_modules=paths, vera_dropout=self.dropout, modules_to_save=saved)
        return peft.LoraConfig(r=self.rank, lora_alpha=2 * self.rank, lora_dropout=self.dropout, target_modules=paths,
                               use_rslora=self.variant == "rslora", use_dora=self.variant == "dora", modules_to_save=saved)

    def mapped(self, peft, method):
        """What PEFT takes for this architecture of a table of its own; nothing where it has none."""
        tables = getattr(peft.utils, "constants", peft.utils)
        known = getattr(tables, f"TRANSFORMERS_MODELS_TO_{method}_MODULES_MAPPING", {})
        return known.get(self.architecture) or []

    def norm_paths(self, module, peft):
        asked = self.mapped(peft, "LNTUNING_TARGET") if self.targets == ["default"] else self.targets
        asked = self.own_names(asked)
        parts = dict(module.named_modules())
        paths = [path for path, part in parts.items() if "norm" in type(part).__name__.lower() and
                 any(path == name or path.endswith("." + name) for name in asked)]
        if not paths:
            norms = sorted({path.rpartition(".")[2] for path, part in parts.items() if "norm" in type(part).__name__.lower()})
            raise Problem("plan.lora", f"no norm of this network is meant by {', '.join(asked) or 'the default'}",
                          f"it has {', '.join(norms)}" if norms else "choose another adapter")
        return paths

    def check_version(self, version):
        """Older ones keep the input of each 4-bit layer or pass through fp16: no kind can stand in for another."""
        minor = tuple(int(part) for part in version.split(".")[:2])
        here = "0.41" if minor < (0, 43) else "0.43" if minor < (0, 44) else "0.44"
        if here != self.version:
            raise skipped(f"bitsandbytes={self.version}: this Python has {version}",
                          f"choose bitsandbytes={here}, or install the other")

    def own_names(self, asked):
        if self.architecture != "gpt2":
            return asked
        return [own for name in asked for own in NAMES_OF_GPT2.get(name, [name])]

    def target_paths(self, module, peft):
        asked = self.targets
        if asked == ["default"]:
            method = {"ia3": "IA3_TARGET", "vera": "VERA_TARGET"}.get(self.kind, "LORA_TARGET")
            asked = self.mapped(peft, method) or ["all-linear"]
        asked = self.own_names(asked)
        parts = dict(module.named_modules())
        kinds = (torch.nn.Linear,)
        paths = [path for path, part in parts.items() if isinstance(part, kinds) and
                 any(self.is_target(path, name, parts) for name in asked)]
        if not paths:
            linear = sorted({path.rpartition(".")[2] for path, part in parts.items() if isinstance(part, kinds)})
            raise Problem("plan.lora", f"no linear layer of this network is meant by {', '.join(asked)}",
                          f"it has {', '.join(linear)}" if linear else "choose adapter=none")
        return paths

    @staticmethod
    def is_target(path, name, parts):
        if name == "all-linear":
            return any(component.isdigit() for component in path.split("."))
        if name == "attention":
            components = path.split(".")
            above = [type(parts[".".join(components[:i])]).__name__ for i in range(1, len(components))]
            return any("Attention" in kind or "Attn" in kind for kind in above)
        return path == name or path.endswith("." + name)

    def quantize(self, module, library, precision, device):
        """Linear layers of the blocks, as transformers' BitsAndBytesConfig replaces them; what is left goes to fp32, or
        stays in half precision wherever that is computed in, as transformers loads it."""
        is_double, compute = self.base == "nf4-double", self.compute_type(precision)
        tables = [part.weight for part in module.modules() if isinstance(part, torch.nn.Embedding)]
        for path, part in list(module.named_modules()):
            if not isinstance(part, torch.nn.Linear) or not (self.quantizes_head or self.is_target(path, "all-linear", {})):
                continue
            if any(part.weight is table for table in tables):  # a head that shares it
                continue
            parent, _, name = path.rpartition(".")
            has_bias, weight = part.bias is not None, part.weight.data.to("cpu")
            if self.base == "int8":
                made = library.Linear8bitLt(part.in_features, part.out_features, has_bias, has_fp16_weights=False, threshold=6.0)
                made.weight = library.Int8Params(weight, requires_grad=False, has_fp16_weights=False)
            else:
                made = library.Linear4bit(part.in_features, part.out_features, has_bias, compute_dtype=compute,
                                          compress_statistics=is_double, quant_type="nf4")
                made.weight = library.Params4bit(weight, requires_grad=False, compress_statistics=is_double, quant_type="nf4")
            if has_bias:
                made.bias = torch.nn.Parameter(part.bias.data, requires_grad=False)
            setattr(module.get_submodule(parent), name, made.to(device))
        setattr(module, "is_loaded_in_8bit" if self.base == "int8" else "is_loaded_in_4bit", True)
        for parameter in module.parameters():
            parameter.requires_grad_(False)
            if self.is_prepared and parameter.dtype in (torch.float16, torch.bfloat16):
                parameter.data = parameter.data.to(torch.float32)
            elif not self.is_prepared and precision.endswith("-autocast") and parameter.dtype == torch.float32:
                parameter.data = parameter.data.to(TYPES[precision[:4]])
