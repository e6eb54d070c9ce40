#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records what the optimizers of a real PyTorch allocate and free in one step, and their state.

No GPU is needed: the tensors are fake ones on "cuda", so PyTorch takes the code path of CUDA, and a
dispatch mode watches the storages that operators return (their temporaries inside a kernel are not
seen, nor are host tensors such as `step`). Numbers are those of the second step, when the state exists.

Events are signed bytes in time order: +n is an allocation, -n a free; frees between two operators
are sorted. "state" is, for each parameter, the bytes of its state tensors on the device by name.

GaLore (galore-torch 1.0) and APOLLO (apollo-torch 1.0.3) have rank 8 on matrices; their second step is none that makes
a projection anew. APOLLO's random matrix is made without its generator, which needs a real device.

Usage: optimizer_steps.py > optimizer_steps.json
"""
import json
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Recorder(TorchDispatchMode):
    def __init__(self, known):
        super().__init__()
        self.known = {t.untyped_storage()._cdata for t in known}
        self.keep = [t.untyped_storage() for t in known]
        self.live = {}
        self.events = []

    def poll(self):
        dead = [key for key, (ref, _) in self.live.items() if ref.expired()]
        self.events += sorted((-self.live.pop(key)[1] for key in dead))

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.poll()
        if func is torch.ops.aten._local_scalar_dense.default:
            return 1.0
        if "_fused_" in func.name():  # one kernel in place; it has no fake version
            return None
        result = func(*args, **(kwargs or {}))
        for t in tree_leaves(result):
            if not isinstance(t, torch.Tensor) or t.device.type != "cuda":
                continue
            storage = t.untyped_storage()
            if storage._cdata in self.known or storage._cdata in self.live or storage.nbytes() == 0:
                continue
            self.live[storage._cdata] = (StorageWeakRef(storage), storage.nbytes())
            self.events.append(storage.nbytes())
        return result


class WrittenOutAdamW(torch.optim.Optimizer):
    """The AdamW that courses let students write: every expression out of place."""

    def __init__(self, params, lr=1e-3, weight_decay=0.01, betas=(0.9, 0.999), eps=1e-8):
        super().__init__(params, dict(lr=lr, weight_decay=weight_decay, betas=betas, eps=eps))

    def step(self):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                g = p.grad.data
                state = self.state[p]
                t = state.get("t", 1)
                last_m = state.get("m", torch.zeros_like(g))
                last_v = state.get("v", torch.zeros_like(g))
                m = b1 * last_m + (1 - b1) * g
                v = b2 * last_v + (1 - b2) * torch.square(g)
                lr = group["lr"] * (1 - b2**t) ** 0.5 / (1 - b1**t)
                p.data -= lr * m / (torch.sqrt(v) + group["eps"])
                p.data -= group["lr"] * group["weight_decay"] * p.data
                state["m"] = m
                state["v"] = v
                state["t"] = t + 1


class Lion(torch.optim.Optimizer):
    """Chen et al. 2023 (arXiv:2302.06675), as its authors' PyTorch version computes it."""

    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.1):
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                p.data.mul_(1 - group["lr"] * group["weight_decay"])
                state = self.state[p]
                if "exp_avg" not in state:
                    state["exp_avg"] = torch.zeros_like(p)
                exp_avg = state["exp_avg"]
                update = exp_avg * b1 + p.grad * (1 - b1)
                p.add_(update.sign_(), alpha=-group["lr"])
                exp_avg.mul_(b2).add_(p.grad, alpha=1 - b2)


SHAPES = [(1000, 96), (96, 96), (96,), (288, 96), (288,), (96, 192), (96,), (16, 3, 3, 3), (16,), (10, 96), (1, 96)]
MATRICES = [s for s in SHAPES if len(s) == 2]


def tensors_of(state):
    """The tensors of a parameter's state by name, that of a projector included."""
    found = {k: t for k, t in state.items() if isinstance(t, torch.Tensor)}
    if "projector" in state:
        found["projector"] = state["projector"].ortho_matrix
    return found


def projected(optimizer, **options):
    """An optimizer that has a low-rank group of the matrices and another of the rest."""
    def make(params):
        groups = [{"params": [p for p in params if p.ndim == 2], "rank": 8, "update_proj_gap": 200, "scale": 1.0,
                   "proj_type": "std", **options}, {"params": [p for p in params if p.ndim != 2]}]
        return optimizer([group for group in groups if group["params"]], no_deprecation_warning=True)
    return make


def record(name, make, shapes, dtypes):
    with FakeTensorMode():
        params = [torch.nn.Parameter(torch.empty(s, dtype=d, device="cuda")) for s, d in zip(shapes, dtypes)]
        for p in params:
            p.grad = torch.empty_like(p)
        optimizer = make(params)
        first = Recorder([p.data for p in params] + [p.grad for p in params])
        with first:
            optimizer.step()
        state = [{k: t.untyped_storage().nbytes() for k, t in tensors_of(optimizer.state[p]).items()
                  if t.device.type == "cuda"} for p in params]
        known = [p.data for p in params] + [p.grad for p in params]
        known += [t for s in optimizer.state.values() for t in tensors_of(s).values()]
        again = Recorder(known)
        again.keep = []
        for t in [t for s in optimizer.state.values() for t in tensors_of(s).values()]:
            if t.device.type == "cuda":  # state that a step replaces is seen to die
                again.live[t.untyped_storage()._cdata] = (StorageWeakRef(t.untyped_storage()), t.untyped_storage().nbytes())
        del known
        t = None
        with again:
            optimizer.step()
            again.poll()
        clip = Recorder([p.data for p in params] + [p.grad for p in params])
        with clip:
            torch.nn.utils.clip_grad_norm_(params, 1.0)
            clip.poll()
    return {"name": name, "shapes": shapes, "dtypes": [str(d).removeprefix("torch.") for d in dtypes],
            "state": state, "events": again.events, "clip_events": clip.events}


def main():
    f32, bf16 = torch.float32, torch.bfloat16
    same = [f32] * len(SHAPES)
    half = [bf16] * len(SHAPES)
    kinds = []
    for implementation, flags in (("loop", dict(foreach=False, fused=False)), ("foreach", dict(foreach=True)),
                                  ("fused", dict(fused=True))):
        kinds += [
            (f"sgd {implementation}", lambda p, f=flags: torch.optim.SGD(p, lr=0.1, **f)),
            (f"momentum {implementation}", lambda p, f=flags: torch.optim.SGD(p, lr=0.1, momentum=0.9, **f)),
            (f"adam {implementation}", lambda p, f=flags: torch.optim.Adam(p, **f)),
            (f"adamw {implementation}", lambda p, f=flags: torch.optim.AdamW(p, **f)),
        ]
    kinds += [
        ("adamw written-out", WrittenOutAdamW),
        ("lion loop", Lion),
        ("adafactor loop", lambda p: torch.optim.Adafactor(p, foreach=False)),
        ("adafactor foreach", lambda p: torch.optim.Adafactor(p, foreach=True)),
    ]
    results = [record(n, make, SHAPES, d) for n, make in kinds for d in (same, half)]
    for d in (f32, bf16):
        results.append(record("muon loop", lambda p: torch.optim.Muon(p), MATRICES, [d] * len(MATRICES)))
    from apollo_torch import APOLLOAdamW, random_projector
    from galore_torch import GaLoreAdamW
    random_projector.stable_randn = lambda shape, seed, device, dtype: torch.randn(shape, device=device, dtype=dtype)
    for d in (f32, bf16):
        results.append(record("galore loop", projected(GaLoreAdamW), MATRICES, [d] * len(MATRICES)))
        results.append(record("apollo loop", projected(APOLLOAdamW, proj="random", scale_type="channel"), MATRICES,
                              [d] * len(MATRICES)))
    print(json.dumps({"about": __doc__.strip(), "torch": torch.__version__, "steps": results}))


main()
