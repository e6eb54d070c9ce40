# SPDX-License-Identifier: Apache-2.0
"""How a network is trained: the parameters of `training-memory` as PyTorch does them, and what it cannot do on one device.

Precision: autocast keeps fp32 weights; mixed keeps half weights and an fp32 master copy that the optimizer updates
(torch.optim has none: MasterCopy below does what DeepSpeed and Megatron do); bf16 and fp16 alone are half throughout."""
import contextlib
import functools
import weakref

import torch

from .adapters import TYPES, Adapters
from .networks import Options, create_selective_checkpoint_contexts
from .problem import skipped

HALVES = {"bf16": torch.bfloat16, "fp16": torch.float16}
# Libraries that train networks of transformers in a loop that frees the logits; what else they choose are parameters.
RUNS_TRANSFORMERS = ("transformers", "trl", "llama-factory", "axolotl", "llama-recipes", "lightning")
# What one process with PyTorch alone cannot do: parameter, the values that it can do, what is missing, the remedy.
NEEDS_MORE = (
    ("zero", (0,), "ZeRO shards over several processes", "choose zero=0, or run your own DeepSpeed or FSDP program under memscape_probe"),
    ("data_parallel", (1,), "data parallelism needs several devices", "choose data_parallel=1"),
    ("tensor_parallel", (1,), "tensor parallelism needs several devices", "choose tensor_parallel=1"),
    ("async_tensor_parallel", (False,), "tensor parallelism needs several devices", "choose async_tensor_parallel=false"),
    ("context_parallel", (1,), "context parallelism needs several devices", "choose context_parallel=1"),
    ("pipeline_parallel", (1,), "a pipeline needs several devices", "choose pipeline_parallel=1"),
    ("offload", ("none",), "offload needs DeepSpeed or torchao", "choose offload=none"),
    ("activation_offload", (False,), "offload of activations needs torchtune or TRL", "choose activation_offload=false"),
    ("fp32_gradients", (False,), "the probe's mixed recipes keep gradients as backward makes them", "choose fp32_gradients=false"),
    ("shortest_sequence", (0,), "the probe runs batches of one length", "choose shortest_sequence=0"),
    ("operators", ("fused", "written-out"), "the probe runs what the model's library has", "choose operators=fused"),
    ("repeats_heads", ("auto", "false", False), "the probe runs the attention of the model's library", "choose repeats_heads=auto"),
    ("library", ("auto", "nanogpt", *RUNS_TRANSFORMERS), "the probe has neither that library's networks nor its loss",
     "choose library=auto, or run your own program under memscape_probe"),
    ("pytorch", ("2.14", "2.1"), "the probe runs the PyTorch that is installed", "choose pytorch=2.14"),
    ("zero_grad_frees", ("auto", "true", "false"), "the probe zeroes gradients behind the update", "choose zero_grad_frees=auto"),
    ("tf32", ("convolutions",), "the probe multiplies as PyTorch does by default", "choose tf32=convolutions"),
    ("channels_last", (False,), "the probe's pictures lie in NCHW", "choose channels_last=false"),
    ("compile", ("none",), "the probe runs eager PyTorch", "choose compile=none"),
    ("transformers", ("5.24", "4.54", "4.50"), "the probe's own models shift their labels", "choose transformers=4.54"),
    ("masked_share", (0,), "the probe's masked language models make logits of all tokens", "choose masked_share=0"),
    ("base_precision", ("auto", "fp32", "bf16", "fp16", "int8", "nf4", "nf4-double"), "a base in GPTQ comes quantized from its file",
     "choose base_precision=nf4"),
    ("loss", ("library",), "the probe runs a model with its library's loss", "choose loss=library"),
    ("optimizer", ("adamw", "adam", "sgd", "momentum", "adafactor", "muon", "none"),
     "torch.optim has no such optimizer (8-bit and paged Adam: bitsandbytes, 4-bit and FP8 Adam: torchao, Lion: lion-pytorch, GaLore: galore-torch, "
     "APOLLO: apollo-torch, LOMO: lomo-optim)", "choose optimizer=adamw"),
)


class Plan:
    def __init__(self, parameters, device):
        self.device = torch.device(device)
        get = parameters.get
        self.precision = get("precision", "fp32")
        self.optimizer, self.style = get("optimizer", "adamw"), get("optimizer_implementation", "auto")
        self.attention, self.checkpointing = get("attention", "auto"), get("checkpointing", "none")
        self.accumulation = int(get("accumulation", 1))
        self.clips, self.frees_gradients = bool(get("clipping", False)), get("zero_grad_frees", "auto") != "false"
        self.updates_in_backward = bool(get("optimizer_in_backward", False))
        self.keeps_logits, self.has_float_logits = self.asked_to_keep_logits(parameters), bool(get("logits_fp32", True))
        self.adapters = Adapters(parameters)
        self.dropout, self.phase = float(get("dropout", 0)), get("phase", "training")
        self.is_padded = bool(get("padding", False))
        self.is_written_out = get("operators", "fused") == "written-out"
        self.keeps_cache = False
        self.architecture = (get("described") or {}).get("architecture")
        self.layers = int((get("described") or {}).get("layers") or 0)
        if self.style == "auto" and self.is_written_out:
            self.style = "written-out"
        self.check(parameters)

    @staticmethod
    def asked_to_keep_logits(parameters):
        """By default as the loop does that is asked: transformers' Trainer and its like free the logits. A flag in older records."""
        keeps = str(parameters.get("keeps_logits", "auto")).lower()
        return keeps == "true" or (keeps == "auto" and parameters.get("library") not in RUNS_TRANSFORMERS)

    # --- what can be done -----------------------------------------------------------------------------------------------
    def check(self, parameters):
        for key, possible, missing, remedy in NEEDS_MORE:
            if parameters.get(key, possible[0]) not in possible:
                raise skipped(f"{key}={parameters[key]}: {missing}", remedy)
        library, is_gpt2 = parameters.get("library"), self.architecture == "gpt2"
        if is_gpt2 and library in RUNS_TRANSFORMERS:
            raise skipped(f"library={library}: the probe runs nanoGPT's GPT-2", "choose library=auto")
        if self.is_padded and self.architecture in ("from-scratch", "mlp", "gpt2"):
            raise skipped("padding=true: the probe's own networks take no mask", "choose padding=false")
        if library == "nanogpt" and not is_gpt2:
            raise skipped("library=nanogpt: nanoGPT has no other model than GPT-2", "choose library=auto, or model=gpt2")
        if self.precision == "fp8":
            raise skipped("precision=fp8: PyTorch has no FP8 layers (Transformer Engine has)", "choose bf16-mixed")
        if self.checkpointing == "operators" and create_selective_checkpoint_contexts is None:
            raise skipped(f"PyTorch {torch.__version__} keeps no single results", "choose checkpointing=block, or torch 2.4 or newer")
        self.check_attention()
        if self.optimizer == "adafactor" and not hasattr(torch.optim, "Adafactor"):
            raise skipped(f"PyTorch {torch.__version__} has no Adafactor", "torch 2.5 or newer has it; choose optimizer=adamw")
        if self.optimizer == "muon" and not hasattr(torch.optim, "Muon"):
            raise skipped(f"PyTorch {torch.__version__} has no Muon", "torch 2.9 or newer has it; choose optimizer=adamw")
        if self.style == "written-out" and self.optimizer not in ("adam", "adamw", "sgd", "none"):
            raise skipped(f"a written-out {self.optimizer} is not in the probe", "choose optimizer_implementation=loop")

    def check_attention(self):
        if self.attention in ("auto", "eager"):
            return
        if not hasattr(torch.nn.functional, "scaled_dot_product_attention"):
            raise skipped(f"PyTorch {torch.__version__} has no fused attention", "choose attention=eager, or torch 2.0 or newer")
        if self.attention == "efficient" and self.device.type == "cpu":
            raise skipped("PyTorch has no memory-efficient attention on a CPU", "choose attention=flash or eager")
        if self.attention == "flash" and self.device.type == "cuda" and self.half is None and self.dtype == torch.float32:
            raise skipped("PyTorch's flash attention on a GPU takes half precision only", "choose precision=bf16-autocast, or attention=efficient")

    @property
    def half(self):
        """Of autocast; None without. A prepared base is fp32, and the mixed recipes compute in half all the same."""
        is_mixed = self.precision.endswith("-mixed") and self.adapters.is_prepared
        return HALVES[self.precision[:4]] if self.precision.endswith("-autocast") or is_mixed else None

    @property
    def dtype(self):
        """Of the weights, before those of a base are quantized."""
        if self.adapters.base in TYPES:
            return TYPES[self.adapters.base]
        if self.precision in ("fp32", "bf16-autocast", "fp16-autocast"):
            return torch.float32
        return HALVES[self.precision[:4]]

    @property
    def has_masters(self):
        return (self.precision.endswith("-mixed") and self.phase == "training" and self.optimizer != "none"
                and not self.adapters.is_wide(self.precision))

    def network_options(self):
        every = 0
        if self.checkpointing in ("block", "block-reentrant", "second", "operators"):
            every = 1
        elif self.checkpointing.startswith("every:"):
            every = int(self.checkpointing[6:])
        elif self.checkpointing == "sqrt":
            every = max(1, round(max(1, self.layers) ** 0.5))
        is_eager = self.attention == "auto" and self.architecture == "from-scratch"  # which never calls the fused one
        return Options("eager" if is_eager else self.attention, self.is_written_out, self.dropout, every, self.checkpointing == "selective",
                       self.checkpointing == "block-reentrant", self.checkpointing == "operators",
                       self.checkpointing == "second")

    def bytes_per_parameter(self):
        """Between the steps and at their end: weights, gradients, master copy, moments."""
        size = 2 if self.dtype in HALVES.values() else 4
        if self.phase != "training":
            return size
        master = 4 if self.has_masters else 0
        moments = {"adamw": 2, "adam": 2, "momentum": 1, "muon": 1}.get(self.optimizer, 0)
        return size + size + master + moments * (master or size)

    # --- the parts of a step ------------------------------------------------------------------------------------------------
    @contextlib.contextmanager
    def kernels(self):
        """Only the attention that was asked for may run, also where backward runs a block again. Eager is the product of
        matrices that PyTorch's fused function is written out as, for libraries that call that."""
        if self.attention == "auto" or not hasattr(torch.nn.functional, "scaled_dot_product_attention"):
            yield
            return
        with contextlib.ExitStack() as stack:
            stack.enter_context(only_kernel(self.attention, self.device))
            yield

    def autocast(self):
        if self.half is None:
            return contextlib.nullcontext()
        return torch.autocast(self.device.type, dtype=self.half)

    def make_scaler(self):
        """For fp16 under autocast, as PyTorch's recipe has it; None elsewhere."""
        if self.precision != "fp16-autocast" or self.phase != "training":
            return None
        if hasattr(torch, "amp") and hasattr(torch.amp, "GradScaler"):
            return torch.amp.GradScaler(self.device.type)
        if self.device.type == "cuda":
            return torch.cuda.amp.GradScaler()
        raise skipped(f"PyTorch {torch.__version__} has no loss scaling on a CPU", "choose precision=bf16-autocast")

    def make_optimizer(self, module):
        """None without one. Errors: run.skipped where this PyTorch lacks the implementation."""
        trained = [p for p in module.parameters() if p.requires_grad]
        if self.phase != "training" or self.optimizer == "none":
            return None
        try:
            if self.updates_in_backward:
                return InBackward(trained, lambda parameter: self.one_optimizer([parameter], module))
            return self.one_optimizer(trained, module)
        except (RuntimeError, TypeError, ValueError) as error:
            raise skipped(f"{self.optimizer} as {self.style}: {str(error).splitlines()[0]}", "choose optimizer_implementation=loop")

    def one_optimizer(self, parameters, module):
        if self.has_masters:
            return MasterCopy(parameters, lambda masters: self.plain_optimizer(masters, module))
        return self.plain_optimizer(parameters, module)

    def plain_optimizer(self, parameters, module):
        optim, rate = torch.optim, 1e-4
        if self.style == "written-out":
            return WrittenOut(parameters, rate, self.optimizer)
        # "auto" is what PyTorch chooses itself: foreach on CUDA, a loop on a CPU.
        style = {"auto": {}, "foreach": {"foreach": True}, "fused": {"fused": True}, "loop": {"foreach": False}}[self.style]
        if self.optimizer == "sgd":
            return optim.SGD(parameters, lr=rate, **style)
        if self.optimizer == "momentum":
            return optim.SGD(parameters, lr=rate, momentum=0.9, **style)
        if self.optimizer == "adafactor":
            return optim.Adafactor(parameters, lr=rate, **({} if self.style == "fused" else style))
        if self.optimizer == "muon":
            return muon(parameters, module, rate, style)
        return {"adam": optim.Adam, "adamw": optim.AdamW}[self.optimizer](parameters, lr=rate, **style)


@contextlib.contextmanager
def only_kernel(attention, device):
    """scaled_dot_product_attention may take this backend alone: flash, efficient, cudnn, math (eager, the same)."""
    try:
        from torch.nn.attention import SDPBackend, sdpa_kernel
        name = {"flash": "FLASH_ATTENTION", "efficient": "EFFICIENT_ATTENTION", "cudnn": "CUDNN_ATTENTION", "math": "MATH",
                "eager": "MATH"}[attention]
        if not hasattr(SDPBackend, name):
            raise RuntimeError(f"PyTorch {torch.__version__} has no backend {name}")
        with sdpa_kernel(getattr(SDPBackend, name)):
            yield
    except ImportError:  # torch 2.0 to 2.2
        if device.type != "cuda":  # one kernel, which decides by itself
            yield
            return
        with torch.backends.cuda.sdp_kernel(enable_flash=attention == "flash", enable_mem_efficient=attention == "efficient",
                                            enable_math=attention in ("math", "eager")):
            yield


def muon(parameters, module, rate, style):
    """Muon for the matrices of the blocks, AdamW for the rest."""
    names = {id(p): name for name, p in module.named_parameters()}
    hidden = [p for p in parameters if p.ndim == 2 and any(part.isdigit() for part in names.get(id(p), "").split("."))]
    rest = [p for p in parameters if all(p is not other for other in hidden)]
    return Several(([torch.optim.Muon(hidden, lr=rate)] if hidden else []) + ([torch.optim.AdamW(rest, lr=rate, **style)] if rest else []))


class Several:
    """Optimizers that step as one."""

    def __init__(self, parts):
        self.parts = parts

    def all(self):
        return self.parts

    def step(self):
        for part in self.parts:
            part.step()

    def zero_grad(self, set_to_none=True):
        for part in self.parts:
            part.zero_grad(set_to_none=set_to_none)


class InBackward:
    """An optimizer for each parameter, which a hook calls as soon as its gradient is there."""

    def __init__(self, parameters, make):
        if not hasattr(torch.Tensor, "register_post_accumulate_grad_hook"):
            raise TypeError(f"PyTorch {torch.__version__} has no hooks behind gradients: torch 2.1 or newer has them")
        self.parts = [make(parameter) for parameter in parameters]
        for parameter, part in zip(parameters, self.parts):
            parameter.register_post_accumulate_grad_hook(functools.partial(self.update, weakref.ref(part)))

    @staticmethod
    def update(part, _):
        """`part` is held by the list above alone: a parameter that held it would hold itself."""
        part().step()
        part().zero_grad()

    @property
    def masters(self):
        return [master for part in self.parts for master in getattr(part, "masters", [])]

    def all(self):
        return [one for part in self.parts for one in (part.all() if hasattr(part, "all") else [part])]

    def step(self):
        """Done in backward."""

    def zero_grad(self, set_to_none=True):
        """Done in backward."""


class MasterCopy:
    """An optimizer of fp32 copies of half weights: gradients are copied to fp32 for the update, the result back."""

    def __init__(self, weights, make):
        self.weights = weights
        self.masters = [torch.nn.Parameter(weight.detach().to(torch.float32)) for weight in weights]
        self.inner = make(self.masters)

    def all(self):
        return self.inner.all() if isinstance(self.inner, Several) else [self.inner]

    def step(self):
        for weight, master in zip(self.weights, self.masters):
            if weight.grad is not None:
                master.grad = weight.grad.to(torch.float32)
        self.inner.step()
        with torch.no_grad():
            for weight, master in zip(self.weights, self.masters):
                weight.copy_(master)
                master.grad = None

    def zero_grad(self, set_to_none=True):
        for weight in self.weights:
            if set_to_none:
                weight.grad = None
            elif weight.grad is not None:
                weight.grad.zero_()


class WrittenOut(torch.optim.Optimizer):
    """Adam, AdamW and SGD as a textbook writes them, every expression a new tensor."""

    def __init__(self, parameters, rate, kind):
        super().__init__(parameters, {"lr": rate})
        self.kind = kind

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                grad = p.grad.data
                if self.kind == "sgd":
                    p.data -= group["lr"] * grad
                    continue
                state = self.state[p]
                last_m = state.get("exp_avg", torch.zeros_like(grad))
                last_v = state.get("exp_avg_sq", torch.zeros_like(grad))
                m = 0.9 * last_m + (1 - 0.9) * grad
                v = 0.95 * last_v + (1 - 0.95) * torch.square(grad)
                p.data -= group["lr"] * m / (torch.sqrt(v) + 1e-8)
                if self.kind == "adamw":
                    p.data -= group["lr"] * 0.1 * p.data
                state["exp_avg"] = m
                state["exp_avg_sq"] = v
