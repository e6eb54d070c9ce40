# SPDX-License-Identifier: Apache-2.0
"""`calibration`: what PyTorch's operators take on this CPU, each alone and of a few sizes. core/timing/pytorch_operations.h makes the
model of a training step from it; no network is run.

  products     x Wᵀ, δ W and δᵀ x of linear layers, and of batches of small matrices as attention has them
  convolutions forward and the gradients of input and weight, of windows of 1 × 1 to 7 × 7
  passes       an elementwise operator, norm, softmax, pooling …: forward, and backward through autograd
  calls        the same on 16 numbers, where nothing but dispatch is left; an optimizer's update of a small parameter
  memory       copies from the nearest cache to memory, beyond the last one; pages that are touched for the first time
  cold         products and a pass whose operands lie in memory, as a network's weights do; how long a cache shared with others keeps
               what is not used
  state        works that a measurement takes again in turn with its steps (host_state.py)

A time is the least of several samples, what else the machine does only adds; the mean of the state's works says how much it adds on
average. Left out: half precision but for large products, other numbers of threads than PyTorch's own."""
import time

import torch
import torch.nn.functional as F

from . import machine
from .host_state import HostState, bytes_beyond_caches

SAMPLES, FEWEST, LONGEST = 9, 3, 0.08  # of a probe; s of all its samples
TOKENS, WIDTH = 1024, 256  # numbers of a pass: 1 MiB in fp32
LAYERS = ((96, 96), (96, 320), (320, 96), (256, 256), (512, 1024), (1024, 512), (1024, 2048), (2048, 2048), (3072, 1024))  # in, out
ROWS = (16, 48, 128, 256, 512)
BATCHED = ((16, 64, 32), (16, 128, 64), (8, 256, 64), (32, 96, 32))  # matrices, tokens, head size
# pictures, channels, side, filters, window, stride
CONVOLUTIONS = ((2, 3, 96, 32, 3, 2), (2, 3, 160, 48, 7, 2), (2, 32, 48, 48, 3, 1), (2, 96, 24, 96, 3, 1), (2, 192, 12, 192, 3, 1),
                (2, 32, 48, 96, 1, 1), (2, 96, 24, 192, 1, 1), (2, 320, 12, 320, 1, 1), (2, 384, 6, 384, 3, 1), (1, 64, 96, 64, 3, 1))
CHANNELWISE = ((2, 96, 48, 3), (2, 192, 24, 3), (2, 192, 24, 5))  # pictures, channels, side, window
LARGE = 1024  # side of a product that is large
COLD = ((64, 512, 1024), (64, 768, 3072), (256, 512, 512), (256, 1024, 1024))  # rows, in, out
NEAR = 1 << 19  # numbers of a pass that a last cache holds
LOOKS = 16  # at the state, before each part: a mean of 36 is 10 % off where neighbours interrupt, one of 144 half of that
WAITS = (0.0005, 0.001, 0.002, 0.004, 0.008, 0.016)  # s
SMALLEST_COPY = 1 << 16  # B of one array


def backward(result, inputs):
    """What makes the gradients of `inputs`, again and again."""
    given = torch.ones_like(result)
    return lambda: torch.autograd.grad(result, inputs, given, retain_graph=True)


class Probes:
    """What was measured, as rows of JSON."""

    def __init__(self, request):
        self.request, self.rows, self.done, self.spread, self.state = request, [], 0, 0.0, HostState()

    def least(self, work):
        """The least seconds of work(), warm."""
        work()
        samples, began = [], time.perf_counter()
        while len(samples) < FEWEST or (len(samples) < SAMPLES and time.perf_counter() - began < LONGEST):
            start = time.perf_counter()
            work()
            samples.append(time.perf_counter() - start)
        samples.sort()
        self.spread = (samples[(3 * len(samples)) // 4] - samples[len(samples) // 4]) / samples[len(samples) // 2]
        return samples[0]

    def repeated(self, work, times=40):
        """Of one of many short runs."""
        def run():
            for _ in range(times):
                work()
        return self.least(run) / times

    def add(self, kind, seconds, **facts):
        """Its spread is that of the newest samples."""
        self.rows.append({"kind": kind, "seconds": seconds, "spread": self.spread, **facts})
        self.done += 1
        self.request.progress(self.done, 0, kind)
        self.request.check()

    # --- products -------------------------------------------------------------------------------------------------------------
    def products(self):
        for inputs, outputs in LAYERS:
            weight = torch.randn(outputs, inputs)
            for rows in ROWS:
                x, given = torch.randn(rows, inputs), torch.randn(rows, outputs)
                self.add("forward", self.least(lambda: x.mm(weight.t())), m=rows, n=outputs, k=inputs)
                self.add("input gradient", self.least(lambda: given.mm(weight)), m=rows, n=inputs, k=outputs)
                self.add("weight gradient", self.least(lambda: given.t().mm(x)), m=outputs, n=inputs, k=rows)

    def batches(self):
        for count, tokens, size in BATCHED:
            q, k, scores = torch.randn(count, tokens, size), torch.randn(count, tokens, size), torch.randn(count, tokens, tokens)
            self.add("batched forward", self.least(lambda: torch.bmm(q, k.transpose(1, 2))), m=tokens, n=tokens, k=size, count=count)
            self.add("batched forward", self.least(lambda: torch.bmm(scores, k)), m=tokens, n=size, k=tokens, count=count)
            self.add("batched input gradient", self.least(lambda: torch.bmm(q, k.transpose(1, 2))), m=tokens, n=tokens, k=size, count=count)
            self.add("batched input gradient", self.least(lambda: torch.bmm(scores, k)), m=tokens, n=size, k=tokens, count=count)
            self.add("batched weight gradient", self.least(lambda: torch.bmm(scores.transpose(1, 2), q)), m=tokens, n=size, k=tokens,
                     count=count)
            self.add("batched weight gradient", self.least(lambda: torch.bmm(q.transpose(1, 2), scores)), m=size, n=tokens, k=tokens,
                     count=count)

    def large_products(self):
        """FLOP/s by format."""
        for name, dtype in (("fp32", torch.float32), ("bf16", torch.bfloat16), ("fp16", torch.float16)):
            a, b = torch.randn(LARGE, LARGE).to(dtype), torch.randn(LARGE, LARGE).to(dtype)
            try:
                self.add("rate", 2 * LARGE**3 / self.least(lambda: a.mm(b)), operator=name)
            except RuntimeError:  # not on a CPU in this version
                continue

    # --- convolutions ---------------------------------------------------------------------------------------------------------
    def convolutions(self):
        for pictures, channels, side, filters, window, stride in CONVOLUTIONS:
            self.convolution("convolution", torch.randn(pictures, channels, side, side), torch.randn(filters, channels, window, window),
                             stride, 1)
        for pictures, channels, side, window in CHANNELWISE:
            self.convolution("channelwise", torch.randn(pictures, channels, side, side), torch.randn(channels, 1, window, window), 1,
                             channels)

    def convolution(self, kind, x, weight, stride, groups):
        window = weight.shape[-1]
        arguments = (stride, window // 2, 1, groups)
        result = F.conv2d(x, weight, None, *arguments)
        given = torch.randn_like(result)

        def gradient(of_input):
            return self.least(lambda: torch.ops.aten.convolution_backward(
                given, x, weight, None, [stride] * 2, [window // 2] * 2, [1, 1], False, [0, 0], groups, [of_input, not of_input, False]))

        shape = {"m": result.numel() // result.shape[1], "n": weight.shape[0], "k": weight.shape[1] * window**2, "window": window**2}
        self.add(f"{kind} forward", self.least(lambda: F.conv2d(x, weight, None, *arguments)), **shape)
        self.add(f"{kind} input gradient", gradient(True), **shape)
        self.add(f"{kind} weight gradient", gradient(False), **shape)

    # --- passes ---------------------------------------------------------------------------------------------------------------
    def passes(self):
        for name, (make, work) in operators().items():
            inputs = [tensor.requires_grad_(tensor.is_floating_point()) for tensor in make(TOKENS)]
            result = work(*inputs)
            size = max(inputs[0].numel(), result.numel())
            if name == "flash_attention":
                size = 4 * inputs[0].numel() * inputs[0].shape[2]  # FLOPs
            self.add("pass", self.least(lambda: work(*inputs)), operator=name, elements=size, **{"pass": "forward"})
            wanted = [tensor for tensor in inputs if tensor.requires_grad]
            if not wanted or result.grad_fn is None:
                continue
            self.add("pass", self.least(backward(result, wanted)), operator=name, elements=size, **{"pass": "backward"})

    # --- calls ----------------------------------------------------------------------------------------------------------------
    def calls(self):
        small = torch.randn(16, requires_grad=True)
        layer = torch.nn.ReLU()
        chain = small
        for _ in range(40):
            chain = layer(chain)
        given = torch.ones(16)
        plain = small.detach()
        self.add("kernel call", self.repeated(lambda: plain + plain))
        self.add("forward call", self.repeated(lambda: layer(small)))
        self.add("backward call", self.least(lambda: torch.autograd.grad(chain, small, given, retain_graph=True)) / 40)
        self.add("view call", self.repeated(lambda: small.view(4, 4)))
        self.add("pass call", self.repeated(lambda: small + small), **{"pass": "forward"})
        self.add("pass call", self.repeated(backward(small + small, [small])), **{"pass": "backward"})
        parameters = [torch.zeros(16, requires_grad=True) for _ in range(40)]
        for parameter in parameters:
            parameter.grad = torch.ones(16)
        self.add("update call", self.least(torch.optim.AdamW(parameters, lr=1e-3, foreach=False).step) / len(parameters), operator="adamw")

    # --- memory ---------------------------------------------------------------------------------------------------------------
    def memory(self):
        size = SMALLEST_COPY
        while size <= bytes_beyond_caches() // 2:
            source, target = torch.ones(size // 4), torch.ones(size // 4)
            self.add("copy", self.repeated(lambda: target.copy_(source), max(1, (1 << 22) // size)), bytes=2 * size)
            size *= 2

    # --- cold operands --------------------------------------------------------------------------------------------------------
    def in_turn(self, make, work):
        """The least seconds of work(*operands) on others each time."""
        first = make()
        sets = [first] + [make() for _ in range(max(1, bytes_beyond_caches() // sum(4 * tensor.numel() for tensor in first)))]
        turn = iter(range(1 << 30))
        return self.least(lambda: work(*sets[next(turn) % len(sets)]))

    def cold_products(self):
        for rows, inputs, outputs in COLD:
            def operands():
                return torch.ones(rows, inputs), torch.ones(outputs, inputs), torch.ones(rows, outputs)
            ways = {"forward": (lambda x, weight, given: torch.mm(x, weight.t(), out=given), (rows, outputs, inputs)),
                    "input gradient": (lambda x, weight, given: torch.mm(given, weight, out=x), (rows, inputs, outputs)),
                    "weight gradient": (lambda x, weight, given: torch.mm(given.t(), x, out=weight), (outputs, inputs, rows))}
            for way, (work, (m, n, k)) in ways.items():
                one = operands()
                self.add(f"near {way}", self.least(lambda: work(*one)), m=m, n=n, k=k)
                self.add(f"cold {way}", self.in_turn(operands, work), m=m, n=n, k=k)

    def cold_pass(self):
        def operands():
            return torch.ones(NEAR), torch.ones(NEAR), torch.ones(NEAR)

        def work(a, b, result):
            torch.mul(a, b, out=result)

        one = operands()
        near, cold = self.least(lambda: work(*one)), self.in_turn(operands, work)
        self.add("near pass", near, elements=NEAR)
        self.add("cold pass", cold, elements=NEAR)
        busy = torch.ones(NEAR // 8)  # which keeps threads awake, in their own caches

        def later(wait):
            work(*one)
            until = time.perf_counter() + wait
            while time.perf_counter() < until:
                busy.mul_(1)
            start = time.perf_counter()
            work(*one)
            return time.perf_counter() - start

        lost = [wait for wait in WAITS if sorted(later(wait) for _ in range(5))[2] > (near + cold) / 2]
        if lost:
            self.add("retention", lost[0])

    # --- the processor's state ------------------------------------------------------------------------------------------------
    def look(self):
        for _ in range(LOOKS):
            self.state.sample()

    def add_state(self):
        for name, samples in self.state.limited().items():
            samples = sorted(samples)
            self.spread = (samples[(3 * len(samples)) // 4] - samples[len(samples) // 4]) / (samples[len(samples) // 2] or 1)
            self.add("state", sum(samples) / len(samples), operator=name)
            self.add("state at best", samples[0], operator=name)
        self.add("first touch", self.state.first_touch())


def operators():
    """By Memscape's name: what makes the inputs for so many rows, and the operator. The numbers of
    its first input or its result are counted, whichever are more; of attention FLOPs."""
    def rows(count):
        return [torch.randn(count, WIDTH)]

    def pair(count):
        return [torch.randn(count, WIDTH), torch.randn(count, WIDTH)]

    def positive(count):
        return [torch.rand(count, WIDTH) + 0.5]

    def pictures(count):
        return [torch.randn(4, count // 16, side, side)]

    side = 2 * int(WIDTH**0.5)
    mask, scale, shift = torch.rand(TOKENS, WIDTH) > 0.5, torch.ones(WIDTH), torch.zeros(WIDTH)
    nothing = torch.zeros(())
    picked, classes = torch.randint(0, TOKENS, (TOKENS,)), torch.randint(0, WIDTH, (TOKENS,))
    channels = torch.ones(TOKENS // 16)
    elementwise = {"neg": torch.neg, "square": lambda x: x**2, "exp": torch.exp, "sigmoid": torch.sigmoid, "tanh": torch.tanh, "relu": F.relu,
                   "gelu": F.gelu, "silu": F.silu, "hardswish": F.hardswish, "hardtanh": F.hardtanh, "leaky_relu": F.leaky_relu,
                   "elu": F.elu, "mish": F.mish, "softplus": F.softplus, "mul_number": lambda x: 2 * x, "add_number": lambda x: x + 2,
                   "pow": lambda x: torch.pow(x, 3.0),
                   "masked_fill": lambda x: x.masked_fill(mask, 0.0), "where": lambda x: torch.where(mask, x, nothing),
                   "dropout": lambda x: F.dropout(x, 0.1), "softmax": lambda x: F.softmax(x, -1),
                   "log_softmax": lambda x: F.log_softmax(x, -1), "sum": lambda x: x.sum(-1), "mean": lambda x: x.mean(-1),
                   "max": lambda x: x.max(-1).values, "var": lambda x: x.var(-1),
                   "layer_norm": lambda x: F.layer_norm(x, (WIDTH,), scale, shift),
                   "clone": lambda x: x.view(8, TOKENS // 8, 8, WIDTH // 8).transpose(1, 2).contiguous(),
                   "to": lambda x: x.to(torch.bfloat16), "cat": lambda x: torch.cat((x, x)),
                   "nll_loss": lambda x: F.nll_loss(x, classes)}
    table = {name: (rows, work) for name, work in elementwise.items()}
    table.update({name: (positive, work) for name, work in {"sqrt": torch.sqrt, "rsqrt": torch.rsqrt, "log": torch.log}.items()})
    table.update({name: (pair, work) for name, work in {"add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div,
                                                        "mse_loss": F.mse_loss}.items()})
    if hasattr(F, "rms_norm"):
        table["rms_norm"] = rows, lambda x: F.rms_norm(x, (WIDTH,), scale)
    table["turned"] = lambda count: [torch.randn(count, count)], lambda x: x.t().contiguous()
    table["embedding"] = rows, lambda x: F.embedding(picked, x)
    table["group_norm"] = pictures, lambda x: F.group_norm(x, 4, channels, channels)
    table["batch_norm"] = pictures, lambda x: F.batch_norm(x, None, None, channels, channels, True)
    table["max_pool2d"] = pictures, lambda x: F.max_pool2d(x, 3, 2, 1)
    table["avg_pool2d"] = pictures, lambda x: F.avg_pool2d(x, 2)
    table["adaptive_avg_pool2d"] = pictures, lambda x: F.adaptive_avg_pool2d(x, 1)
    if hasattr(F, "scaled_dot_product_attention"):
        def heads(count):
            return [torch.randn(4, 4, count // 8, 64) for _ in range(3)]
        table["flash_attention"] = heads, F.scaled_dot_product_attention
    return table


def measure(request):
    torch.empty(30 << 18).fill_(0)  # from now on malloc keeps blocks of up to 30 MiB, as after a network's first step
    probes = Probes(request)
    for part in (probes.calls, probes.memory, probes.cold_pass, probes.cold_products, probes.products, probes.batches,
                 probes.large_products, probes.convolutions, probes.passes):
        probes.look()
        part()
    probes.add_state()
    detail = {"threads": torch.get_num_threads(), "probes": probes.rows}
    return {"figures": {}, "series": [], "detail": detail}, machine.describe(torch.device(request.device))
