# SPDX-License-Identifier: Apache-2.0
"""Tells a collector (events.py) what Python knows while a program runs: which module is called, when backward runs,
and whose memory parameters, gradients, optimizer state and inputs are.

Modules by global forward hooks; backward by wrapping torch.autograd.backward and grad, which Tensor.backward calls;
optimizers by their step hooks (torch ≥ 2.0) or by wrapping the class's step (1.13)."""
import functools
import sys
import weakref

import torch
from torch.nn.modules import module as nn_module

from .storages import address_of


class Hooks:
    def __init__(self, tick, model=None, optimizer=None):
        """tick(kind, value): see events._Stream. on_step, when set, is called after each step of the first optimizer."""
        self.tick = tick
        self.paths = weakref.WeakKeyDictionary()  # module -> path
        self.parameters, self.buffers = [], []    # (name, tensor)
        self.optimizers = weakref.WeakKeyDictionary()  # optimizer -> entries of state when last looked at
        self.on_step = None
        self.depth = 0
        self.undo, self.unwatched = [], 0
        if model is not None:
            self._adopt(model)
        for each in _listed(optimizer):
            self.optimizers[each] = -1

    # --- before -----------------------------------------------------------------------------------
    def known_tensors(self):
        """address -> (category, name) of what exists now."""
        known = {}
        for name, p in self._named_parameters():
            known[address_of(p)] = ("parameter", name)
            if p.grad is not None:
                known[address_of(p.grad)] = ("gradient", name)
        for name, buffer in self.buffers:
            known.setdefault(address_of(buffer), ("parameter", name))
        for optimizer in list(self.optimizers):
            for address, name in self._state_of(optimizer).items():
                known.setdefault(address, ("optimizer_state", name))
        known.pop(0, None)
        return known

    def install(self):
        self._hook_optimizers()
        self.watch()

    def watch(self):
        """Modules and backward, until unwatch()."""
        self.depth, self.unwatched = 0, len(self.undo)
        pre = nn_module.register_module_forward_pre_hook(self._enter)
        try:
            post = nn_module.register_module_forward_hook(self._leave, always_call=True)
        except TypeError:  # torch < 2.0
            post = nn_module.register_module_forward_hook(self._leave)
        self.undo += [pre.remove, post.remove]
        self._wrap(torch.autograd, "backward", self._around_backward)
        self._wrap(torch.autograd, "grad", self._around_backward)

    def unwatch(self):
        """Only steps of optimizers are told from here on."""
        while len(self.undo) > self.unwatched:
            self.undo.pop()()

    def remove(self):
        while self.undo:
            self.undo.pop()()

    # --- modules ----------------------------------------------------------------------------------
    def _adopt(self, model):
        """The first is the program's model; others have their class before their names. Returns address -> name."""
        prefix = "" if not self.paths else type(model).__name__
        joined = lambda name: ".".join(filter(None, (prefix, name)))
        for path, module in model.named_modules():
            self.paths.setdefault(module, joined(path))
        known = {id(p) for _, p in self.parameters}
        parameters = [(joined(name), p) for name, p in model.named_parameters() if id(p) not in known]
        self.parameters += parameters
        buffers = [(joined(name), buffer) for name, buffer in model.named_buffers()]
        self.buffers += buffers
        return {address_of(tensor): name for name, tensor in parameters + buffers}

    def _enter(self, module, arguments):
        if self.depth == 0:
            if module not in self.paths and next(module.parameters(), None) is not None:
                self.tick("label", ("parameter", self._adopt(module)))
            self.tick("label", ("input", {address_of(t): None for t in arguments if isinstance(t, torch.Tensor)}))
        self.depth += 1
        self.tick("module", self.paths.get(module, type(module).__name__))

    def _leave(self, module, arguments, result):
        self.depth = max(0, self.depth - 1)
        self.tick("module_end")

    # --- backward ---------------------------------------------------------------------------------
    def _wrap(self, owner, name, around):
        original = getattr(owner, name)
        own = name in vars(owner)
        setattr(owner, name, around(original))
        self.undo.append(lambda: setattr(owner, name, original) if own else delattr(owner, name))

    def _around_backward(self, original):
        @functools.wraps(original)
        def backward(*arguments, **keywords):
            depth = self.depth
            self.tick("backward")
            try:
                return original(*arguments, **keywords)
            finally:
                self.depth = depth  # a recomputation may have been stopped
                self._label_gradients()
                self.tick("backward_end")
        return backward

    def _named_parameters(self):
        named = list(self.parameters)
        seen = {id(p) for _, p in named}
        for optimizer in list(self.optimizers):
            for group in optimizer.param_groups:
                named += [(None, p) for p in group["params"] if id(p) not in seen]
                seen.update(id(p) for p in group["params"])
        return named

    def _label_gradients(self):
        found = {}
        for name, p in self._named_parameters():
            if p.grad is not None:
                found[address_of(p.grad)] = name
        self.tick("label", ("gradient", found))

    # --- optimizers -------------------------------------------------------------------------------
    def _hook_optimizers(self):
        module = sys.modules[torch.optim.Optimizer.__module__]
        if hasattr(module, "register_optimizer_step_post_hook"):
            self.undo.append(module.register_optimizer_step_post_hook(
                lambda optimizer, *_: self._stepped(optimizer)).remove)
            return
        for each in {type(o) for o in self.optimizers} or _subclasses(torch.optim.Optimizer):
            if "step" in vars(each):
                self._wrap(each, "step", self._around_step)
        for each in list(self.optimizers):
            if "step" in vars(each):  # a learning-rate scheduler put its own there
                self._wrap(each, "step", functools.partial(self._around_bound_step, each))

    def _around_step(self, original):
        @functools.wraps(original)
        def step(optimizer, *arguments, **keywords):
            result = original(optimizer, *arguments, **keywords)
            self._stepped(optimizer)
            return result
        return step

    def _around_bound_step(self, optimizer, original):
        @functools.wraps(original)
        def step(*arguments, **keywords):
            result = original(*arguments, **keywords)
            self._stepped(optimizer)
            return result
        return step

    def _stepped(self, optimizer):
        before = self.optimizers.get(optimizer, -1)
        if before != len(optimizer.state):
            self.optimizers[optimizer] = len(optimizer.state)
            self.tick("label", ("optimizer_state", self._state_of(optimizer)))
        if self.on_step is not None and optimizer is next(iter(self.optimizers)):
            self.on_step()

    def _state_of(self, optimizer):
        names = {id(p): n for n, p in self.parameters}
        found = {}
        for p, state in optimizer.state.items():
            for key, value in (state.items() if isinstance(state, dict) else ()):
                if isinstance(value, torch.Tensor):
                    name = names.get(id(p))
                    found[address_of(value)] = f"{name}.{key}" if name else key
        found.pop(0, None)
        return found


def _listed(optimizer):
    if optimizer is None:
        return []
    return list(optimizer) if isinstance(optimizer, (list, tuple)) else [optimizer]


def _subclasses(kind):
    found = []
    for each in kind.__subclasses__():
        found += [each] + _subclasses(each)
    return found
