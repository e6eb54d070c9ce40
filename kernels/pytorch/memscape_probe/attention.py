# SPDX-License-Identifier: Apache-2.0
"""`attention`: softmax(Q Kᵀ / √d) V, composed of products and a softmax (standard), and by scaled_dot_product_attention with one of its
backends named and alone allowed (flash, efficient, cudnn, math), on the same inputs, in turn.

Inputs are normal, caches are flushed before every sample. The forward pass is timed without a graph; a backward follows one forward that
is not timed; both: a forward and its backward. Extra bytes are those of the allocator, event by event (events.py), beside Q, K, V, O and
their gradients: on a CPU as asked for, on a GPU in blocks of 512 B. Saved is what then stays alive until the backward.

Before anything is timed outputs and gradients are held against the same in float64. Left out: dropout, masks other than causal."""
import torch

from .events import Collector
from .networks import repeated_heads
from .plan import only_kernel
from .problem import skipped
from .sampling import Visit, note_once, one_version, refusing
from .storages import address_of

BACKENDS = ("flash", "efficient", "cudnn", "math")
DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
# Of the largest number of a tensor: what products, S and P rounded to the format may be off by.
BOUNDS = {torch.float32: 5e-5, torch.float16: 1e-2, torch.bfloat16: 6e-2}


def standard(query, key, value, mask):
    """As textbooks have it: S, P and their like are matrices in memory. mask: True where a key is not seen, or None."""
    key, value = repeated_heads(key, query.shape[1]), repeated_heads(value, query.shape[1])
    scores = query @ key.transpose(-1, -2) * query.shape[-1] ** -0.5
    if mask is not None:
        scores = scores.masked_fill(mask, float("-inf"))
    return scores.softmax(-1) @ value


def fused(backend, query, key, value, is_causal):
    """Errors: RuntimeError where the backend does not run, TypeError of a PyTorch without grouped queries."""
    grouped = {"enable_gqa": True} if key.shape[1] != query.shape[1] else {}
    with only_kernel(backend, query.device):
        return torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=is_causal, **grouped)


class Attention:
    """The tensors of a case (batch, heads, kv_heads, sequence, head_dim, causal, pass), and launches of its pass. `how` is
    "standard" or a backend's name."""

    def __init__(self, case, device, dtype):
        self.case, self.device = case, torch.device(device)
        generator = torch.Generator(device=device).manual_seed(1)
        length, heads = case["sequence"], case["heads"]

        def drawn(count):
            shape = (case["batch"], count, length, case["head_dim"])
            return torch.randn(shape, generator=generator, device=device, dtype=torch.float32).to(dtype)
        kv_heads = case.get("kv_heads") or heads
        self.inputs = [drawn(count).requires_grad_() for count in (heads, kv_heads, kv_heads)]
        self.gradient = drawn(heads)
        self.mask = torch.ones((length, length), dtype=torch.bool, device=device).triu(1) if case["causal"] else None

    def forward(self, how, keeps_graph=True):
        with torch.set_grad_enabled(keeps_graph):
            if how == "standard":
                return standard(*self.inputs, self.mask)
            return fused(how, *self.inputs, self.case["causal"])

    def backward(self, how, output, keeps_graph=True):
        if how == "standard":
            return torch.autograd.grad(output, self.inputs, self.gradient, retain_graph=keeps_graph)
        with only_kernel(how, self.device):
            return torch.autograd.grad(output, self.inputs, self.gradient, retain_graph=keeps_graph)

    def work(self, how):
        """A launch of the case's pass; of a backward alone the forward runs here, once."""
        if self.case["pass"] == "forward":
            return lambda: self.forward(how, keeps_graph=False)
        if self.case["pass"] == "both":
            return lambda: self.backward(how, self.forward(how), keeps_graph=False)
        output = self.forward(how)
        return lambda: self.backward(how, output)


def exact(query, key, value, is_causal):
    """In float64, of the inputs as they are."""
    query, key, value = query.double(), key.double(), value.double()
    groups = query.shape[1] // key.shape[1]
    scores = torch.einsum("bhqd,bhkd->bhqk", query, key.repeat_interleave(groups, 1)) / query.shape[-1] ** 0.5
    if is_causal:
        length = scores.shape[-1]
        scores = scores + torch.full((length, length), float("-inf"), dtype=torch.float64, device=scores.device).triu(1)
    weights = torch.exp(scores - scores.amax(-1, keepdim=True))
    return torch.einsum("bhqk,bhkd->bhqd", weights / weights.sum(-1, keepdim=True), value.repeat_interleave(groups, 1))


def worst_error(how, case, device, dtype):
    """Of a small case's output and gradients, in parts of each tensor's largest number; and how large it may be."""
    groups = case["heads"] // case["kv_heads"]
    small = Attention({**case, "batch": 2, "heads": 2 * groups, "kv_heads": 2, "sequence": 65}, device, dtype)
    output = small.forward(how)
    found = [output.detach(), *small.backward(how, output)]
    doubled = [tensor.detach().double().requires_grad_() for tensor in small.inputs]
    reference = exact(*doubled, case["causal"])
    expected = [reference.detach(), *torch.autograd.grad(reference, doubled, small.gradient.double())]
    return max(((one.double() - other).abs().max() / other.abs().max()).item() for one, other in zip(found, expected)), BOUNDS[dtype]


# --- bytes ------------------------------------------------------------------------------------------------------------------


def counted(attention, how):
    """{"peak", "saved"} in bytes, and the operators that made memory, of the case's pass."""
    which, gradients = attention.case["pass"], []
    with Collector(attention.device) as collector:
        with collector.region("forward"):
            output = attention.forward(how)
        if which != "forward":
            with collector.region("backward"):
                gradients = attention.backward(how, output)
        results = {address_of(tensor) for tensor in (output, *gradients)}
        recording = collector.recording()
    peaks, saved = extra_bytes(recording.events, results)
    regions = {"forward": ("forward",), "backward": ("backward",)}.get(which, ("forward", "backward"))
    operators = sorted({event.operator for event in recording.events if event.action == "alloc" and event.region and event.operator})
    return {"peak": max(peaks[region] for region in regions), "saved": saved}, operators


def extra_bytes(events, results):
    """The most bytes alive in each region, and those alive when the forward ends; without the blocks that hold results."""
    last = {event.address: i for i, event in enumerate(events) if event.action == "alloc" and event.address in results}
    alive, sizes, peaks, saved = 0, {}, {"forward": 0, "backward": 0}, 0
    for i, event in enumerate(events):
        if event.region == "backward":  # also when it begins with a free
            peaks["backward"] = max(peaks["backward"], alive)
        if event.action == "alloc" and last.get(event.address) != i:
            sizes[event.address] = event.bytes
            alive += event.bytes
        elif event.action == "free":
            alive -= sizes.pop(event.address, 0)
        if event.region in peaks:
            peaks[event.region] = max(peaks[event.region], alive)
        if event.region == "forward":
            saved = alive
    return peaks, saved


# --- the visit --------------------------------------------------------------------------------------------------------------


def case_of(parameters):
    case = {key: int(parameters[key]) for key in ("batch", "heads", "kv_heads", "sequence", "head_dim")}
    case["kv_heads"] = case["kv_heads"] or case["heads"]
    return {**case, "causal": bool(parameters["causal"]), "pass": parameters["pass"]}


def implementations(request):
    """Kind -> how it is computed, of those that were asked for and that this PyTorch has."""
    asked, backend = request.parameters["implementation"], request.parameters.get("backend", "flash")
    hows = {"standard": "standard", "flash": backend}
    wanted = {kind: how for kind, how in hows.items() if asked in (kind, "both")}
    if "flash" in wanted and not hasattr(torch.nn.functional, "scaled_dot_product_attention"):
        missing = f"PyTorch {torch.__version__} has no scaled_dot_product_attention, 2.0 or newer has it"
        if asked == "flash":
            raise skipped(missing, "choose implementation=standard", "implementation")
        note_once(request, "probe.sdpa", f"{missing}: composed attention alone is measured")
        del wanted["flash"]
    return wanted


def running_backends(case, device, dtype):
    """Those that take such inputs here."""
    small, found = Attention({**case, "batch": 1, "heads": case["heads"] // case["kv_heads"], "kv_heads": 1, "sequence": 64}, device, dtype), []
    for backend in BACKENDS:
        try:
            small.backward(backend, small.forward(backend))
            found.append(backend)
        except (RuntimeError, TypeError, NotImplementedError):
            pass
    return found


def refusal_of(how, case, parameters, device, dtype):
    """What is refused, the remedy, and the parameter."""
    if how == "standard":
        return f"dtype={parameters['dtype']}", lambda: "choose dtype=float32 or bfloat16", "dtype"

    def remedy():
        others = running_backends(case, device, dtype)
        return "choose " + " or ".join([f"backend={name}" for name in others] + ["implementation=standard"])
    return f"backend={how} with dtype={parameters['dtype']}, head_dim={case['head_dim']}, kv_heads={case['kv_heads']}", remedy, "backend"


def measure(request):
    """request.parameters: those of `attention` and `visit`. Answers samples by kind and "_time", and detail.bytes by kind."""
    parameters = request.parameters
    one_version(parameters, "attention programs")
    visit, case, dtype = Visit(request), case_of(parameters), DTYPES[parameters["dtype"]]
    wanted = implementations(request)
    scores = case["batch"] * case["heads"] * case["sequence"] ** 2 * torch.empty(0, dtype=dtype).element_size()
    visit.check_room(3 * scores if "standard" in wanted else 0, "standard attention's matrices")
    works, counts, checks, operators = {}, {}, [], {}
    attention = Attention(case, visit.device, dtype)
    for kind, how in wanted.items():
        with refusing(*refusal_of(how, case, parameters, visit.device, dtype)):
            name = f"{'composed' if how == 'standard' else 'SDPA ' + how} {parameters['dtype']}{' causal' if case['causal'] else ''}"
            checks.append(visit.check(name, lambda: worst_error(how, case, visit.device, dtype)))
            request.check()
            attention.forward(how)  # libraries take their workspace
            counts[kind], operators[kind] = counted(attention, how)
            works[f"{kind}_time"] = attention.work(how)
    samples, _ = visit.samples(works, cold=True)
    method = {"implementations": wanted, "operators": operators, "kernels": checks, "caches": "flushed before every sample",
              "memory_traffic": "not measured: no hardware counters are read"}
    return visit.answer(samples, bytes=counts, method=method)
