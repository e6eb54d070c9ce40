# SPDX-License-Identifier: Apache-2.0
"""`inference-memory`: the weights, a cache of keys and values filled to `context` tokens in chunks of `sequence`, and the
forward passes that fill it, run under torch.no_grad().

The last DECODED tokens come one by one, as generation adds them. Chunks and tokens are timed; the last chunk and the
last token are recorded allocation by allocation. The cache is the one that transformers keeps. A network without one (from
scratch, encoders, pictures) is run on one chunk."""
import inspect
import time

import torch

from . import machine, models
from .events import Collector
from .plan import HALVES, Plan
from .problem import skipped
from .trace import StepTrace
from .training import context_bytes, figure, guarded, prepared, tensor_bytes

DECODED = 8
DTYPES = {**HALVES, "fp32": torch.float32}


# Of an engine, not of a forward pass: parameter, what the probe does.
OF_ENGINES = (("library", "engine"), ("cache_growth", "reserved"), ("cache_page", 1), ("shared_prefix", 0), ("draft_model", "none"))


def plan_of(parameters, device):
    for key, possible in OF_ENGINES:
        if parameters.get(key, possible) != possible:
            raise skipped(f"{key}={parameters[key]}: the probe keeps the cache that transformers keeps, one piece a sequence",
                          f"choose {key}={possible}")
    precision = parameters.get("precision", "bf16")
    if parameters.get("weight_precision", "stored") not in ("stored", precision):
        raise skipped(f"weight_precision={parameters['weight_precision']}: the probe runs the weights in what it computes in",
                      f"choose weight_precision={precision}")
    if parameters.get("output_head", "model") == "own":
        raise skipped("output_head=own: the probe's model ties its head as its configuration says", "choose output_head=model")
    plan = Plan({"precision": precision, "attention": parameters.get("attention", "auto"), "optimizer": "none", "phase": "inference",
                 "tensor_parallel": parameters.get("tensor_parallel", 1), "described": parameters.get("described")}, device)
    plan.keeps_cache, plan.keeps_last_logits = True, parameters.get("logits", "all") == "last"
    return plan


PUBLISHED = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}


def note_stored(parameters, request):
    """Published weights of another type than the one that is computed in are cast before they are measured: said, since
    their prediction has the published type."""
    if parameters.get("weight_precision", "stored") != "stored":
        return []
    published = (parameters.get("described") or {}).get("stored") or "bfloat16"
    precision = parameters.get("precision", "bf16")
    if PUBLISHED.get(published, published) == precision:
        return []
    text = (f"the weights were run in {precision}; as stored they are {published}. Choose weight_precision={precision} to predict "
            "what was measured")
    request.note("warning", "probe.weights", text)
    return [text]


def cache_tensors(cache):
    """Keys and values of a cache of transformers (5, 4.x, or tuples)."""
    layers = getattr(cache, "layers", None)
    if layers is not None:
        pairs = [(getattr(layer, "keys", None), getattr(layer, "values", None)) for layer in layers]
    elif hasattr(cache, "key_cache"):
        pairs = list(zip(cache.key_cache, cache.value_cache))
    else:
        pairs = [layer[:2] for layer in cache or ()]
    return [tensor for pair in pairs for tensor in pair if isinstance(tensor, torch.Tensor)]


class Generation:
    """A cache that grows, chunk by chunk."""

    def __init__(self, workload, plan, batch, context, request):
        self.workload, self.plan, self.batch, self.context, self.request = workload, plan, batch, context, request
        self.cache, self.length = None, 0
        self.has_cache = workload.library == "transformers" and workload.kind == "tokens"
        self.options = {"logits_to_keep": 1} if plan.keeps_last_logits else {}
        if self.options and (not self.has_cache or "logits_to_keep" not in inspect.signature(workload.module.forward).parameters):
            raise skipped("logits=last: this model returns the logits of every token", "choose logits=all")

    def reset(self):
        self.cache, self.length = None, 0

    def run(self, tokens):
        """One pass; what it answers but its cache is let go."""
        with torch.no_grad(), self.plan.kernels():
            if not self.has_cache:
                self.workload.forward(self.inputs)
                return
            answer = self.workload.module(input_ids=tokens, past_key_values=self.cache, use_cache=True, **self.options)
            self.cache = getattr(answer, "past_key_values", None)
            self.has_cache = self.cache is not None
            self.length += tokens.shape[1]

    def timed(self, tokens, seconds):
        self.request.check()
        began = time.perf_counter()
        guarded(self.run, tokens)
        machine.synchronize(self.plan.device)
        seconds.append(time.perf_counter() - began)
        self.request.progress(self.length, self.context, f"{self.length} of {self.context} tokens in the cache")

    def tokens(self, count):
        return torch.randint(0, self.workload.vocab, (self.batch, count), device=self.plan.device)


def chunks(context, sequence):
    """Sizes of the passes: chunks, then single tokens; at least one chunk."""
    decoded = DECODED if context > DECODED + 1 and sequence > 1 else 0
    whole, rest = divmod(context - decoded, sequence)
    return [sequence] * whole + ([rest] if rest else []) + [1] * decoded


def measure(request):
    parameters = request.parameters
    plan = plan_of(parameters, request.device)
    batch, context = int(parameters["batch"]), int(parameters["context"])
    sequence = min(int(parameters.get("sequence", 512)), context)
    notes = note_stored(parameters, request)
    request.progress(0, 0, "building the model")
    workload = prepared(request, plan, parameters, sequence)
    generation = Generation(workload, plan, batch, context, request)
    if workload.kind != "tokens" or workload.library != "transformers":
        generation.inputs, _ = workload.inputs(batch, sequence, plan.device, plan.dtype)
    check_cache(parameters, generation)
    return result_of(*filled(generation, chunks(context, sequence)), notes)


def check_cache(parameters, generation):
    wanted = parameters.get("kv_precision", "bf16")
    if not generation.has_cache:
        generation.request.note("info", "probe.cache", "this network keeps no cache of keys and values: one pass is measured")
    elif DTYPES.get(wanted) != generation.plan.dtype:
        precision = next(name for name, dtype in DTYPES.items() if dtype == generation.plan.dtype)
        raise skipped(f"kv_precision={wanted}: the cache of transformers has the precision that is computed in",
                      f"choose kv_precision={precision}")


def filled(generation, sizes):
    """All passes; the last of each size recorded."""
    prefill, decode = [], []
    guarded(generation.run, generation.tokens(sizes[0]) if generation.has_cache else None)  # libraries settle
    if not generation.has_cache:
        for _ in range(5):
            generation.timed(None, prefill)
        return generation, prefill, decode, recorded(generation, [None])
    generation.reset()
    last_chunk = max(i for i, size in enumerate(sizes) if i == 0 or size > 1 or sizes[0] == 1)
    for size in sizes[:last_chunk]:
        generation.timed(generation.tokens(size), prefill)
    state = recorded(generation, [sizes[last_chunk]] + sizes[last_chunk + 1:last_chunk + 2])
    for size in sizes[last_chunk + 2:]:
        generation.timed(generation.tokens(size), decode)
    return generation, prefill, decode, state


def recorded(generation, sizes):
    """Passes of so many tokens under the collector: the trace."""
    plan = generation.plan
    if plan.device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(plan.device)
    labels = {tensor.data_ptr(): "cache" for tensor in cache_tensors(generation.cache)}
    inputs = [generation.tokens(size) if size else None for size in sizes]
    labels.update((tokens.data_ptr(), "input") for tokens in inputs if tokens is not None)
    collector = Collector(plan.device, model=generation.workload.module)
    with collector:
        for number, tokens in enumerate(inputs):
            with collector.region(f"forward {number}"):
                guarded(generation.run, tokens)
        collector.step()
    kept = {tensor.data_ptr(): "cache" for tensor in cache_tensors(generation.cache)}
    return StepTrace(collector.recording(), labels, granularity=512 if plan.device.type == "cuda" else 1, kept=kept)


def result_of(generation, prefill, decode, trace, notes):
    plan, module = generation.plan, generation.workload.module
    is_cuda = plan.device.type == "cuda"
    parameters = list(module.parameters())
    weights = sum(map(tensor_bytes, parameters))
    cache = sum(map(tensor_bytes, cache_tensors(generation.cache)))
    peak = torch.cuda.max_memory_allocated(plan.device) if is_cuda else max(trace.peak, weights + cache)
    held = torch.cuda.max_memory_reserved(plan.device) if is_cuda else peak
    figures = {"parameter_count": figure(sum(p.numel() for p in parameters), "1", "parameters"),
               "weights": figure(weights, "B", "weights"), "peak_allocated": figure(peak, "B", "peak allocated"),
               "peak_reserved": figure(held, "B", "peak reserved"),
               "device_total": figure(held + context_bytes(plan.device), "B", "device total"),
               "activations": figure(max(0, peak - weights - cache), "B", "activations")}
    if generation.has_cache:
        figures["kv_cache"] = figure(cache, "B", "KV cache")
    detail = {"trace": trace.to_json(), "samples": {"prefill_time": prefill, "token_time": decode}, "notes": notes,
              "context": context_bytes(plan.device)}
    return {"figures": figures, "series": [], "detail": detail}, machine.describe(plan.device, generation.workload)
