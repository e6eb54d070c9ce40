# SPDX-License-Identifier: Apache-2.0
"""Random chains of view operations and what PyTorch makes of them, for tst_view_step.

    python view_chains.py 400 7 > view_chains.json

A chain is {"shape", "stride" of the base (dense, any order), "steps"}; a step is [text, size, stride, offset,
flags, storage, values] or [text, message]. Flags: contiguous, channels_last, channels_last_3d, dense, new storage,
one character each (1, 0, or - where there is none). Values: what a tensor of 0, 1, 2, ... holds then, when few.
"""
import json
import random
import sys

import torch


def dims(rank, r):
    bound = max(rank, 1)
    return r.randint(-bound - (r.random() < 0.04), bound - 1 + (r.random() < 0.04))


def factors(n, r):
    shape = []
    while n > 1 and len(shape) < 5 and r.random() < 0.8:
        divisors = [d for d in range(1, n + 1) if n % d == 0]
        shape.append(r.choice(divisors))
        n //= shape[-1]
    shape.insert(r.randint(0, len(shape)), n)
    if r.random() < 0.25:
        shape.insert(r.randint(0, len(shape)), 1)
    if r.random() < 0.3:
        shape[r.randrange(len(shape))] = -1
    if r.random() < 0.05:
        shape.append(2)
    return shape


def operation(t, r):
    """The text of an operation, and a function that does it."""
    n, name = t.dim(), r.choice(NAMES)
    if n == 0 and name == "unflatten":
        name = "view"
    size = lambda d: t.shape[d] if -n <= d < n else 3
    d = dims(n, r)
    if name == "transpose":
        a = (dims(n, r), dims(n, r))
        return f"transpose({a[0]},{a[1]})", lambda: t.transpose(*a)
    if name == "permute":
        order = list(range(n))
        r.shuffle(order)
        if r.random() < 0.2:
            order = [i - n for i in order]
        if r.random() < 0.05 and order:
            order[0] = order[-1]
        return f"permute({','.join(map(str, order))})", lambda: t.permute(order)
    if name == "movedim":
        a = (dims(n, r), dims(n, r))
        return f"movedim({a[0]},{a[1]})", lambda: t.movedim(*a)
    if name == "narrow":
        s = size(d)
        start = r.randint(-s, s + (r.random() < 0.1))
        length = r.randint(0, max(0, s - (start + s if start < 0 else start))) + (r.random() < 0.05)
        return f"narrow({d},{start},{length})", lambda: t.narrow(d, start, length)
    if name == "select":
        i = r.randint(-size(d), max(-size(d), size(d) - (r.random() > 0.05)))
        return f"select({d},{i})", lambda: t.select(d, i)
    if name == "slice":
        a = [r.choice([None, r.randint(-6, 8)]), r.choice([None, r.randint(-6, 8)]), r.choice([1, 1, 2, 3, 0])]
        text = ",".join("none" if x is None else str(x) for x in a)
        return f"slice({d},{text})", lambda: torch.ops.aten.slice.Tensor(t, d, *a)
    if name == "expand":
        sizes = [r.choice([-1, s]) if s != 1 else r.choice([1, 1, 2, 3, -1, 0]) for s in t.shape]
        sizes = [r.randint(1, 3) for _ in range(r.choice([0, 0, 1, 2]))] + sizes
        if r.random() < 0.05 and sizes:
            sizes[r.randrange(len(sizes))] = 7
        return f"expand({','.join(map(str, sizes))})", lambda: t.expand(sizes)
    if name == "unsqueeze":
        d = r.randint(-n - 1, n)
        return f"unsqueeze({d})", lambda: t.unsqueeze(d)
    if name == "squeeze":
        return ("squeeze()", lambda: t.squeeze()) if r.random() < 0.5 else (f"squeeze({d})", lambda: t.squeeze(d))
    if name in ("view", "reshape"):
        shape = factors(t.numel(), r) if t.numel() > 0 else [r.choice([0, 2, -1]), r.choice([0, 0, 3])]
        return f"{name}({','.join(map(str, shape))})", lambda: getattr(t, name)(shape)
    if name == "flatten":
        a = (dims(n, r), dims(n, r))
        return f"flatten({a[0]},{a[1]})", lambda: t.flatten(*a)
    if name == "unflatten":
        shape = factors(size(d), r) if size(d) > 0 else [0, 2]
        return f"unflatten({d},[{','.join(map(str, shape))}])", lambda: t.unflatten(d, shape)
    if name == "unfold":
        w = r.randint(0, size(d) + (r.random() < 0.1))
        s = r.randint(1 - (r.random() < 0.05), 3)
        return f"unfold({d},{w},{s})", lambda: t.unfold(d, w, s)
    if name == "diagonal":
        a = (r.randint(-4, 4), dims(n, r), dims(n, r))
        return f"diagonal({a[0]},{a[1]},{a[2]})", lambda: t.diagonal(*a)
    if name == "as_strided":
        k = r.randint(0, 3)
        sizes, strides = [r.randint(0, 4) for _ in range(k)], [r.randint(0, 6) for _ in range(k)]
        if r.random() < 0.1 and k:
            strides[0] = -1
        offset = r.choice([None, r.randint(0, 6)])
        tail = "" if offset is None else f",{offset}"
        return f"as_strided({sizes},{strides}{tail})".replace(" ", ""), lambda: t.as_strided(sizes, strides, offset)
    if name == "chunk":
        a = (r.randint(1, 4), dims(n, r))
        i = r.randint(0, 3)
        return f"chunk({a[0]},{a[1]},{i})", lambda: t.chunk(*a)[i]
    if name == "flip":
        some = r.sample(range(n), r.randint(0, n))
        return f"flip({','.join(map(str, some))})", lambda: t.flip(some)
    if name == "repeat":
        times = [r.randint(0 if r.random() < 0.1 else 1, 2) for _ in range(n + r.choice([0, 0, 1]))]
        return f"repeat({','.join(map(str, times))})", lambda: t.repeat(times)
    if name in ("contiguous", "clone"):
        f = r.choice(["", "", "channels_last", "channels_last_3d"])
        if not f:
            return f"{name}()", lambda: getattr(t, name)()
        return f"{name}({f})", lambda: getattr(t, name)(memory_format=getattr(torch, f))
    if name == "sum_dim":
        keep = r.random() < 0.5
        return f"sum_dim({d},{str(keep).lower()})", lambda: t.sum(d, keepdim=keep)
    return {"t": ("t()", lambda: t.t()), "mT": ("swap_last_two()", lambda: t.transpose(-1, -2)),
            "neg": ("neg()", lambda: -t), "add_contig": ("add_contig()", lambda: t + torch.zeros(t.shape, dtype=t.dtype)),
            "empty_like": ("clone()", lambda: t.clone())}[name]


NAMES = ("transpose permute permute movedim narrow select slice slice expand unsqueeze squeeze view view reshape reshape "
         "flatten unflatten unfold diagonal as_strided chunk flip repeat contiguous contiguous clone sum_dim t mT neg "
         "add_contig empty_like").split()


def flag(x):
    return "-" if x is None else str(int(x))


def recorded(text, t, old):
    flags = [t.is_contiguous(),
             t.is_contiguous(memory_format=torch.channels_last) if t.dim() == 4 else None,
             t.is_contiguous(memory_format=torch.channels_last_3d) if t.dim() == 5 else None,
             torch.ops.aten.is_non_overlapping_and_dense(t),
             t.untyped_storage()._cdata != old.untyped_storage()._cdata]
    values = [int(x) for x in t.flatten().tolist()] if 0 < t.numel() <= 48 else None
    return [text, list(t.shape), list(t.stride()), t.storage_offset(), "".join(map(flag, flags)),
            t.untyped_storage().nbytes() // 4, values]


def chain(r):
    shape = [r.choice([1, 1, 2, 2, 3, 3, 4, 5, 6, 0 if r.random() < 0.2 else 2]) for _ in range(r.choice([0, 1, 2, 2, 3, 3, 4, 4, 4, 5, 5]))]
    numel = 1
    for s in shape:
        numel *= s
    order = list(range(len(shape)))
    if r.random() < 0.3:
        r.shuffle(order)
    base = torch.arange(numel, dtype=torch.float32).reshape([shape[i] for i in order])
    t = base.permute([order.index(i) for i in range(len(shape))]) if shape else base
    out = {"shape": shape, "stride": list(t.stride()), "steps": []}
    for _ in range(r.randint(1, 8)):
        text, run = operation(t, r)
        try:
            new = run()
        except (RuntimeError, IndexError, ValueError, TypeError) as error:
            out["steps"].append([text, type(error).__name__ + ": " + str(error).split("\n")[0]])
            continue
        if new.dim() > 8 or new.numel() > 4000:
            continue
        out["steps"].append(recorded(text, new, t))
        t = new
    return out


def main():
    count, seed = int(sys.argv[1]), int(sys.argv[2])
    r = random.Random(seed)
    torch.set_num_threads(1)
    lines = []
    for _ in range(count):
        one = chain(r)
        if one["steps"]:
            lines.append(json.dumps(one, separators=(",", ":")))
    print('{"torch":"%s","chains":[\n%s\n]}' % (torch.__version__, ",\n".join(lines)))


main()
