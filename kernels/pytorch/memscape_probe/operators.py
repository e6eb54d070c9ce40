# SPDX-License-Identifier: Apache-2.0
"""What Python calls of torch are in a network file's terms (exporter.py): each handler gets the call after it ran and
emits operators of the file. Names are those of methods and functions without underscores: x.add_(y), x + y, torch.add.

Operators of the file: core/network/network_file.h lists them."""
import types

import torch
import torch.nn.functional as F

# One operand, by what autograd keeps (derivatives.yaml). The first have rules of their own in the simulator.
UNARY = {"relu", "gelu", "silu", "hardswish", "hardtanh", "relu6", "leaky_relu", "elu", "mish", "softplus", "sigmoid", "tanh",
         "exp", "log", "sqrt", "rsqrt", "square", "neg"}
KEEPS_INPUT = {"sin", "cos", "tan", "abs", "absolute", "clamp", "clip", "clamp_min", "clamp_max", "log1p", "log2", "log10",
               "erf", "selu", "celu", "hardsigmoid", "hardshrink", "softshrink", "threshold", "logsigmoid", "nan_to_num",
               "asin", "acos", "atan", "sinh", "cosh", "softsign", "sinc", "prelu", "rrelu", "cumprod", "amax", "amin",
               "std", "norm", "linalg_norm", "linalg_vector_norm", "logsumexp", "l1_loss", "smooth_l1_loss", "huber_loss",
               "binary_cross_entropy_with_logits", "binary_cross_entropy", "pairwise_distance", "prod"}
KEEPS_RESULT = {"reciprocal", "expm1", "erfinv"}
KEEPS_NOTHING = {"roll", "flip", "fliplr", "flipud", "repeat", "tile", "tril", "triu", "cumsum", "repeat_interleave", "pad",
                 "pixel_shuffle", "pixel_unshuffle", "unfold", "fold", "take", "round", "floor", "ceil", "sign",
                 "trace", "avg_pool1d", "lerp"}
# Temporaries of the backward formula that live beside its result: grad * x.cos().
TEMPORARIES = {"sin": 1, "abs": 1, "absolute": 1, "log1p": 1, "expm1": 1, "cos": 2}
# Their backward makes nothing but these and a gradient of the input.
EXACT = {*TEMPORARIES, "roll", "flip", "fliplr", "flipud", "pixel_shuffle", "pixel_unshuffle"}
VIEWS = {"view", "flatten", "unflatten", "squeeze", "unsqueeze", "view_as", "ravel", "reshape", "reshape_as"}
CASTS = {"to": None, "type": None, "type_as": None, "float": torch.float32, "half": torch.float16, "double": torch.float64,
         "bfloat16": torch.bfloat16, "long": torch.int64, "int": torch.int32, "bool": torch.bool}
BINARY = {"add": "add", "sub": "sub", "subtract": "sub", "mul": "mul", "multiply": "mul", "div": "div", "divide": "div",
          "true_divide": "div", "truediv": "div"}
REFLECTED = {"radd": "add", "rmul": "mul", "rsub": "sub"}
IN_PLACE_NAMES = {"i" + name for name in ("add", "sub", "mul", "div", "truediv", "pow")}
FACTORIES = {f"{word}_like" for word in ("zeros", "ones", "empty", "full", "rand", "randn", "randint")} \
    | {f"new_{word}" for word in ("zeros", "ones", "empty", "full", "tensor")}
WRITES = {"copy", "zero", "fill"}  # into all of a tensor
IGNORED = {"requires_grad", "retain_grad", "len", "repr", "format", "record_stream"}


def name_of(function):
    """(name without underscores, whether it works in place)"""
    name = getattr(function, "__name__", "")
    plain = name.strip("_")
    in_place = (name.endswith("_") and not name.endswith("__")) or (name.startswith("__") and plain in IN_PLACE_NAMES)
    return (plain[1:] if plain in IN_PLACE_NAMES and name.startswith("__") else plain), in_place


def is_composite(function):
    """Written in Python of torch calls: its body is followed."""
    return (isinstance(function, types.FunctionType) and name_of(function)[0] not in HANDLERS
            and function.__module__ in ("torch.nn.functional", "torch.functional", "torch._tensor"))


def body_of(function):
    """The same function that does not ask whether a mode watches it, but whose calls do."""
    inner = getattr(function, "__wrapped__", function)
    if not isinstance(inner, types.FunctionType):
        return function
    no = lambda *_: False
    scope = dict(inner.__globals__, has_torch_function=no, has_torch_function_unary=no, has_torch_function_variadic=no)
    copy = types.FunctionType(inner.__code__, scope, inner.__name__, inner.__defaults__, inner.__closure__)
    copy.__kwdefaults__ = inner.__kwdefaults__
    return copy


def _argument(args, kwargs, at, name, default=None):
    return args[at] if len(args) > at else kwargs.get(name, default)


def _dim(x, dim):
    return dim + x.dim() if dim < 0 else dim


# --- handlers: (trace, name, args, kwargs, result, in_place) ---------------------------------------------------
def _unary(t, name, args, kwargs, result, in_place):
    name = {"relu6": "hardtanh"}.get(name, name)
    t.emit(name, [args[0]], result, in_place=in_place or result is args[0])


def _binary(t, name, args, kwargs, result, in_place):
    kind = BINARY.get(name) or REFLECTED[name]
    if in_place and args[0].dim() == 0 and not args[0].is_floating_point():
        return  # batch norm's count of batches, which its own rule makes
    x, y = args[0], _argument(args, kwargs, 1, "other")
    if name in REFLECTED:
        x, y = y, x
    tensors = [v for v in (x, y) if isinstance(v, torch.Tensor)]
    if len(tensors) == 2:
        return t.emit(kind, [x, y], result, in_place=in_place)
    t.emit({"add": "shift", "sub": "shift", "mul": "scale", "div": "scale"}[kind], tensors, result, in_place=in_place)


def _power(t, name, args, kwargs, result, in_place):
    exponent = _argument(args, kwargs, 1, "exponent")
    if isinstance(args[0], torch.Tensor) and not isinstance(exponent, torch.Tensor):
        return t.emit("pow", [args[0]], result, in_place=in_place)
    t.emit_other(name, args, kwargs, result, "inputs and result")


def _view(t, name, args, kwargs, result, in_place):
    t.emit("reshape" if name in ("reshape", "reshape_as", "flatten", "ravel") else "view", [args[0]], result)


def _permuted(t, x, order, result):
    t.emit("permute", [x], result, order=order)


def _transpose(t, name, args, kwargs, result, in_place):
    x = args[0]
    a, b = (_dim(x, _argument(args, kwargs, i, f"dim{i - 1}")) for i in (1, 2))
    order = list(range(x.dim()))
    order[a], order[b] = order[b], order[a]
    _permuted(t, x, order, result)


def _t(t, name, args, kwargs, result, in_place):
    x = args[0]
    order = list(range(x.dim()))
    if name in ("mT", "mH"):
        order[-1], order[-2] = order[-2], order[-1]
    else:
        order.reverse()
    _permuted(t, x, order, result)


def _permute(t, name, args, kwargs, result, in_place):
    dims = _argument(args, kwargs, 1, "dims")
    dims = args[1:] if isinstance(dims, int) else dims
    _permuted(t, args[0], [_dim(args[0], d) for d in dims], result)


def _movedim(t, name, args, kwargs, result, in_place):
    x = args[0]
    listed = lambda v: [v] if isinstance(v, int) else list(v)
    source = [_dim(x, d) for d in listed(_argument(args, kwargs, 1, "source"))]
    target = [_dim(x, d) for d in listed(_argument(args, kwargs, 2, "destination"))]
    rest = iter(d for d in range(x.dim()) if d not in source)
    _permuted(t, x, [source[target.index(i)] if i in target else next(rest) for i in range(x.dim())], result)


def _expand(t, name, args, kwargs, result, in_place):
    t.emit("expand", [args[0]], result)


def _parts(t, name, args, kwargs, result, in_place):
    x = args[0]
    if name == "unbind":
        dim = _argument(args, kwargs, 1, "dim", 0)
    else:
        dim = _argument(args, kwargs, 2, "dim", 0)
    t.emit("unbind" if name == "unbind" else "split", [x], list(result), dim=_dim(x, dim))


def _iterated(t, name, args, kwargs, result, in_place):
    """`for part in x`, `a, b = x`: x.unbind(0)."""
    parts = list(result)
    t.emit("unbind", [args[0]], parts, dim=0)
    return iter(parts)


def _getitem(t, name, args, kwargs, result, in_place):
    x, index = args
    index = index if isinstance(index, tuple) else (index,)
    tensors = [i for i in index if isinstance(i, (torch.Tensor, list))]
    steps, dim, given = [], 0, sum(1 for i in index if i is not None and i is not Ellipsis)
    for i in index:
        if i is Ellipsis:
            dim += x.dim() - given
        elif i is None:
            steps.append(("view", dim, None))
            dim += 1
        elif isinstance(i, bool) or isinstance(i, (torch.Tensor, list)):
            dim += 1
        elif isinstance(i, int):
            steps.append(("select", dim, None))
        else:
            steps.append(("narrow", dim, i))
            dim += 1
    now = x
    with torch._C.DisableTorchFunction():
        for at, (kind, dim, piece) in enumerate(steps):
            if kind == "narrow":
                full = tuple(slice(None) for _ in range(dim)) + (piece,)
                part = now[full]
                if part.shape == now.shape and now is x and at + 1 == len(steps) and not tensors:
                    t.emit("view", [now], result)
                    return
            else:
                part = now.select(dim, 0) if kind == "select" else now.unsqueeze(dim)
            is_last = at + 1 == len(steps) and not tensors
            part = result if is_last else part
            t.emit(kind, [now], part, **({} if kind == "view" else {"dim": dim}))
            now = part
    if now is not result:
        if tensors:
            t.emit("index", [now] + [i for i in tensors if isinstance(i, torch.Tensor)], result)
        else:
            t.emit("view", [now], result)


def _narrow(t, name, args, kwargs, result, in_place):
    t.emit("narrow", [args[0]], result, dim=_dim(args[0], _argument(args, kwargs, 1, "dim")))


def _select(t, name, args, kwargs, result, in_place):
    t.emit("select", [args[0]], result, dim=_dim(args[0], _argument(args, kwargs, 1, "dim")))


def _cast(t, name, args, kwargs, result, in_place):
    if result.dtype != args[0].dtype or result is args[0]:
        t.emit("cast", [args[0]], result)
    else:
        t.emit("clone", [args[0]], result)


def _joined(t, name, args, kwargs, result, in_place):
    parts = list(_argument(args, kwargs, 0, "tensors"))
    dim = _argument(args, kwargs, 1, "dim", 0)
    stack = name == "stack"
    parts = [p for p in parts if stack or p.numel() > 0 or p.dim() > 1]
    t.emit("stack" if stack else "cat", parts, result, dim=_dim(result, dim))


def _where(t, name, args, kwargs, result, in_place):
    if name == "masked_fill":
        mask, values = _argument(args, kwargs, 1, "mask"), [args[0]]
    else:
        mask, values = args[0], list(args[1:])
    tensors = [v for v in values if isinstance(v, torch.Tensor) and (v.dim() > 0 or t.needs(v))]
    if len(tensors) == 1 and not in_place:
        return t.emit("masked_fill" if name == "masked_fill" else "where", [tensors[0], mask], result)
    t.emit_other(name, args, kwargs, result, "nothing" if in_place else "inputs", in_place)


def _dropout(t, name, args, kwargs, result, in_place):
    p = _argument(args, kwargs, 1, "p", 0.5)
    t.emit("dropout", [args[0]], result, p=float(p), in_place=result is args[0])


def _reduced(t, name, args, kwargs, result, in_place):
    x = args[0]
    dim = _argument(args, kwargs, 1, "dim", None)
    if isinstance(dim, torch.Tensor):
        return t.emit_other(name, args, kwargs, result, "inputs")
    values = result[0] if isinstance(result, tuple) else result
    keep = values.dim() == x.dim() and x.dim() > 0 and dim is not None
    dims = [] if dim is None else [_dim(x, d) for d in ([dim] if isinstance(dim, int) else dim)]
    kind = {"mean": "mean", "sum": "sum", "max": "max", "min": "max", "var": "var"}[name]
    if kind == "max" and not dims:
        return t.emit_other(name, args, kwargs, result, "inputs")
    t.emit(kind, [x], values, dims=dims, keep=keep)
    if values is not result:
        t.emit("fill", [], result[1])


def _softmax(t, name, args, kwargs, result, in_place):
    wanted = kwargs.get("dtype")
    t.emit("log_softmax" if name == "log_softmax" else "softmax", [args[0]], result, converts=wanted is not None)


def _norm(t, name, args, kwargs, result, in_place):
    inputs = [args[0]]
    if name == "layer_norm":
        shape = _argument(args, kwargs, 1, "normalized_shape")
        weight, bias = _argument(args, kwargs, 2, "weight"), _argument(args, kwargs, 3, "bias")
        return t.emit("layer_norm", inputs + [v for v in (weight, bias) if v is not None], result, dims=len(list(shape)),
                      affine=weight is not None)
    if name == "rms_norm":
        weight = _argument(args, kwargs, 2, "weight")
        if weight is None:
            return t.emit_other(name, args, kwargs, result, "inputs")
        return t.emit("rms_norm", inputs + [weight], result)
    weight, bias = _argument(args, kwargs, 2, "weight"), _argument(args, kwargs, 3, "bias")
    if weight is None or bias is None:
        return t.emit_other(name, args, kwargs, result, "inputs")
    t.emit("group_norm", inputs + [weight, bias], result, groups=int(_argument(args, kwargs, 1, "num_groups")))


def _batch_norm(t, name, args, kwargs, result, in_place):
    mean, var = _argument(args, kwargs, 1, "running_mean"), _argument(args, kwargs, 2, "running_var")
    weight, bias = _argument(args, kwargs, 3, "weight"), _argument(args, kwargs, 4, "bias")
    if any(v is None for v in (mean, var, weight, bias)):
        return t.emit_other(name, args, kwargs, result, "inputs")
    t.emit("batch_norm", [args[0], weight, bias, mean, var], result)


def _linear(t, name, args, kwargs, result, in_place):
    bias = _argument(args, kwargs, 2, "bias")
    weight = _argument(args, kwargs, 1, "weight")
    t.emit("linear", [args[0], weight] + ([bias] if bias is not None else []), result)


def _matmul(t, name, args, kwargs, result, in_place):
    x, y = args[0], _argument(args, kwargs, 1, "other") if len(args) > 1 or "other" in kwargs else kwargs.get("mat2")
    if name == "rmatmul":
        x, y = y, x
    if x.dim() < 2 or y.dim() < 2:
        return t.emit_other(name, args, kwargs, result, "inputs")
    t.emit({"mm": "mm", "bmm": "bmm"}.get(name, "matmul"), [x, y], result)


def _addmm(t, name, args, kwargs, result, in_place):
    kind = "addmm" if name == "addmm" and args[0].dim() == 1 else None
    if kind is None:
        return t.emit_other(name, args, kwargs, result, "inputs")
    t.emit("addmm", [args[1], _argument(args, kwargs, 2, "mat2"), args[0]], result)


def _einsum(t, name, args, kwargs, result, in_place):
    equation, operands = args[0], args[1:]
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = operands[0]
    equation = equation.replace(" ", "")
    left = equation.partition("->")[0].split(",")
    simple = (len(operands) == 2 and "->" in equation and "." not in equation
              and all(len(set(part)) == len(part) for part in left))
    if simple:
        right, other = equation.partition("->")[2], [set(left[1]), set(left[0])]
        simple = all(set(part) <= (set(right) | other[i]) for i, part in enumerate(left))
    if not simple:
        return t.emit_other(name, (list(operands),), {}, result, "inputs")
    t.emit("einsum", list(operands), result, equation=equation)


def _convolution(t, name, args, kwargs, result, in_place):
    weight, bias = _argument(args, kwargs, 1, "weight"), _argument(args, kwargs, 2, "bias")
    groups = _argument(args, kwargs, 7 if "transpose" in name else 6, "groups", 1)
    t.emit("convolution", [args[0], weight] + ([bias] if bias is not None else []), result, groups=int(groups))


def _embedding(t, name, args, kwargs, result, in_place):
    t.emit("embedding", [args[0], _argument(args, kwargs, 1, "weight")], result)


def _lookup(t, name, args, kwargs, result, in_place):
    dim, index = _argument(args, kwargs, 1, "dim"), _argument(args, kwargs, 2, "index")
    t.emit("gather" if name == "gather" else "index_select", [args[0], index], result, dim=_dim(args[0], dim))


def _pool(t, name, args, kwargs, result, in_place):
    values = result[0] if isinstance(result, tuple) else result
    kind = "max_pool" if name.startswith("max") or "adaptive_max" in name else "adaptive_avg_pool" \
        if name.startswith("adaptive") else "avg_pool"
    t.emit(kind, [args[0]], values)


def _interpolate(t, name, args, kwargs, result, in_place):
    t.emit("interpolate", [args[0]], result, bilinear="linear" in str(kwargs.get("mode", "nearest")))


def _cross_entropy(t, name, args, kwargs, result, in_place):
    target = _argument(args, kwargs, 1, "target")
    plain = _argument(args, kwargs, 2, "weight") is None and not kwargs.get("label_smoothing") \
        and not target.is_floating_point() and result.dim() == 0
    if not plain:
        return t.emit_other(name, args, kwargs, result, "inputs and result")
    t.emit("nll_loss" if name == "nll_loss" else "cross_entropy", [args[0], target], result)


def _mse(t, name, args, kwargs, result, in_place):
    if result.dim() > 0:
        return t.emit_other(name, args, kwargs, result, "inputs")
    t.emit("mse_loss", [args[0], _argument(args, kwargs, 1, "target")], result)


def _attention(t, name, args, kwargs, result, in_place):
    mask = _argument(args, kwargs, 3, "attn_mask")
    t.emit("attention", list(args[:3]) + ([mask] if mask is not None else []), result,
           p=float(_argument(args, kwargs, 4, "dropout_p", 0.0)), causal=bool(_argument(args, kwargs, 5, "is_causal", False)))


def _diff(t, name, args, kwargs, result, in_place):
    """The difference of what a cat() joined, when something is put before or behind."""
    x, dim = args[0], _dim(args[0], _argument(args, kwargs, 2, "dim", -1))
    parts = [p for p in (_argument(args, kwargs, 3, "prepend"), _argument(args, kwargs, 4, "append")) if p is not None]
    if t.needs(x) or _argument(args, kwargs, 1, "n", 1) != 1:
        return t.emit_other(name, args, kwargs, result, "nothing")
    shape = list(x.shape)
    shape[dim] += sum(p.shape[dim] for p in parts)
    joined = t.scratch(x, shape) if parts else None
    t.emit("fill", [], result)
    if parts:
        t.done(joined)


def _plain(kind):
    return lambda t, name, args, kwargs, result, in_place: t.emit(kind, [args[0]], result)


def _keeps(what):
    return lambda t, name, args, kwargs, result, in_place: t.emit_other(name, args, kwargs, result, what, in_place, known=True)


def _setitem(t, name, args, kwargs, result, in_place):
    """x[...] = value. Its backward makes a whole gradient of x, and one of what was written (CopySlices)."""
    _overwritten(t, "x[...] = ...", (args[0], args[2]), kwargs, args[0], True)


def _overwritten(t, name, args, kwargs, result, in_place):
    """x.copy_(value), x.zero_(). Without a gradient they make nothing."""
    if t.is_differentiated(args[:2]):
        t.note_view(args[0], name)
        t.emit_other(name, args[:2], {}, result, "nothing", True)


def _made(t, name, args, kwargs, result, in_place):
    t.emit("fill", [], result)


def _chunk(t, name, args, kwargs, result, in_place):
    t.emit("split", [args[0]], list(result), dim=_dim(args[0], _argument(args, kwargs, 2, "dim", 0)))


def _reshaped(t, name, args, kwargs, result, in_place):
    t.emit("contiguous", [args[0]], result)


HANDLERS = {
    **{name: _keeps("inputs") for name in KEEPS_INPUT}, **{name: _keeps("result") for name in KEEPS_RESULT},
    **{name: _keeps("nothing") for name in KEEPS_NOTHING},
    "setitem": _setitem, **{name: _overwritten for name in WRITES}, **{name: _made for name in FACTORIES}, **{name: _unary for name in UNARY}, **{name: _binary for name in [*BINARY, *REFLECTED]},
    **{name: _view for name in VIEWS}, **{name: _cast for name in CASTS},
    "pow": _power, "transpose": _transpose, "swapaxes": _transpose, "swapdims": _transpose, "t": _t, "T": _t, "mT": _t,
    "permute": _permute, "movedim": _movedim, "moveaxis": _movedim, "expand": _expand, "expand_as": _expand,
    "broadcast_to": _expand, "split": _parts, "split_with_sizes": _parts, "tensor_split": _parts, "unbind": _parts,
    "chunk": _chunk, "iter": _iterated, "getitem": _getitem, "narrow": _narrow, "select": _select, "detach": _plain("detach"),
    "contiguous": _reshaped, "clone": _plain("clone"), "cat": _joined, "concat": _joined, "concatenate": _joined,
    "stack": _joined, "where": _where, "masked_fill": _where, "dropout": _dropout, "dropout1d": _dropout,
    "dropout2d": _dropout, "alpha_dropout": _dropout, "feature_dropout": _dropout, "mean": _reduced, "sum": _reduced,
    "max": _reduced, "min": _reduced, "var": _reduced, "softmax": _softmax, "log_softmax": _softmax, "layer_norm": _norm,
    "rms_norm": _norm, "group_norm": _norm, "batch_norm": _batch_norm, "linear": _linear, "matmul": _matmul,
    "rmatmul": _matmul, "mm": _matmul, "bmm": _matmul, "addmm": _addmm, "baddbmm": _addmm, "einsum": _einsum,
    "conv1d": _convolution, "conv2d": _convolution, "conv3d": _convolution, "conv_transpose1d": _convolution,
    "conv_transpose2d": _convolution, "conv_transpose3d": _convolution, "embedding": _embedding,
    "index_select": _lookup, "gather": _lookup, "max_pool1d": _pool, "max_pool2d": _pool, "max_pool3d": _pool,
    "avg_pool2d": _pool, "avg_pool3d": _pool, "adaptive_avg_pool1d": _pool, "adaptive_avg_pool2d": _pool,
    "adaptive_avg_pool3d": _pool, "adaptive_max_pool2d": _pool, "interpolate": _interpolate,
    "cross_entropy": _cross_entropy, "nll_loss": _cross_entropy, "mse_loss": _mse,
    "scaled_dot_product_attention": _attention, "diff": _diff,
}
