# SPDX-License-Identifier: Apache-2.0
"""What the scripts of this folder do without PyTorch and without a GPU: arguments, asking memscape-cli (a small program stands in for
it), reading records, the arithmetic of rounds, and what is printed, on numbers made by hand. PyTorch is replaced by a name."""
import contextlib
import io
import json
import os
import pathlib
import stat
import sys
import tempfile
import time
import unittest
from unittest import mock

for name in ("torch", "torch.autograd", "torch.autograd.profiler", "torch.nn", "torch.nn.attention", "torch.nn.functional", "torch.nn.modules", "torch._C", "torch._C._profiler", "torch.utils", "torch.utils.checkpoint",
             "transformers"):
    sys.modules[name] = mock.MagicMock(name=name)
sys.path.insert(0, str(pathlib.Path(__file__).parent))
sys.dont_write_bytecode = True

import attention_torch
import comparison
import cublaslt
import matmul_torch
import memory_cases
import torch_copy
import train_torch
import training_memory
from memscape_probe import timer

RECORD = {
    "measured": {
        "figures": {"step_time": {"value": 2e-3}, "unknown": {"value": None}},
        "series": [{"key": "time", "x": {"values": [1024, 4096]}, "y": {"values": [1e-5, None]}}],
        "detail": {"points": [{"x": 1024, "batch": 20}, {"x": 4096, "flash": {"batch": 3}}]}},
    "provenance": {"cublaslt": {"file": "/a/libcublasLt.so.13", "version": "13.0.2"}},
}


class Folder(unittest.TestCase):
    """A test with a folder of its own and a program in it that answers for memscape-cli."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def cli(self, lines, record=RECORD):
        (self.folder / "answer.json").write_text(json.dumps(record), encoding="utf-8")
        program = self.folder / "cli"
        program.write_text(f"#!/bin/sh\nhere={self.folder}\n" + "\n".join(lines) + "\n", encoding="utf-8")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        return program

    ANSWERS = ('for out; do :; done', 'echo "$@" >> "$here/asked"', 'echo "$MEMSCAPE_CUBLASLT" > "$here/library"',
               'cp "$here/answer.json" "$out"')

    def asked(self):
        return (self.folder / "asked").read_text(encoding="utf-8").splitlines()


class Asking(Folder):
    def test_a_record_is_read(self):
        record = comparison.ask(self.cli(self.ANSWERS), "measure", "precision", {"format": "bf16", "m": "1024,4096"})
        self.assertEqual(record["provenance"]["cublaslt"]["version"], "13.0.2")
        self.assertTrue(self.asked()[0].startswith("measure precision format=bf16 m=1024,4096 --device cuda:0 -o "))
        self.assertEqual(comparison.series(record["answer"], "time"), {1024: 1e-5})  # 4096 was skipped
        self.assertEqual(comparison.series(record["answer"], "no such"), {})
        self.assertEqual(comparison.figure(record["answer"], "step_time"), 2e-3)
        self.assertIsNone(comparison.figure(record["answer"], "unknown"))
        self.assertEqual(comparison.batches(record["answer"]), {1024: 20, 4096: 1})
        self.assertEqual(comparison.batches(record["answer"], "flash"), {1024: 1, 4096: 3})

    def test_an_error_is_what_the_program_said_last(self):
        cli = self.cli(("echo 'note: the GPU is shared' >&2", "echo 'error: no such format' >&2", "echo '  try bf16' >&2", "exit 2"))
        self.assertEqual(comparison.ask(cli, "measure", "precision", {})["error"],
                         "memscape-cli ended with 2: error: no such format")

    def test_silence_a_hang_and_a_missing_program_are_said(self):
        self.assertIn("said nothing", comparison.ask(self.cli(("exit 1",)), "measure", "stride", {})["error"])
        began = time.monotonic()
        self.assertIn("more than 0 s", comparison.ask(self.cli(("exec sleep 20",)), "measure", "stride", {}, timeout=0.2)["error"])
        self.assertLess(time.monotonic() - began, 10)
        self.assertIn("does not start", comparison.ask(self.folder / "nowhere", "measure", "stride", {})["error"])

    def test_a_broken_record_is_said(self):
        cut = self.cli(('for out; do :; done', 'echo "{" > "$out"'))
        self.assertIn("cannot be read", comparison.ask(cut, "measure", "stride", {})["error"])
        other = self.cli(self.ANSWERS, {"predicted": {}})
        self.assertIn("KeyError", comparison.ask(other, "measure", "stride", {})["error"])

    def test_one_value_is_a_sweep_of_one(self):
        self.assertEqual(comparison.sweep([4096, 8192]), "4096,8192")
        self.assertEqual(comparison.sweep([8192]), "8192:8192")


class TheLibrary(Folder):
    def place(self, below, name):
        file = self.folder / below / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
        return str(file)

    def test_cuda_13_comes_before_cuda_12(self):
        self.assertIsNone(cublaslt.installed([str(self.folder)]))
        twelve = self.place("nvidia/cublas/lib", "libcublasLt.so.12")
        self.assertEqual(cublaslt.installed([str(self.folder)]), twelve)
        thirteen = self.place("nvidia/cu13/lib", "libcublasLt.so.13")
        self.assertEqual(cublaslt.installed(["/nowhere", str(self.folder)]), thirteen)

    def test_what_is_loaded_is_read_from_the_maps(self):
        maps = self.folder / "maps"
        maps.write_text("7f00-7f01 r--p 00000000 fe:01 12 /lib/libc.so.6\n7f02-7f03 rw-p 00000000 00:00 0\n"
                        "7f04-7f05 r-xp 00001000 fe:01 34 /a folder/libcublasLt.so.13\n", encoding="utf-8")
        self.assertEqual(cublaslt.loaded(maps), "/a folder/libcublasLt.so.13")
        self.assertIsNone(cublaslt.loaded(self.folder / "none"))

    def test_memscape_uses_it_unless_the_user_chose(self):
        cli = self.cli(self.ANSWERS)
        with mock.patch.object(cublaslt, "find", return_value="/of/torch"), mock.patch.dict(os.environ):
            os.environ.pop(cublaslt.VARIABLE, None)
            comparison.ask(cli, "measure", "precision", {})
            self.assertEqual((self.folder / "library").read_text(encoding="utf-8").strip(), "/of/torch")
            os.environ[cublaslt.VARIABLE] = "/chosen"
            comparison.ask(cli, "measure", "precision", {})
            self.assertEqual((self.folder / "library").read_text(encoding="utf-8").strip(), "/chosen")


class Arithmetic(unittest.TestCase):
    def test_a_ratio_is_the_median_of_the_ratios_within_rounds(self):
        rounds = comparison.Rounds()
        for ours, torch in ((1.0, 2.0), (10.0, 11.0), (2.0, 8.0)):  # the GPU drifts: medians over all would say 4
            rounds.begin()
            rounds.add("ours", ours)
            rounds.add("torch", torch)
        rounds.begin()
        rounds.add("ours", 100.0)  # PyTorch failed in this one
        rounds.add("torch", None)
        self.assertEqual(rounds.ratio("torch", "ours"), 2.0)
        self.assertEqual(rounds.seconds("torch"), 8.0)
        self.assertEqual(rounds.seconds("ours"), 6.0)
        self.assertAlmostEqual(rounds.spread("torch"), 9 / 8)
        self.assertIsNone(rounds.ratio("torch", "missing"))
        self.assertIsNone(rounds.seconds("missing"))

    def test_what_is_no_time_is_left_out(self):
        rounds = comparison.Rounds()
        rounds.begin()
        for value in (0, -1.0, float("nan"), float("inf"), True, "1"):
            rounds.add("ours", value)
        self.assertEqual(rounds.to_json(), {"rounds": [{}], "seconds": {}, "spread": {}, "errors": {}})

    def test_a_budget_ends(self):
        self.assertFalse(comparison.Budget(None).is_over())
        self.assertIsNone(comparison.Budget(None).left())
        self.assertTrue(comparison.Budget(0).is_over())
        self.assertFalse(comparison.Budget(60).is_over())

    def test_batches_and_flushes_are_those_of_pacing(self):  # tests/kernels/cuda/tst_pacing.cpp
        self.assertEqual([timer.batch_for(s) for s in (0, 1e-7, 3e-6, 40e-6, 60e-6)], [200, 200, 67, 5, 1])
        mega = 1_000_000
        self.assertEqual(timer.flush_bytes(4 * mega, 16_000 * mega), 256 * mega)
        self.assertEqual(timer.flush_bytes(126 * mega, 180_000 * mega), 378 * mega)
        self.assertEqual(timer.flush_bytes(4 * mega, 400 * mega), 100 * mega)

    def test_operations_of_attention(self):
        case = {"batch": 2, "heads": 3, "sequence": 4, "head_dim": 5, "causal": False, "pass": "forward"}
        self.assertEqual(attention_torch.operations(case), 4 * 2 * 3 * 16 * 5)
        self.assertEqual(attention_torch.operations(case | {"causal": True, "pass": "backward"}), 2.5 * 4 * 2 * 3 * 10 * 5)


class Printing(unittest.TestCase):
    def rounds(self, **sides):
        rounds = comparison.Rounds()
        rounds.begin()
        for side, seconds in sides.items():
            rounds.add(side.replace("_", " "), seconds)
        return rounds

    def test_products(self):
        row = {"format": "bf16", "cublaslt": {"version": "13.0.2"},
               "sizes": {1000: self.rounds(ours=1e-3, torch=0.9e-3), 2000: self.rounds(torch=1e-3)}}
        row["sizes"][2000].fail("ours", "this size was skipped")
        text, ratios = matmul_torch.verdict(row)
        self.assertEqual(list(ratios), [1000])
        self.assertAlmostEqual(ratios[1000], 0.9)
        self.assertEqual(text, "bf16: 1000: 0.90 of torch's 2.222 T/s, 2000: ours: this size was skipped; at least 0.90 "
                               "(goal 0.95: MISSED); by cuBLASLt 13.0.2")
        json.dumps(matmul_torch.to_json(row, ratios))

    def test_attention(self):
        case = next(attention_torch.cases([8192], ["d128-full-forward"]))
        self.assertEqual((case["batch"], case["heads"]), (2, 16))
        seconds = attention_torch.operations(case) / 500e12
        rounds = self.rounds(ours=2 * seconds, torch_FLASH=1.8 * seconds, torch_CUDNN=seconds)
        rounds.fail("v4", "no answer")
        text = attention_torch.verdict(attention_torch.row_of(case, rounds))
        self.assertEqual(text, "d128-full-forward-8192: ours 250, torch FLASH 278, torch CUDNN 500 TFLOP/s; 90% of FLASH; "
                               "50% of CUDNN (goal 85%: reached)\n    v4: no answer")

    def test_the_cases_that_matter_come_first(self):
        names = [attention_torch.name_of(case) for case in attention_torch.cases(attention_torch.LENGTHS)]
        self.assertEqual(names[:4], ["d128-full-forward-8192", "d128-full-backward-8192", "d128-causal-forward-8192",
                                     "d128-causal-backward-8192"])
        self.assertEqual(len(set(names)), 48)

    def test_copies(self):
        gib = 1 << 30
        row = torch_copy.row_of(1, self.rounds(ours=2 * gib / 3.9e12, torch=2 * gib / 4e12))
        self.assertEqual(torch_copy.verdict(row), "copy of 1 GiB: ours 3.900 TB/s, torch 4.000 TB/s, 97.5% (goal 95%: reached)")

    def test_steps(self):
        rounds = self.rounds(ours=1e-3, torch=2e-3)
        row = {"format": "fp16", "ratio": {"torch": rounds.ratio("torch", "ours")}, "peaks": {"ours": 1 << 20, "torch": 3 << 20}}
        self.assertEqual(train_torch.verdict(row | rounds.to_json()), "step in fp16: ours 1.000 ms, torch 2.000 ms; 2.00 of torch's "
                         "speed; peak ours 1.0 MiB, torch 3.0 MiB")


class Scripts(Folder):
    def end_of(self, script, *arguments):
        said = io.StringIO()
        with mock.patch.object(sys, "argv", [script.__name__, *map(str, arguments)]), contextlib.redirect_stderr(said), \
                contextlib.redirect_stdout(said):
            try:
                return script.main(), said.getvalue()
            except SystemExit as end:
                return end.code, said.getvalue()


class Arguments(Scripts):
    SCRIPTS = (attention_torch, matmul_torch, torch_copy, train_torch, training_memory)

    def test_a_program_and_a_file_are_needed(self):
        for script in self.SCRIPTS:
            status, said = self.end_of(script)
            self.assertEqual(status, 2, script.__name__)
            self.assertIn("cli, out", said)

    def test_unknown_words_are_refused(self):
        for script, word in ((matmul_torch, "--formats=fp12"), (train_torch, "--formats=fp8"), (training_memory, "--what=all"),
                             (attention_torch, "--lengths=long"), (torch_copy, "--sizes=big")):
            status, said = self.end_of(script, "cli", "out.json", word)
            self.assertEqual(status, 2, said)

    def test_without_a_gpu_there_is_nothing_to_compare(self):
        for script in self.SCRIPTS[:4]:
            with mock.patch.object(script, "has_gpu", return_value=False):
                status, said = self.end_of(script, "cli", self.folder / "out.json")
            self.assertEqual(status, 3)
            self.assertIn("no GPU", said)


class WholeRuns(Scripts):
    """With PyTorch's times made up."""

    def run_copy(self, ours, torch):
        gib = 1 << 30
        record = {"measured": {"series": [{"key": "bandwidth", "x": {"values": [2 * gib]}, "y": {"values": [ours]}}]}}
        with mock.patch.object(torch_copy, "has_gpu", return_value=True), \
                mock.patch.object(torch_copy, "theirs", return_value=2 * gib / torch), \
                mock.patch.object(torch_copy, "Timer") as timer:
            timer.return_value.describe.return_value = {"torch": "2.11"}
            status, said = self.end_of(torch_copy, self.cli(self.ANSWERS, record), self.folder / "copy.json", "--sizes", 1,
                                       "--rounds", 2)
        return status, said, json.loads((self.folder / "copy.json").read_text(encoding="utf-8"))

    def test_copies_are_compared_in_rounds(self):
        status, said, document = self.run_copy(3.9e12, 4e12)
        self.assertEqual(status, 0, said)
        self.assertEqual(len(document["rows"][0]["rounds"]), 2)
        self.assertAlmostEqual(document["rows"][0]["share"], 0.975)
        self.assertEqual(len(self.asked()), 2)
        self.assertIn("working_set=2147483648:2147483648", self.asked()[0])
        self.assertEqual(self.run_copy(3.7e12, 4e12)[0], 1)

    def test_products_are_batched_as_ours_are(self):
        record = {"measured": {"series": [{"key": "time", "x": {"values": [64]}, "y": {"values": [1e-5]}}],
                               "detail": {"points": [{"x": 64, "batch": 20}]}}}
        with mock.patch.object(matmul_torch, "has_gpu", return_value=True), mock.patch.object(matmul_torch, "Timer") as timer, \
                mock.patch.object(matmul_torch, "theirs", return_value=1e-5) as theirs:
            timer.return_value.describe.return_value, timer.return_value.retaken = {}, 0
            status, said = self.end_of(matmul_torch, self.cli(self.ANSWERS, record), self.folder / "m.json", "--sizes", 64,
                                       "--formats", "bf16", "--rounds", 2)
        self.assertEqual(status, 0, said)
        self.assertEqual([call.args[1:] for call in theirs.call_args_list], [("bf16", 64, 20)] * 2)
        document = json.loads((self.folder / "m.json").read_text(encoding="utf-8"))
        self.assertEqual(document["rows"][0]["ratio"], {"64": 1.0})
        self.assertTrue(document["whole"])

    def test_a_budget_that_is_over_leaves_what_there_is(self):
        with mock.patch.object(matmul_torch, "has_gpu", return_value=True), mock.patch.object(matmul_torch, "Timer") as timer:
            timer.return_value.describe.return_value = {}
            status, said = self.end_of(matmul_torch, "cli", self.folder / "m.json", "--budget", 0)
        self.assertEqual(status, 1, said)
        self.assertFalse(json.loads((self.folder / "m.json").read_text(encoding="utf-8"))["whole"])


class Memory(Folder):
    def test_both_kinds_take_turns(self):
        options = mock.Mock(what="both", only=[])
        asked = training_memory.cases_of(options)
        self.assertEqual(len(asked), len(memory_cases.TRAINING) + len(memory_cases.INFERENCE))
        self.assertEqual([training_memory.kind_of(case) for case in asked[:4]], ["training", "forward", "training", "generation"])
        self.assertGreaterEqual(len(memory_cases.TRAINING), 28)
        self.assertEqual(len(set(map(memory_cases.name_of, asked))), len(asked))
        self.assertTrue(all("bert" in case.network for case in training_memory.cases_of(mock.Mock(what="both", only=["bert"]))))

    def test_errors_are_relative_to_what_was_measured(self):
        errors = training_memory.errors_of({"allocated": 101, "reserved": 90, "seconds": 1}, {"allocated": 100, "reserved": 100})
        self.assertEqual(set(errors), {"allocated", "reserved"})
        self.assertAlmostEqual(errors["allocated"], 0.01)
        self.assertAlmostEqual(errors["reserved"], -0.1)

    def rows(self, *errors, kind="training"):
        return [{"kind": kind, "errors": {"allocated": error}, "measured": {}, "predicted": {}} for error in errors]

    def test_goals_are_of_training(self):
        for errors, failed in (((0.01, -0.005), False), ((0.02, 0.02), True), ((0.0,) * 9 + (0.04,), True)):
            rows = self.rows(*errors)
            self.assertEqual(training_memory.is_failed(rows, training_memory.summary_of(rows)), failed, errors)
        rows = self.rows(0.5, kind="generation")
        self.assertFalse(training_memory.is_failed(rows, training_memory.summary_of(rows)))
        self.assertTrue(training_memory.is_failed([], {}))

    def test_one_failure_does_not_stop_the_others(self):
        record = {"predicted": {"figures": {key: {"value": 1 << 20} for key in ("peak_allocated", "peak_reserved", "step_time")}}}
        options = mock.Mock(cli=self.cli(self.ANSWERS, record), what="training", only=["gpt2-8"], budget=None, check=False,
                            device="cuda:3", out=self.folder / "memory.json")
        answers = iter([{"error": "out of memory"}] + [{"allocated": 1 << 20, "reserved": 1 << 20, "seconds": 1e9}] * 100)
        with mock.patch.object(training_memory, "measured", side_effect=lambda *_: dict(next(answers))), \
                mock.patch.object(training_memory, "config_file", return_value="gpt2.json"), \
                contextlib.redirect_stdout(io.StringIO()) as said:
            status = training_memory.run(options, self.folder)
        document = json.loads((self.folder / "memory.json").read_text(encoding="utf-8"))
        self.assertEqual(status, 1)  # one case failed
        self.assertGreater(document["summary"]["training"]["cases"], 5)
        self.assertEqual(document["summary"]["training"]["worst_error"], 0)
        self.assertIn("out of memory", said.getvalue())
        self.assertTrue(all("--device cuda:3" in line for line in self.asked()))  # predicted for the GPU that it runs on

    def test_a_case_that_hangs_is_ended(self):
        def hangs(*_):
            time.sleep(60)
        began = time.monotonic()
        with mock.patch.object(training_memory, "run_case", hangs):
            answer = training_memory.measured(memory_cases.TRAINING[0], True, 0.3)
        self.assertIn("no answer within", answer["error"])
        self.assertLess(time.monotonic() - began, 5)

    def test_a_case_that_dies_is_said(self):
        with mock.patch.object(training_memory, "run_case", lambda *_: os._exit(7)):
            self.assertIn("ended without an answer", training_memory.measured(memory_cases.TRAINING[0], True, 30)["error"])


if __name__ == "__main__":
    unittest.main()
