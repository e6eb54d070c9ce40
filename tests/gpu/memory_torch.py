# SPDX-License-Identifier: Apache-2.0
"""A case of memory_cases.py run in PyTorch, in this process, which runs no other."""
import contextlib
import time

import torch
from torch.nn.attention import sdpa_kernel

import networks
import probe_path
from memory_cases import Training
from memscape_probe.timer import plain_cpu

STEPS = 3
OPTIMIZERS = {"sgd": (torch.optim.SGD, {"lr": 1e-3}), "momentum": (torch.optim.SGD, {"lr": 1e-3, "momentum": 0.9}),
              "adamw": (torch.optim.AdamW, {"lr": 1e-4}), "adafactor": (torch.optim.Adafactor, {"lr": 1e-3})}
STYLES = {"foreach": {"foreach": True}, "fused": {"fused": True}, "loop": {"foreach": False}, "auto": {}}


class Watch:
    """The highest bytes from here on; nothing on the CPU."""

    def __init__(self, device):
        self.device = device
        if device == "cuda":
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
        self.began = time.perf_counter()

    def read(self):
        if self.device != "cuda":
            return {"where": {"torch": torch.__version__}}
        torch.cuda.synchronize()
        return {"allocated": torch.cuda.max_memory_allocated(), "reserved": torch.cuda.max_memory_reserved(),
                "seconds": time.perf_counter() - self.began,
                "where": {"torch": torch.__version__, "gpu": torch.cuda.get_device_name(0)}}


def kernel_of(case, device):
    """Only the attention that was asked for may run."""
    if case.attention == "eager" or device != "cuda":
        return contextlib.nullcontext()
    return sdpa_kernel(networks.BACKENDS[case.attention])


def train(case, device):
    network = networks.build(case.network, case.precision, case.attention, device).train()
    network.config.use_cache = False
    if case.checkpointing == "block":
        network.gradient_checkpointing_enable({"use_reentrant": False})
    make, options = OPTIMIZERS[case.optimizer]
    optimizer = make(network.parameters(), **options, **STYLES[case.implementation])
    tokens = torch.randint(0, network.config.vocab_size, (case.batch, case.sequence), device=device)
    steps = STEPS if device == "cuda" else 1
    for step in range(steps):
        if step == steps - 1:
            watch = Watch(device)
        loss = step_of(network, optimizer, tokens, case, device)
    seen = watch.read()
    if not torch.isfinite(loss):
        raise RuntimeError("the loss is not finite")
    return seen


def step_of(network, optimizer, tokens, case, device):
    half = torch.autocast(device, dtype=torch.bfloat16) if case.precision.endswith("autocast") else contextlib.nullcontext()
    optimizer.zero_grad(set_to_none=True)
    with kernel_of(case, device):
        with half:
            loss = network(input_ids=tokens, labels=tokens).loss
        loss.backward()
    optimizer.step()
    return loss


def forward(case, device):
    network = networks.build(case.network, case.precision, case.attention, device).eval()
    network.config.use_cache = False
    tokens = torch.randint(0, network.config.vocab_size, (case.batch, case.prompt), device=device)
    with torch.no_grad(), kernel_of(case, device):
        network(input_ids=tokens)  # the library's workspace is taken here
        watch = Watch(device)
        logits = network(input_ids=tokens).logits
        seen = watch.read()
    if not torch.isfinite(logits).all():
        raise RuntimeError("the logits are not finite")
    seen.pop("seconds", None)
    return seen


def cache_bytes(cache):
    return sum(one.nbytes for layer in cache.layers for one in (layer.keys, layer.values))


def generate(case, device):
    """The prompt at once, then the likeliest token again and again."""
    network = networks.build(case.network, case.precision, case.attention, device).eval()
    tokens = torch.randint(0, network.config.vocab_size, (case.batch, case.prompt), device=device)
    with torch.no_grad():
        network(input_ids=tokens[:, :8], use_cache=False)
        watch = Watch(device)
        with kernel_of(case, device):
            answer = network(input_ids=tokens, use_cache=True)
        prefill = watch.read()
        for _ in range(case.generated):
            token = answer.logits[:, -1:].argmax(-1)
            cache = answer.past_key_values
            answer = None  # its logits go before the next ones come
            answer = network(input_ids=token, past_key_values=cache, use_cache=True)
        seen = watch.read()
    seen.pop("seconds", None)
    seen["prefill_allocated"] = prefill.get("allocated")
    seen["cache"] = cache_bytes(answer.past_key_values)
    return seen


def run(case, device):
    torch.manual_seed(1)
    if device == "cpu":
        plain_cpu()
    if isinstance(case, Training):
        return train(case, device)
    return generate(case, device) if case.generated else forward(case, device)
