# SPDX-License-Identifier: Apache-2.0
"""What the probe measures of attention, layout and precision, against calculations written here: results in Python's own doubles,
bytes from shapes. With whatever torch this Python has; 77 where it has none."""
import json
import math
import os
import subprocess
import sys
import types
import unittest
from unittest import mock

sys.dont_write_bytecode = True
os.environ["KINETO_LOG_LEVEL"] = "9"
PACKAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../kernels/pytorch")
sys.path.insert(0, PACKAGE)

try:
    import torch
except ImportError:
    print("skipped: this python3 has no torch")
    sys.exit(77)

from memscape_probe import amp, attention, calibration, host_state, layout, machine, networks, precision, sampling, timer, training
from memscape_probe.problem import Problem

torch.set_num_threads(1)
HAS_SDPA = hasattr(torch.nn.functional, "scaled_dot_product_attention")
HOWS = ["standard"] + (["flash", "math"] if HAS_SDPA else [])


class Request:
    """As the worker hands it over."""

    def __init__(self, parameters, after=None):
        pacing = {"pass": 0, "samples": 2, "seconds": 0.0, "wall": 0.05, "cache_bytes": 1 << 16}
        self.parameters, self.device, self.is_forced = {"visit": pacing, **parameters}, "cpu", False
        self.notes, self.checks, self.after = [], 0, after

    def progress(self, *_):
        pass

    def note(self, level, code, text):
        self.notes.append((code, text))

    def check(self):
        self.checks += 1
        if self.after is not None and self.checks > self.after:
            raise Problem("run.cancelled", "the measurement was stopped")


def skipped(module, **parameters):
    """The problem that a measurement must end with."""
    try:
        module.measure(Request(parameters))
    except Problem as problem:
        return problem
    raise AssertionError(f"{parameters} was measured")


# --- attention ----------------------------------------------------------------------------------------------------------------


def reference(query, key, value, is_causal):
    """softmax(q kᵀ / √d) v of nested lists, one number after the other."""
    output = []
    for b, batch in enumerate(query):
        output.append([])
        for h, rows in enumerate(batch):
            own = h // (len(batch) // len(key[b]))
            output[b].append([])
            for i, q in enumerate(rows):
                seen = range(i + 1) if is_causal else range(len(key[b][own]))
                scores = [sum(x * y for x, y in zip(q, key[b][own][j])) / math.sqrt(len(q)) for j in seen]
                weights = [math.exp(score - max(scores)) for score in scores]
                total = math.fsum(weights)
                output[b][h].append([math.fsum(w * value[b][own][j][d] for w, j in zip(weights, seen)) / total for d in range(len(q))])
    return torch.tensor(output, dtype=torch.float64)


CASE = {"batch": 2, "heads": 4, "kv_heads": 4, "sequence": 17, "head_dim": 8, "causal": False, "pass": "both"}
WORDS = {"batch": 1, "heads": 2, "kv_heads": 0, "sequence": 64, "head_dim": 16, "dtype": "float32", "causal": False, "pass": "both",
         "implementation": "both", "version": 0, "backend": "flash"}


class Attention(unittest.TestCase):
    def test_outputs_are_those_of_doubles(self):
        for causal in (False, True):
            for kv_heads in (4, 2):
                run = attention.Attention({**CASE, "causal": causal, "kv_heads": kv_heads}, "cpu", torch.float32)
                exact = reference(*(tensor.tolist() for tensor in run.inputs), causal)
                for how in HOWS:
                    if how != "standard" and kv_heads != 4 and "enable_gqa" not in (torch.nn.functional.scaled_dot_product_attention.__doc__ or ""):
                        continue
                    off = (run.forward(how).double() - exact).abs().max().item()
                    self.assertLess(off, 1e-6, (how, causal, kv_heads))

    def test_gradients_are_slopes(self):
        """The change of Σ O · dO along a random direction, over a small step, in doubles."""
        run = attention.Attention({**CASE, "causal": True}, "cpu", torch.float32)
        step, ways = 1e-4, [torch.randn(t.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(7)) for t in run.inputs]

        def along(sign):
            moved = [(t.detach().double() + sign * step * way).tolist() for t, way in zip(run.inputs, ways)]
            return (reference(*moved, True) * run.gradient.double()).sum().item()
        slope = (along(1) - along(-1)) / (2 * step)
        for how in HOWS:
            gradients = run.backward(how, run.forward(how))
            found = sum((g.double() * way).sum().item() for g, way in zip(gradients, ways))
            self.assertAlmostEqual(found / slope, 1, 4, how)

    def test_a_wrong_program_is_not_timed(self):
        was, sampling_checked = attention.standard, dict(sampling.CHECKED)
        try:
            sampling.CHECKED.clear()
            attention.standard = lambda q, k, v, mask: was(q, k, v, None)  # forgets the mask
            problem = skipped(attention, **{**WORDS, "causal": True, "implementation": "standard"})
        finally:
            attention.standard = was
            sampling.CHECKED.update(sampling_checked)
        self.assertEqual(problem.code, "check.failed")

    def test_bytes_follow_from_the_shape(self):
        rows, matrix = 1 * 2 * 64, 1 * 2 * 64 * 64 * 4
        for which in ("forward", "backward", "both"):
            result, _ = attention.measure(Request({**WORDS, "pass": which}))
            counts = result["detail"]["bytes"]
            # P stays for the backward; the factor 1/√d is a number or two. S and S/√d are there at once, in backward dP, dS and P.
            self.assertTrue(0 <= counts["standard"]["saved"] - matrix <= 16, counts)
            matrices = {"forward": 2, "backward": 3, "both": 3}[which]
            self.assertTrue(0 <= counts["standard"]["peak"] - matrices * matrix < matrix / 8, (which, counts))
            if HAS_SDPA:
                self.assertEqual(counts["flash"]["saved"], rows * 4)  # a logarithm for each row
                self.assertGreaterEqual(counts["flash"]["peak"], rows * 4)
            samples = result["detail"]["samples"]
            self.assertEqual(set(samples), {"standard_time"} | ({"flash_time"} if HAS_SDPA else set()))
            self.assertTrue(all(len(values) >= 2 and min(values) > 0 for values in samples.values()))

    def test_flash_takes_no_matrix(self):
        if not HAS_SDPA:
            self.skipTest("torch before 2.0")
        peaks = [attention.counted(attention.Attention({**CASE, "batch": 1, "sequence": n, "pass": "both"}, "cpu", torch.float32), how)[0]["peak"]
                 for how in ("flash", "standard") for n in (256, 512)]
        self.assertLess(peaks[1] / peaks[0], 2.1)  # grows with the length
        self.assertAlmostEqual(peaks[3] / peaks[2], 4, 1)  # with its square

    def test_what_pytorch_has_not_is_refused_with_a_remedy(self):
        versions = skipped(attention, **{**WORDS, "version": 2})
        self.assertEqual((versions.code, versions.place), ("run.skipped", "version"))
        self.assertIn("version=0", versions.hint)
        if not HAS_SDPA:
            problem = skipped(attention, **{**WORDS, "implementation": "flash"})
            self.assertEqual((problem.code, problem.place), ("run.skipped", "implementation"))
            self.assertIn("2.0 or newer", problem.message)
            request = Request(WORDS)
            sampling.NOTED.clear()
            attention.measure(request)
            attention.measure(request)  # said once
            self.assertEqual([code for code, _ in request.notes], ["probe.sdpa"])
            return
        for backend in ("efficient", "cudnn"):
            problem = skipped(attention, **{**WORDS, "backend": backend})
            self.assertEqual((problem.code, problem.place), ("run.skipped", "backend"))
            self.assertIn("backend=flash", problem.hint)
            self.assertNotIn(f"backend={backend}", problem.hint)

    def test_a_stop_is_heard_between_samples(self):
        with self.assertRaises(Problem) as caught:
            attention.measure(Request(WORDS, after=2))
        self.assertEqual(caught.exception.code, "run.cancelled")


# --- layout -------------------------------------------------------------------------------------------------------------------


def tensor_words(**more):
    return {"base": {"size": [6, 10], "stride": [10, 1], "storage": 60}, "code": "x.transpose(0, 1)", "size": [10, 6], "stride": [1, 10],
            "offset": 0, "copies": True, **more}


def layout_words(tensor=None, **more):
    return {"dtype": "float32", "order": "row-major", "walk": "last-fastest", "reads": 3, "version": 0, "tensor": tensor or tensor_words(), **more}


class Layout(unittest.TestCase):
    def setUp(self):
        sampling.CHECKED.clear()

    def test_samples_of_all_reads(self):
        for dtype in layout.DTYPES:
            for walk in ("last-fastest", "first-fastest"):
                result, _ = layout.measure(Request(layout_words(dtype=dtype, walk=walk)))
                samples = result["detail"]["samples"]
                self.assertEqual(set(samples), {"view_total", "contiguous_time", "contiguous_total", "copy_time"})
                for i, total in enumerate(samples["contiguous_total"]):
                    self.assertAlmostEqual(total, samples["copy_time"][i] + 3 * samples["contiguous_time"][i], 12)
                self.assertEqual(result["detail"]["method"]["threads"], 1)

    def test_a_contiguous_tensor_is_not_copied(self):
        words = tensor_words(code="x.narrow(0, 1, 2)", size=[2, 10], stride=[10, 1], offset=10, copies=False)
        result, _ = layout.measure(Request(layout_words(words)))
        self.assertEqual(set(result["detail"]["samples"]), {"view_total", "contiguous_time", "contiguous_total"})

    def test_a_tensor_that_lies_otherwise_is_not_timed(self):
        for wrong in ({"stride": [1, 6]}, {"offset": 1}, {"size": [6, 10]}):
            sampling.CHECKED.clear()
            problem = skipped(layout, **layout_words(tensor_words(**wrong)))
            self.assertEqual(problem.code, "check.failed", wrong)

    def test_a_copy_of_other_elements_is_found(self):
        words = tensor_words()
        view = layout.made_view(words, layout.base_of(words, torch.int32, "cpu"))
        storage, copy = layout.storage_of(view), view.contiguous()
        self.assertEqual([copy[i][j].item() for i in range(10) for j in range(6)], [storage[i + 10 * j].item() for i in range(10) for j in range(6)])
        self.assertEqual(layout.wrong_elements(copy, words, storage), 0)
        copy[3][2] += 1
        self.assertEqual(layout.wrong_elements(copy, words, storage), 1)

    def test_reads_go_as_the_walk_says(self):
        """A read's result lies densely in the order of the walk."""
        x = torch.arange(6.0).view(2, 3)
        for order, expected in (("last-fastest", [0, -1, -2, -3, -4, -5]), ("first-fastest", [0, -3, -1, -4, -2, -5])):
            read = layout.Read(layout.walked(x, order))
            read()
            self.assertTrue(read.result.is_contiguous())
            self.assertEqual(read.result.flatten().tolist(), expected)

    def test_what_pytorch_refuses_names_the_parameter(self):
        problem = skipped(layout, **layout_words(tensor_words(code="x.view(7)")))
        self.assertEqual((problem.code, problem.place), ("run.skipped", "views"))
        self.assertIn("x.view(7)", problem.message)
        self.assertEqual(skipped(layout, **layout_words(version=3)).place, "version")


# --- precision ----------------------------------------------------------------------------------------------------------------


MATMUL = {"operation": "matmul", "format": "fp32", "m": 32, "n": 0, "k": 48, "value": 0.1}


class Products(unittest.TestCase):
    def setUp(self):
        sampling.CHECKED.clear()

    def test_products_are_sums_of_doubles(self):
        for fmt in precision.possible_formats(torch.device("cpu")):
            product = precision.Product(fmt, (32, 48, 64), "cpu")
            a, b, c = product.a.double().tolist(), product.b.double().tolist(), product().double().tolist()
            eps = {"fp64": 2**-50, "fp32": 2**-21, "int8": 0}.get(fmt, 2**-5)
            for i in range(0, 32, 5):
                for j in range(0, 48, 7):
                    terms = [a[i][k] * b[k][j] for k in range(64)]
                    self.assertLessEqual(abs(c[i][j] - math.fsum(terms)), eps * math.fsum(map(abs, terms)), (fmt, i, j))

    def test_a_wrong_product_is_found(self):
        for fmt in precision.possible_formats(torch.device("cpu")):
            product = precision.Product(fmt, precision.checked_shape(fmt), "cpu")
            off, bound = product.worst_error()
            self.assertLessEqual(off, bound, fmt)
            found = product()
            found[1, 2] = 0
            product.__class__ = type("Wrong", (precision.Product,), {"__call__": lambda _, found=found: found})
            off, bound = product.worst_error()
            self.assertGreater(off, 0 if fmt == "int8" else bound / 8, fmt)

    def test_both_are_timed(self):
        result, provenance = precision.measure(Request({**MATMUL, "format": "bf16"}))
        self.assertEqual(set(result["detail"]["samples"]), {"time", "fp32_time"})
        self.assertEqual(result["detail"]["stored"], 0.10009765625)  # 205 / 2048
        self.assertEqual(provenance["torch"], torch.__version__)
        alone, _ = precision.measure(Request(MATMUL))
        self.assertEqual(alone["detail"]["samples"]["time"], alone["detail"]["samples"]["fp32_time"])
        self.assertIsNone(alone["detail"]["stored"])

    def test_formats_that_are_not_there_name_those_that_are(self):
        problem = skipped(precision, **{**MATMUL, "format": "tf32"})
        self.assertEqual((problem.code, problem.place), ("run.skipped", "format"))
        self.assertIn("format=bf16", problem.hint)
        if not hasattr(torch, "float8_e4m3fn"):
            problem = skipped(precision, **{**MATMUL, "format": "fp8-e4m3"})
            self.assertIn("torch.float8_e4m3fn", problem.message)


# --- training -----------------------------------------------------------------------------------------------------------------


def splitmix(seed, index):
    """mlpUniform() of mlp_numbers.h in Python's whole numbers."""
    most = (1 << 64) - 1
    x = (index + seed * 0x9e3779b97f4a7c15) & most
    x = ((x ^ (x >> 30)) * 0xbf58476d1ce4e5b9) & most
    x = ((x ^ (x >> 27)) * 0x94d049bb133111eb) & most
    return (((x ^ (x >> 31)) >> 40) - (1 << 23)) / (1 << 23)


class PlainTraining:
    """The same course in doubles, its gradients and AdamW written out."""

    def __init__(self, course):
        self.weights = [p.detach().double().clone() for p in course.network.parameters()]
        self.first, self.second, self.steps = [0.0] * 6, [0.0] * 6, 0

    def step(self, x, classes):
        w1, b1, w2, b2, w3, b3 = self.weights
        x = x.double()
        h1 = x @ w1.t() + b1
        a1 = h1 * (h1 > 0)
        h2 = a1 @ w2.t() + b2
        a2 = h2 * (h2 > 0)
        logits = a2 @ w3.t() + b3
        odds = torch.exp(logits - logits.max(1, keepdim=True)[0])
        odds = odds / odds.sum(1, keepdim=True)
        rows = torch.arange(len(classes))
        loss = -torch.log(odds[rows, classes]).mean().item()
        d3 = odds.clone()
        d3[rows, classes] -= 1
        d3 /= len(classes)
        d2 = (d3 @ w3) * (h2 > 0)
        d1 = (d2 @ w2) * (h1 > 0)
        self.adam([d1.t() @ x, d1.sum(0), d2.t() @ a1, d2.sum(0), d3.t() @ a2, d3.sum(0)])
        return loss

    def adam(self, gradients):
        self.steps += 1
        for i, gradient in enumerate(gradients):
            self.weights[i] *= 1 - 1e-3 * 0.01
            self.first[i] = 0.9 * self.first[i] + 0.1 * gradient
            self.second[i] = 0.999 * self.second[i] + 0.001 * gradient**2
            first, second = self.first[i] / (1 - 0.9**self.steps), self.second[i] / (1 - 0.999**self.steps)
            self.weights[i] -= 1e-3 * first / (torch.sqrt(second) + 1e-8)


TRAIN = {"operation": "train", "format": "fp32", "m": 32, "n": 24, "k": 16, "value": 0.1, "steps": 12, "loss_scale": 65536.0,
         "growth_interval": 2000}


def scales_on_cpu():
    try:
        amp.check_autocast("fp16", torch.device("cpu"))
        amp.make_scaler("cpu", 1.0, 10)
        return True
    except (Problem, RuntimeError):
        return False


class Training(unittest.TestCase):
    def setUp(self):
        sampling.CHECKED.clear()

    def trained(self, **more):
        result, _ = amp.measure(Request({**TRAIN, **more}))
        return {course["key"]: course for course in result["detail"]["courses"]}, result["detail"]

    def test_numbers_are_memscapes(self):
        for seed in (3, 900, 1007):
            self.assertEqual(amp.uniform(seed, 50, "cpu").tolist(), [splitmix(seed, i) for i in range(50)])

    def test_losses_are_those_of_doubles(self):
        courses, _ = self.trained()
        plain, task = PlainTraining(amp.Course(16, 24, "fp32", "cpu")), amp.Task(32, 16, "cpu")
        exact = [plain.step(*task.batch(i)) for i in range(12)]
        for found, expected in zip(courses["fp32"]["loss"], exact):
            self.assertAlmostEqual(found, expected, 5)
        half, _ = self.trained(format="bf16")
        for found, expected in zip(half["bf16"]["loss"], exact):
            self.assertAlmostEqual(found, expected, 1)
        self.assertNotEqual(half["bf16"]["loss"], half["fp32"]["loss"])
        self.assertEqual(half["fp32"]["loss"], courses["fp32"]["loss"])  # the same batches and first weights

    def test_peak_bytes_follow_from_the_shapes(self):
        parameters = 16 * 24 + 24 + 24 * 24 + 24 + 24 * 16 + 16
        states = {"weights": 4 * parameters, "moments": 8 * parameters, "steps": 6 * 4, "batch": 32 * (16 * 4 + 8)}
        courses, _ = self.trained()
        # Backward's end has all gradients beside them; AdamW written as a loop makes one more of the largest parameter or two.
        least = sum(states.values()) + 4 * parameters
        self.assertGreaterEqual(courses["fp32"]["peak"], least)
        self.assertLess(courses["fp32"]["peak"], least + 4 * 32 * (2 * 24 + 2 * 24 + 3 * 16) + 2 * 4 * 24 * 24)

    def test_gradients_are_counted_by_their_exponents(self):
        counter = amp.Counter()
        numbers = [0.0, 1.0, -1.5, 2.0**-60, 2.0**-3, -0.3, float("inf"), float("nan"), 2.0**30]
        counter.add(torch.tensor(numbers))
        some = [abs(x) for x in numbers if math.isfinite(x) and x]
        bars = [0] * amp.BARS
        for x in some:
            bars[min(max(math.frexp(float(torch.tensor(x)))[1] - 1 - amp.FIRST_BAR, 0), amp.BARS - 1)] += 1
        self.assertEqual(counter.bars.tolist(), bars)
        self.assertEqual((counter.zeros, counter.largest), (1, 2.0**30))
        self.assertAlmostEqual(counter.sum, sum(math.log2(float(torch.tensor(x))) for x in some), 6)
        _, detail = self.trained()
        counted = sum(detail["gradients"]["bars"]) + detail["gradients"]["zeros"]
        # Every step of twelve: logits, two activations, three weights.
        self.assertEqual(counted, 12 * (32 * 16 + 2 * 32 * 24 + 16 * 24 + 24 * 24 + 24 * 16))

    def test_a_scale_that_overflows_is_halved_until_it_fits(self):
        if not scales_on_cpu():
            problem = skipped(amp, **{**TRAIN, "format": "fp16"})
            self.assertEqual((problem.code, problem.place), ("run.skipped", "format"))
            self.assertIn("bf16", problem.hint)
            return
        courses, _ = self.trained(format="fp16", loss_scale=2.0**28)
        rows = courses["fp16"]
        self.assertTrue(rows["skipped"][0])
        for i in range(1, 12):
            self.assertEqual(rows["scale"][i], rows["scale"][i - 1] / (2 if rows["skipped"][i - 1] else 1))
        self.assertFalse(rows["skipped"][-1])
        self.assertEqual(set(courses), {"fp32", "fp16", "fp16_unscaled"})

    def test_a_stop_keeps_what_was_taken(self):
        try:
            amp.measure(Request(TRAIN, after=5))
            self.fail("it was not stopped")
        except Problem as problem:
            self.assertEqual(problem.code, "run.cancelled")
            course = problem.result["detail"]["courses"][0]
            self.assertEqual(len(course["loss"]), 5)
            self.assertIsNone(course["peak"])


class Gpt2(unittest.TestCase):
    """Its head is its table of tokens: rows that are too long make the softmax choose one token, and gradients subnormal, which a
    processor handles several times as slowly."""

    def test_begins_as_a_guess_among_all_tokens(self):
        torch.manual_seed(0)
        vocab, tokens = 5000, torch.arange(64)[None]
        sizes = networks.Sizes({"hidden": 256, "layers": 2, "heads": 4, "head_dim": 64, "ffn": 1024, "vocab": vocab, "positions": 64})
        network = networks.Gpt2(sizes, networks.Options())
        loss = torch.nn.functional.cross_entropy(network(tokens).view(-1, vocab), tokens.view(-1))
        self.assertAlmostEqual(loss.item(), math.log(vocab), delta=0.5)
        loss.backward()
        squares = network.wte.weight.grad.pow(2)
        self.assertEqual(((squares > 0) & (squares < torch.finfo(torch.float32).tiny)).sum().item(), 0)


# --- the timer and the worker -------------------------------------------------------------------------------------------------


class Calibration(unittest.TestCase):
    KINDS = {"kernel call", "forward call", "backward call", "view call", "update call", "pass call", "first touch", "copy", "pass",
             "rate", "state", "state at best", "near pass", "cold pass",
             *(family + way for family in ("", "batched ", "convolution ", "channelwise ", "near ", "cold ")
               for way in ("forward", "input gradient", "weight gradient"))}

    def setUp(self):
        """Small and few: what is measured is the same."""
        self.kept = {name: getattr(calibration, name) for name in ("SAMPLES", "FEWEST", "LONGEST", "TOKENS", "WIDTH", "LAYERS", "ROWS",
                                                                   "BATCHED", "CONVOLUTIONS", "CHANNELWISE", "COLD", "NEAR", "WAITS",
                                                                   "LOOKS", "LARGE")}
        self.enterContext(mock.patch.multiple(host_state, BLOCK=1 << 16, BEYOND=0))
        for name, value in dict(SAMPLES=1, FEWEST=1, LONGEST=0, TOKENS=64, WIDTH=64, LAYERS=((8, 16),), ROWS=(4,), BATCHED=((2, 8, 4),),
                                CONVOLUTIONS=((1, 3, 8, 4, 3, 2),), CHANNELWISE=((1, 4, 8, 3),), COLD=((4, 8, 16),),
                                NEAR=1 << 8, WAITS=(0.0005,), LOOKS=1, LARGE=64).items():
            setattr(calibration, name, value)

    def tearDown(self):
        for name, value in self.kept.items():
            setattr(calibration, name, value)

    def test_every_kind_is_measured(self):
        result, machine = calibration.measure(Request({}))
        rows = result["detail"]["probes"]
        self.assertEqual({row["kind"] for row in rows} - {"retention"}, self.KINDS)  # a cache that keeps all has none
        self.assertEqual({row["operator"] for row in rows if row["kind"] == "state"}, {"core", "memory", "page", "call"})
        self.assertTrue(all(row["seconds"] > 0 for row in rows if row["kind"] != "first touch"))
        self.assertEqual(result["detail"]["threads"], 1)
        self.assertEqual(machine["backend"], "pytorch")

    def test_products_have_the_shapes_of_a_layer(self):
        rows = calibration.measure(Request({}))[0]["detail"]["probes"]
        shapes = {row["kind"]: (row["m"], row["n"], row["k"]) for row in rows if row["kind"] in ("forward", "input gradient",
                                                                                                 "weight gradient")}
        self.assertEqual(shapes, {"forward": (4, 16, 8), "input gradient": (4, 8, 16), "weight gradient": (16, 8, 4)})
        convolution = next(row for row in rows if row["kind"] == "convolution forward")
        self.assertEqual((convolution["m"], convolution["n"], convolution["k"], convolution["window"]), (16, 4, 27, 9))

    def test_passes_go_both_ways(self):
        rows = [row for row in calibration.measure(Request({}))[0]["detail"]["probes"] if row["kind"] == "pass"]
        ways = {(row["operator"], row["pass"]): row["elements"] for row in rows}
        self.assertEqual(ways[("gelu", "forward")], 64 * 64)
        self.assertEqual(ways[("gelu", "backward")], 64 * 64)
        self.assertEqual(ways[("cat", "forward")], 2 * 64 * 64)

    def test_operands_are_cold_where_others_were_used_meanwhile(self):
        seen = []
        probes = calibration.Probes(Request({}))
        with mock.patch.multiple(calibration, SAMPLES=3, FEWEST=3):
            probes.in_turn(lambda: (torch.ones(256),), lambda tensor: seen.append(tensor.data_ptr()))
        self.assertEqual(len(set(seen)), 4)  # a first time, and three samples

    def test_copies_and_operands_in_turn_are_larger_than_the_last_cache(self):
        """A cache of 260 MiB (Emerald Rapids) held both of 64 MiB, whose copy was twice as quick as memory."""
        with mock.patch.multiple(host_state, BLOCK=1 << 12, BEYOND=2.5), mock.patch.object(machine, "last_cache", lambda: 1 << 18):
            self.assertEqual(host_state.bytes_beyond_caches(), 5 << 17)
            rows = calibration.measure(Request({}))[0]["detail"]["probes"]
            copies = [row["bytes"] for row in rows if row["kind"] == "copy"]
            state = host_state.HostState()
        self.assertGreaterEqual(max(copies), 2 << 18)
        self.assertGreater(state.far.numel() * 4, 2 << 18)
        with mock.patch.object(machine, "available", lambda device: 1 << 20):
            self.assertLessEqual(host_state.bytes_beyond_caches(), 1 << 18)

    def test_each_pass_of_memory_takes_other_bytes(self):
        state, taken = host_state.HostState(), []
        for _ in range(3):
            state.sample()
            taken.append(state.turn)
        self.assertEqual(taken, [1, 2, 0])

    def test_a_state_is_what_its_works_take(self):
        state = host_state.HostState()
        state.sample()
        state.sample()
        self.assertEqual({name: len(samples) for name, samples in state.samples.items()}, dict.fromkeys(host_state.WORKS, 2))
        self.assertEqual(len(state.frees), 2)
        state.samples["page"], state.fills, state.frees = [3e-6, 2e-6], [2e-5, 8e-6], [4e-6, 1.6e-6]  # of 16 pages
        self.assertAlmostEqual(state.first_touch(), 1.6e-6, places=12)

    def test_one_sample_counts_no_more_than_ten_times_the_median(self):
        state = host_state.HostState()
        state.samples = {"core": [1.0, 1.0, 9.0, 1.0, 1.0], "page": [1.0, 2.0, 2.0, 3.0, 250.0]}
        self.assertEqual(state.limited(), {"core": [1.0, 1.0, 9.0, 1.0, 1.0], "page": [1.0, 2.0, 2.0, 3.0, 20.0]})

    def test_it_can_be_stopped(self):
        with self.assertRaises(Problem) as stopped:
            calibration.measure(Request({}, after=5))
        self.assertEqual(stopped.exception.code, "run.cancelled")


class Steps(unittest.TestCase):
    """Timed ones of a loop that only counts."""
    class Loop:
        steps = forgotten = 0

        def step(self):
            self.steps += 1

        def forget(self):
            self.forgotten += 1

    def test_the_processor_is_looked_at_in_turn_and_no_step_behind_that_is_timed(self):
        loop = self.Loop()
        timed = training.Timed(Request({}), types.SimpleNamespace(device=torch.device("cpu")))
        with mock.patch.multiple(host_state, BLOCK=1 << 16, BEYOND=0):
            timed.run(loop)
        looks = training.TIMED_STEPS // training.STATE_EVERY
        self.assertEqual({len(samples) for samples in timed.host_state.values()}, {looks * training.STATE_SAMPLES})
        self.assertEqual(len(timed.seconds), training.TIMED_STEPS)
        self.assertEqual(loop.steps, training.TIMED_STEPS + looks)
        self.assertEqual(loop.forgotten, loop.steps)


class Timing(unittest.TestCase):
    def test_samples_end(self):
        clock, calls = timer.Timer("cpu"), []
        taken = clock.in_turn({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, {"a": 1, "b": 3},
                              pacing=timer.Pacing(4, 0.0, 5.0))
        self.assertEqual({name: len(values) for name, values in taken.items()}, {"a": 4, "b": 4})
        self.assertEqual("".join(calls), "abbb" * 4)  # in turn
        taken = clock.in_turn({"a": lambda: None}, {"a": 1}, pacing=timer.Pacing(10**9, 1e9, 0.05))
        self.assertGreaterEqual(len(taken["a"]), 3)

    def test_short_works_are_repeated(self):
        self.assertEqual([timer.Timer("cpu").batch_of(seconds) for seconds in (1.0, 2e-4, 1e-4, 3e-6)], [1, 1, 2, 67])

    def test_a_worker_answers(self):
        words = {**WORDS, "implementation": "standard", "visit": Request({}).parameters["visit"]}
        commands = [{"cmd": "run", "id": 1, "experiment": "attention", "device": "pytorch:cpu", "parameters": words}]
        process = subprocess.Popen([sys.executable, "-B", "-m", "memscape_probe", "worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL, text=True, env={**os.environ, "PYTHONPATH": PACKAGE})
        process.stdin.write("".join(json.dumps(command) + "\n" for command in commands))
        process.stdin.flush()
        for line in process.stdout:
            message = json.loads(line)
            if message["type"] == "done":
                break
        process.stdin.close()
        process.stdout.close()
        process.wait(20)
        self.assertEqual(message["status"], "ok", message["error"])
        self.assertEqual(set(message["result"]["detail"]), {"bytes", "samples", "method"})
        self.assertEqual(message["provenance"]["backend"], "pytorch")


if __name__ == "__main__":
    unittest.main()
