# SPDX-License-Identifier: Apache-2.0
"""Writes any nn.Module as a network file, from which Memscape predicts every plan of training it:

    import memscape_probe as mp
    mp.export(model, example_inputs, "net.json", loss=lambda output: output.loss)
    memscape-cli predict training-memory model=./net.json batch=64 optimizer=adamw

The model is run on fake tensors (shapes without memory, torch ≥ 2.1): each torch call that it makes becomes an operator,
each Python variable that dies a `free`, each module an `enter` and a `leave`. It runs five times, with two batch sizes,
two sequence lengths and in bfloat16: what changes between them says how sizes and types follow. A size of the file is
a number, or [a, b, c, d] for a + b·batch + c·sequence + d·batch·sequence; a type may be "weights".

The format in full: core/network/network_file.h."""
import contextlib
import inspect
import json
import os
import tempfile
import weakref
from collections.abc import Mapping

import torch
from torch.overrides import TorchFunctionMode

from . import operators
from .problem import Problem

VERSION = 1


class ExportError(Problem):
    def __str__(self):
        return f"{self.message}. {self.hint[:1].upper()}{self.hint[1:]}."


def export(model, example_inputs, path, loss=None, targets=(), batch_dim=0, sequence_dim="auto"):
    """Writes the network file and returns its assumptions.

    example_inputs: a tensor, a tuple of the model's arguments, or a dictionary of them by name. loss(output, *targets)
    makes a number of what the model returns; None: its `.loss`, or the first number of a tuple, when there is one.
    targets: tensors like those of the training loop. batch_dim: the dimension of all of them that is the batch;
    sequence_dim: the one that is the sequence, None when there is none, "auto": 1 when an input holds integers."""
    _check_torch()
    inputs = _named(model, example_inputs)
    sizes = _Sizes(inputs, targets, batch_dim, sequence_dim)
    assumptions = []
    runs = _runs(model, loss, sizes, assumptions)
    document = _document(model, runs, sizes, assumptions)
    _write(path, document)
    return document["assumptions"]


def _check_torch():
    version = tuple(int(part) for part in str(torch.__version__).split("+")[0].split(".")[:2] if part.isdigit())
    if version < (2, 1):
        raise ExportError("probe.torch", f"export needs torch 2.1 or newer; this is {torch.__version__}",
                      "choose a Python with a newer torch, or record the program with memscape_probe.record")


# --- inputs and their sizes -----------------------------------------------------------------------------------
def _named(model, example):
    if isinstance(example, dict):
        return dict(example)
    values = (example,) if isinstance(example, torch.Tensor) else tuple(example)
    names = list(inspect.signature(model.forward).parameters)
    return {(names[i] if i < len(names) and not names[i].startswith("arg") else f"input{i}"): v
            for i, v in enumerate(values)} if len(names) >= len(values) else {f"input{i}": v for i, v in enumerate(values)}


class _Sizes:
    """How the tensors of a batch are made larger."""

    def __init__(self, inputs, targets, batch_dim, sequence_dim):
        self.inputs, self.targets = inputs, tuple(targets)
        tensors = [v for v in list(inputs.values()) + list(self.targets) if isinstance(v, torch.Tensor)]
        with_batch = [v for v in tensors if v.dim() > batch_dim]
        if not with_batch:
            raise ExportError("export.inputs", "no example input has a batch dimension",
                          "give the model's arguments as tensors whose first dimension is the batch")
        self.batch_dim, self.batch = batch_dim, with_batch[0].shape[batch_dim]
        integers = [v for v in inputs.values() if isinstance(v, torch.Tensor) and v.dim() == 2
                    and not v.is_floating_point()]
        if sequence_dim == "auto":
            sequence_dim = 1 if integers else None
        self.sequence_dim = sequence_dim
        self.sequence = next((v.shape[sequence_dim] for v in integers + with_batch
                              if sequence_dim is not None and v.dim() > sequence_dim), 0) if sequence_dim is not None else 0

    def shape(self, tensor, batch, sequence):
        shape = list(tensor.shape)
        if len(shape) > self.batch_dim and shape[self.batch_dim] % self.batch == 0:
            shape[self.batch_dim] = shape[self.batch_dim] // self.batch * batch
        if self.sequence and len(shape) > self.sequence_dim and shape[self.sequence_dim] == self.sequence:
            shape[self.sequence_dim] = sequence
        return shape


# --- one run --------------------------------------------------------------------------------------------------
class _Trace(TorchFunctionMode):
    """The events of one run: ["op", fields], ["free", id], ["enter", path], ["leave", id of the result]."""

    def __init__(self, trained):
        super().__init__()
        self.events, self.constants, self.assumptions, self.writes = [], [], {}, {}
        self.views = set()      # numbers of tensors in another's memory
        self.count = 0
        self.known = {}         # id(tensor) -> [numbers]
        self.gradient = set()   # numbers that need one
        self.trained = trained
        self.keep = []          # constants: never freed
        self.modules = []
        self.is_open = True

    # --- tensors
    def give(self, tensor, lives=False):
        number = self.count
        self.count += 1
        key = id(tensor)
        if key in self.known:
            self.known[key].append(number)
            return number
        self.known[key] = [number]
        if lives:
            self.keep.append(tensor)
        else:
            weakref.finalize(tensor, self._died, key).atexit = False
        return number

    def _died(self, key):
        for number in self.known.pop(key, ()):
            if self.is_open:
                self.events.append(["free", number])

    def number(self, tensor):
        """Of a tensor that is used; one that nothing made is a constant of the model."""
        if id(tensor) not in self.known:
            number = self.give(tensor, lives=True)
            self.constants.append((number, tensor))
            return number
        return self.known[id(tensor)][-1]

    def is_differentiated(self, values):
        return torch.is_grad_enabled() and any(self.needs(v) for v in values)

    def note_view(self, tensor, what):
        """Of a write into a tensor that shares its memory with others, whose gradients are not followed."""
        if self.number(tensor) in self.views:
            where = self.modules[-1] if self.modules else "the model"
            self.writes.setdefault(what, f"{what} (in {where}) writes into a view: backward through the tensor it is a "
                                   "view of is predicted as if nothing had been written.")

    def needs(self, tensor):
        return isinstance(tensor, torch.Tensor) and self.number(tensor) in self.gradient

    # --- events
    def emit(self, kind, inputs, result, in_place=False, **attributes):
        results = result if isinstance(result, list) else [result]
        numbers = [self.number(x) for x in inputs]
        wants = torch.is_grad_enabled() and kind != "detach" and any(n in self.gradient for n in numbers)
        fields = {"op": kind, "in": numbers, "out": [], **attributes}
        if in_place:
            fields["in_place"] = True
        if any(n in self.gradient for n in numbers) and not torch.is_grad_enabled():
            fields["no_grad"] = True
        self.events.append(["op", fields])
        for each in results:
            number = self.give(each)
            if wants and each.is_floating_point():
                self.gradient.add(number)
            if numbers and kind != "detach" and _same_memory(inputs[0], each) and each is not inputs[0]:
                self.views.add(number)
            fields["out"].append({"id": number, "shape": list(each.shape), "dtype": str(each.dtype)[6:]})

    def scratch(self, like, shape):
        """A tensor within an operator; returns its number, for `done`."""
        number = self.count
        self.count += 1
        out = {"id": number, "shape": list(shape), "dtype": str(like.dtype)[6:]}
        self.events.append(["op", {"op": "fill", "in": [], "out": [out]}])
        return number

    def done(self, number):
        self.events.append(["free", number])

    def emit_other(self, name, args, kwargs, result, keeps, in_place=False, known=False):
        """An operator without a rule of its own. keeps: "inputs", "result", "inputs and result", "nothing"."""
        inputs = [v for v in _tensors(list(args) + list(kwargs.values()))]
        results = [v for v in _tensors([result])]
        if not results:
            return
        if not (torch.is_grad_enabled() and any(self.needs(v) for v in inputs)):
            shared = next((v for v in inputs if _same_memory(v, results[0])), None)
            return self.emit("alias" if shared is not None else "fill", [shared] if shared is not None else [], results)
        where = self.modules[-1] if self.modules else ""
        if not known or name not in operators.EXACT:
            self.assumptions.setdefault(name, (where, f"keeps its {keeps}" if keeps != "nothing" else "keeps nothing"))
        temporaries = operators.TEMPORARIES.get(name, 0)
        self.emit("other", inputs, results, in_place=in_place, name=name, keeps=keeps,
                  **({"temporaries": temporaries} if temporaries else {}))

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name, in_place = operators.name_of(function)
        if name == "get":  # a property: x.T, x.shape
            name = getattr(getattr(function, "__self__", None), "__name__", "")
        if operators.is_composite(function) and name not in operators.IGNORED:
            with self:
                return operators.body_of(function)(*args, **kwargs)
        result = function(*args, **kwargs)
        if name == "iter":
            return operators.HANDLERS[name](self, name, args, kwargs, result, False)
        if name == "setitem":
            operators.HANDLERS[name](self, name, args, kwargs, None, True)
            return result
        if name in operators.IGNORED or not any(True for _ in _tensors([result])):
            return result
        is_same = any(result is v for v in args)
        if is_same and not in_place and name not in operators.CASTS and name not in operators.UNARY:
            return result
        handler = operators.HANDLERS.get(name)
        if name in ("data", "real", "grad"):
            self.emit("detach", [args[0]], result)
        elif handler is not None and isinstance(_first(args, kwargs), (torch.Tensor, list, tuple, int, float, str)):
            handler(self, name, args, kwargs, result, in_place)
        else:
            self.emit_other(name or str(function), args, kwargs, result, "inputs and result", in_place)
        return result


def _first(args, kwargs):
    return args[0] if args else next(iter(kwargs.values()), None)


def _tensors(values):
    for v in values:
        if isinstance(v, torch.Tensor):
            yield v
        elif isinstance(v, (list, tuple)):
            yield from _tensors(v)
        elif isinstance(v, Mapping):
            yield from _tensors(v.values())


def _same_memory(a, b):
    try:
        return a.untyped_storage()._cdata == b.untyped_storage()._cdata
    except Exception:
        return False


@contextlib.contextmanager
def _watched_modules(model, trace):
    """Calls of the model's modules as events; layers, the like members of a list, are marked."""
    paths = {module: path for path, module in model.named_modules()}

    def enter(module, arguments):
        if module in paths:
            trace.modules.append(paths[module])
            trace.events.append(["enter", paths[module]])

    def leave(module, arguments, result):
        if module in paths:
            trace.modules.pop()
            first = next(_tensors([result]), None)
            number = trace.known.get(id(first), [None])[-1] if first is not None else None
            trace.events.append(["leave", number])

    from torch.nn.modules import module as nn_module
    handles = [nn_module.register_module_forward_pre_hook(enter), nn_module.register_module_forward_hook(leave)]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _names_die_alone():
    """Views do not keep the Python object of their base, which fake tensors otherwise do and real ones do not."""
    keys = torch._C.DispatchKeySet(torch._C.DispatchKey.ADInplaceOrView)
    return torch._C._ExcludeDispatchKeyGuard(keys)


class _Run:
    """What one run gave."""
    events = parameters = buffers = inputs = targets = output = loss = None


def _run(model, loss, sizes, batch, sequence, low=False):
    from torch._subclasses.fake_tensor import FakeTensorMode
    run = _Run()
    fakes = FakeTensorMode(allow_non_fake_inputs=True)
    own = {torch.float32, torch.float16, torch.bfloat16, torch.float64}

    def lowered(dtype):
        return torch.bfloat16 if low and dtype in own else dtype

    with fakes:
        def fake(tensor, shape=None):
            return torch.empty_strided(list(shape), _dense(shape), dtype=lowered(tensor.dtype), device=tensor.device) \
                if shape is not None else torch.empty_strided(tensor.shape, tensor.stride(), dtype=lowered(tensor.dtype),
                                                              device=tensor.device)
        values, parameters, buffers, seen = {}, [], [], {}
        for kind, named in (("p", model.named_parameters(remove_duplicate=False)),
                            ("b", model.named_buffers(remove_duplicate=False))):
            for name, tensor in named:
                if id(tensor) not in seen:
                    seen[id(tensor)] = fake(tensor) if kind == "p" else fake(tensor)
                    (parameters if kind == "p" else buffers).append((name, seen[id(tensor)], tensor))
                values[name] = seen[id(tensor)]
        inputs = {k: fake(v, sizes.shape(v, batch, sequence)) if isinstance(v, torch.Tensor) else v
                  for k, v in sizes.inputs.items()}
        targets = [fake(v, sizes.shape(v, batch, sequence)) for v in sizes.targets]
        trace = _Trace({name for name, _, tensor in parameters if tensor.requires_grad})
        run.parameters = [(trace.give(f, lives=True), name, f, t.requires_grad) for name, f, t in parameters]
        run.buffers = [(trace.give(f, lives=True), name, f) for name, f, _ in buffers]
        run.inputs = [(trace.give(f, lives=True), name, f) for name, f in inputs.items() if isinstance(f, torch.Tensor)]
        run.targets = [(trace.give(f, lives=True), f"target{i}", f) for i, f in enumerate(targets)]
        trace.gradient = {number for number, _, _, trained in run.parameters if trained}
        with _watched_modules(model, trace), _names_die_alone(), trace:
            output = torch.func.functional_call(model, values, (), inputs) if _takes_names(model, inputs) \
                else torch.func.functional_call(model, values, tuple(inputs.values()))
            value, result, run.returns_loss = _loss_of(output, loss, targets, trace)
            run.loss = trace.known[id(value)][-1] if value is not None else None
            run.output = trace.known.get(id(result), [None])[-1] if result is not None else None
            trace.is_open = False
        run.trace, run.events = trace, trace.events
        run.constants = trace.constants
    return run


def _dense(shape):
    strides, step = [], 1
    for size in reversed(list(shape)):
        strides.insert(0, step)
        step *= max(size, 1)
    return strides


def _takes_names(model, inputs):
    names = set(inspect.signature(model.forward).parameters)
    return all(name in names for name in inputs)


def _loss_of(output, loss, targets, trace):
    """(the loss, the output, whether the model returned both)"""
    returned = list(_tensors([output]))
    value, returns = None, False
    if loss is not None:
        value = loss(output, *targets)
    elif getattr(output, "loss", None) is not None:
        value, returns = output.loss, True
    else:
        value = next((v for v in returned if v.dim() == 0), None)
        returns = value is not None
    if value is not None and (not isinstance(value, torch.Tensor) or value.dim() > 0):
        raise ExportError("export.loss", "loss() must return one number, a tensor without dimensions",
                      "for example loss=lambda output, target: F.cross_entropy(output, target)")
    result = getattr(output, "logits", None)
    if result is None:
        result = next((v for v in returned if v is not value), None)
    return value, result, returns


# --- several runs ---------------------------------------------------------------------------------------------
def _runs(model, loss, sizes, assumptions):
    """{(batch, sequence, low): run}; those that could not be made are told in `assumptions`."""
    b = max(2, sizes.batch)
    s = sizes.sequence
    runs = {}

    def attempt(key, *arguments, low=False, required=False):
        try:
            runs[key] = _run(model, loss, sizes, *arguments, low=low)
            if not required and _outline(runs[key]) != _outline(runs["one"]):
                del runs[key]
        except ExportError:
            raise
        except Exception as error:
            if required:
                raise _explained(error) from error

    attempt("one", b, s, required=True)
    attempt("batch", b + 1, s)
    if "batch" not in runs:
        assumptions.append(f"The model does other things for another batch size: the file holds for batch={b} alone.")
    if s:
        for other in (s + 1, s - 1, 2 * s, s // 2):
            if "sequence" not in runs and other > 0:
                attempt("sequence", b, other)
                sizes.other_sequence = other
        if "sequence" in runs and "batch" in runs:
            attempt("both", b + 1, sizes.other_sequence)
        if "both" not in runs:
            runs.pop("sequence", None)
            assumptions.append(f"The model does not run with another sequence length: the file holds for sequence={s}.")
    attempt("low", b, s, low=True)
    if "low" not in runs:
        assumptions.append("The model does not run in bfloat16: types are those of the export.")
    return runs


def _explained(error):
    kind = type(error).__name__
    if "DataDependent" in kind or "DynamicOutputShape" in kind:
        return ExportError("export.values", f"what the model does depends on the values of tensors: {error}",
                       "export the part without that decision, or record a run with memscape_probe.record")
    return ExportError("export.run", f"the model did not run on fake tensors: {kind}: {error}",
                   "run it on the example inputs as it is; when that works, record a run with memscape_probe.record")


def _outline(run):
    return [(kind, value["op"] if kind == "op" else value if kind == "enter" else None, len(value["in"]) if kind == "op"
             else 0) for kind, value in run.events if kind != "free"]


class _Scaled:
    """Numbers that differ between runs as a + b·batch + c·sequence + d·batch·sequence."""

    def __init__(self, runs, sizes):
        self.keys = [k for k in ("one", "batch", "sequence", "both") if k in runs]
        self.b, self.s = max(2, sizes.batch), sizes.sequence
        self.step = getattr(sizes, "other_sequence", 0) - self.s

    def size(self, values):
        found = dict(zip(self.keys, values))
        one = found["one"]
        per_batch = found.get("batch", one) - one
        if "both" not in found:
            constant = one - per_batch * self.b
            return one if not per_batch else [constant, per_batch, 0, 0]
        per_sequence = (found["sequence"] - one) / self.step
        both = (found["both"] - found["batch"] - found["sequence"] + one) / self.step
        b = per_batch - both * self.s
        c = per_sequence - both * self.b
        a = one - b * self.b - c * self.s - both * self.b * self.s
        if any(v != int(v) for v in (a, b, c, both)):
            raise ExportError("export.size", f"a size is {values} for the four runs, which is no sum of multiples of batch and "
                          "sequence", "export with sequence_dim=None: the file then holds for one sequence length")
        return int(a) if not (b or c or both) else [int(a), int(b), int(c), int(both)]

    def value(self, values):
        """The same within lists and dictionaries."""
        first = values[0]
        if isinstance(first, bool) or not isinstance(first, (int, list, dict)):
            return first
        if isinstance(first, int):
            return self.size(values)
        if isinstance(first, list):
            return [self.value(each) for each in zip(*values)]
        return {k: self.value([v[k] for v in values]) for k in first}


def _document(model, runs, sizes, assumptions):
    scaled = _Scaled(runs, sizes)
    of = lambda pick: [pick(runs[k]) for k in scaled.keys]
    one, low = runs["one"], runs.get("low")
    operators_of = lambda run: [v for kind, v in run.events if kind == "op"]
    # A cast that float32 does not need is a name of the same tensor there; in bfloat16 it is one of its own. So which
    # of the names is used, and when each dies, is seen there.
    named = low or one
    lows = operators_of(named)
    position, ops = 0, list(zip(*of(operators_of)))
    merged = []
    for same, other in zip(ops, lows):
        fields = {k: (other["in"] if k == "in" else scaled.value([each[k] for each in same])) for k, v in same[0].items() if k != "out"}
        fields["out"] = []
        for index, out in enumerate(same[0]["out"]):
            dtype = out["dtype"] if other["out"][index]["dtype"] == out["dtype"] else "weights"
            fields["out"].append({"id": out["id"], "dtype": dtype,
                                  "shape": [scaled.size(v) for v in zip(*(e["out"][index]["shape"] for e in same))]})
        merged.append(fields)
    program = []
    modules = {path: {"path": path, "type": type(module).__name__} for path, module in model.named_modules()}
    layers = _layers(model)
    for kind, value in named.events:
        if kind == "op":
            program.append(merged[position])
            position += 1
        elif kind == "free":
            if program and "free" in program[-1]:
                program[-1]["free"].append(value)
            else:
                program.append({"free": [value]})
        elif kind == "enter":
            program.append({"enter": value, **({"layer": True} if value in layers else {})})
        else:
            program.append({"leave": value})
    assumptions += [f"{name} (in {where or 'the model'}) has no rule of its own: it {what}, and its backward makes one "
                    f"gradient for each input and nothing else." for name, (where, what) in one.trace.assumptions.items()]
    assumptions += one.trace.writes.values()
    tensor = lambda f: {"shape": list(f.shape), "dtype": str(f.dtype)[6:]}
    sized = lambda pick, i: [scaled.size(v) for v in zip(*(pick(runs[k])[i][2].shape for k in scaled.keys))]
    weight = {p.dtype for p in model.parameters()}
    return {
        "format": "memscape-network", "version": VERSION, "name": type(model).__name__, "torch": str(torch.__version__),
        "training": model.training, "batch": scaled.b, "sequence": scaled.s,
        "scales": {"batch": "batch" in runs, "sequence": "both" in runs},
        "weights": str(next(iter(weight)))[6:] if len(weight) == 1 else "mixed",
        "modules": list(modules.values()),
        "parameters": [{"id": n, "name": name, **tensor(f), "trained": trained} for n, name, f, trained in one.parameters],
        "buffers": [{"id": n, "name": name, "shape": list(f.shape), "dtype": _own(f)} for n, name, f in one.buffers]
        + [{"id": n, "name": f"constant{i}", **tensor(f)} for i, (n, f) in enumerate(one.constants)],
        "inputs": [{"id": n, "name": name, "role": role, "dtype": _own(f), "shape": sized(pick, i)}
                   for role, pick in (("input", lambda r: r.inputs), ("target", lambda r: r.targets))
                   for i, (n, name, f) in enumerate(pick(one))],
        "positions": _positions(merged, one, scaled), "program": program, "output": named.output, "loss": named.loss, "returns_loss": named.returns_loss,
        "assumptions": assumptions,
    }


def _positions(merged, run, scaled):
    """Rows of the smallest table that is looked up by position: one index for each token of the sequence, whatever the
    batch. 0: none."""
    shapes = {out["id"]: out["shape"] for fields in merged for out in fields["out"]}
    tables = {number: tensor.shape[0] for number, _, tensor, _ in run.parameters if tensor.dim() == 2}
    found = [tables[fields["in"][1]] for fields in merged if fields["op"] == "embedding" and fields["in"][1] in tables
             and [size for size in shapes.get(fields["in"][0], ()) if size != 1] == [[0, 0, 1, 0]]]
    return min((rows for rows in found if rows >= scaled.s), default=0)


def _own(tensor):
    return "weights" if tensor.is_floating_point() else str(tensor.dtype)[6:]


def _layers(model):
    """Paths of modules that are one of several of a kind in a list: what checkpointing drops and runs again. Lists
    within such a module are its own business."""
    found = set()
    for path, module in model.named_modules():
        if any(path.startswith(each + ".") for each in found):
            continue
        if isinstance(module, (torch.nn.ModuleList, torch.nn.Sequential)):
            children = list(module.named_children())
            kinds = {type(child) for _, child in children}
            if len(children) > 1 and len(kinds) == 1 and next(iter(children))[1].__class__.__module__.split(".")[:2] \
                    != ["torch", "nn"]:
                found |= {f"{path}.{name}" if path else name for name, _ in children}
    return found


def _write(path, document):
    """Whole or not at all. Raises OSError."""
    path = os.fspath(path)
    handle, temporary = tempfile.mkstemp(prefix=".memscape-", suffix=".tmp", dir=os.path.dirname(os.path.abspath(path)))
    try:
        with os.fdopen(handle, "w") as file:
            _dump(document, file)
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _dump(document, file):
    """One line for each operator: a person can read it."""
    file.write("{")
    for i, (key, value) in enumerate(document.items()):
        file.write((",\n" if i else "\n") + json.dumps(key) + ": ")
        if isinstance(value, list) and value:
            file.write("[\n  " + ",\n  ".join(json.dumps(each) for each in value) + "\n]")
        else:
            file.write(json.dumps(value))
    file.write("\n}\n")
