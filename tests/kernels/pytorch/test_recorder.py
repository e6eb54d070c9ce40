# SPDX-License-Identifier: Apache-2.0
"""The recorder and the collector beneath it, with the torch of this Python or of another one here; 77 where none has it."""
import io
import os
import pickle
import pickletools
import subprocess
import sys
import tempfile
import threading
import unittest
from contextlib import redirect_stderr

sys.dont_write_bytecode = True
PACKAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../kernels/pytorch")
sys.path.insert(0, PACKAGE)

try:
    import torch
except ImportError:
    for python in (os.environ.get("MEMSCAPE_PYTHON"), os.path.join(PACKAGE, "../../build/pytorch/bin/python"), "/usr/bin/python3"):
        looks = "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)"
        if python and os.path.exists(python) and subprocess.run([python, "-c", looks]).returncode == 0:
            os.execv(python, [python, *sys.argv])
    print("skipped: no python3 here has torch")
    sys.exit(77)

import torch.nn.functional as F
from torch import nn

import memscape_probe as mp
from memscape_probe.events import Collector

torch.set_num_threads(1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.act, self.down = nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 10)
        self.register_buffer("table", torch.zeros(64))

    def forward(self, x):
        return self.down(self.act(self.up(x + self.table)))


class Loop:
    """A training loop of the plain kind."""

    def __init__(self):
        self.model = Net()
        self.optimizer = torch.optim.AdamW(self.model.parameters())

    def step(self, fails=False):
        x, y = torch.randn(32, 64), torch.zeros(32, dtype=torch.long)
        with mp.region("the loss"):
            loss = F.cross_entropy(self.model(x), y)
        if fails:
            raise RuntimeError("out of everything")
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)


def changes(events):
    return sum(e.bytes if e.action == "alloc" else -e.bytes for e in events)


class TestCollector(unittest.TestCase):
    def collected(self, known, steps=3):
        loop = Loop()
        collector = Collector("cpu", *((loop.model, loop.optimizer) if known else ()))
        with collector:
            for _ in range(steps):
                loop.step()
                collector.step()
        return collector.recording()

    def test_its_sum_is_the_profilers(self):
        self.assertEqual(self.collected(True).difference, 0)

    def test_what_lives_is_what_began_and_the_changes(self):
        r = self.collected(True)
        self.assertEqual(sum(b.bytes for b in r.existing) + changes(r.events), sum(b.bytes for b in r.alive))

    def test_steps_after_the_first_are_alike_and_leave_nothing(self):
        r = self.collected(True, 4)
        one, other = ([(e.action, e.bytes, e.operator, e.module, e.phase, e.category) for e in r.events[s.first:s.last]]
                      for s in r.steps[2:4])
        self.assertEqual(one, other)
        self.assertEqual(changes(r.events[r.steps[3].first:r.steps[3].last]), 0)

    def test_labels(self):
        for known in (True, False):
            r = self.collected(known)
            events = r.events[r.steps[1].first:r.steps[1].last]
            made = {(e.module, e.operator, e.phase, e.category, e.bytes) for e in events if e.action == "alloc"}
            self.assertIn(("up", "addmm", "forward", "activation", 32 * 128 * 4), made)
            self.assertIn(("act", "gelu_backward", "backward", "temporary", 32 * 128 * 4), made)
            gradients = {e.name: e.bytes for e in events if e.action == "alloc" and e.category == "gradient"}
            self.assertEqual(gradients, {"up.weight": 128 * 64 * 4, "up.bias": 128 * 4, "down.weight": 1280 * 4,
                                         "down.bias": 40})
            state = sum(b.bytes for b in r.alive if b.category == "optimizer_state")
            self.assertGreaterEqual(state, 2 * sum(gradients.values()))
            parameters = {b.name for b in r.alive if b.category == "parameter"}
            self.assertEqual(parameters, {"up.weight", "up.bias", "down.weight", "down.bias", "table"})


    @unittest.skipIf(torch.__version__.startswith("1."), "records every step whole")
    def test_repeated_steps_have_the_labels_of_whole_ones(self):
        told = lambda e: (e.action, e.bytes, e.operator, e.module, e.phase, e.category, e.region, e.name)
        for by_optimizer in (False, True):
            recordings = []
            for repeats in (False, True):
                loop = Loop()
                collector = Collector("cpu", loop.model, loop.optimizer, window=4, repeats=repeats)
                if by_optimizer:
                    collector.hooks.on_step = collector.optimizer_step
                with collector:
                    for _ in range(9):
                        loop.step()
                        if not by_optimizer:
                            collector.step()
                    self.assertEqual(collector.is_repeating, repeats)
                recordings.append(collector.recording())
            whole, repeated = recordings
            self.assertGreaterEqual(collector.stream.repeated, 4)
            self.assertEqual(len(repeated.steps), len(whole.steps))
            self.assertEqual([told(e) for e in repeated.events], [told(e) for e in whole.events])
            self.assertEqual(repeated.difference, 0)
            kept = [sorted((b.bytes, b.category, b.name or "") for b in r.alive
                           if b.address not in {e.address for e in r.existing}) for r in recordings]
            self.assertEqual(kept[0], kept[1])

    @unittest.skipIf(torch.__version__.startswith("1."), "records every step whole")
    def test_a_step_that_does_not_repeat_ends_repeating(self):
        loop = Loop()
        collector = Collector("cpu", loop.model, loop.optimizer, window=4, repeats=True)
        with collector:
            for step in range(14):
                if step == 8:
                    torch.ones(1000) + 1
                loop.step()
                collector.step()
        r = collector.recording()
        self.assertFalse(collector.is_repeating)
        self.assertTrue(any("Step 8" in note for note in r.notes), r.notes)
        labels = [{e.operator for e in r.events[s.first:s.last] if e.action == "alloc"} for s in r.steps]
        self.assertIn("addmm", labels[7])       # repeated
        self.assertEqual(labels[8], {None})     # unlike
        self.assertIn("addmm", labels[13])      # whole again
        self.assertEqual(sum(b.bytes for b in r.existing) + changes(r.events), sum(b.bytes for b in r.alive))


class TestRecorder(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "run.memscape-run")

    def tearDown(self):
        self.folder.cleanup()

    def run_file(self):
        with open(self.path, "rb") as file:
            data = file.read()
        # Plain values alone: a reader need not run what a pickle may call.
        self.assertFalse({op.name for op, _, _ in pickletools.genops(data)} & {"GLOBAL", "STACK_GLOBAL", "REDUCE", "NEWOBJ"})
        run = pickle.loads(data)
        self.check_whole(run)
        return run

    def check_whole(self, run):
        """Entries, labels, steps and segments belong together."""
        live, known = {}, run["memscape"]["labels"]
        for entry in run["device_traces"][0]:
            self.assertIn(entry["label"], range(len(known)))
            if entry["action"] == "alloc":
                live[entry["addr"]] = entry["size"]
            elif entry["action"] == "free_completed":
                self.assertEqual(live.pop(entry["addr"]), entry["size"])
        self.assertEqual(live, {s["address"]: s["total_size"] for s in run["segments"]})
        end = 0
        for step in run["memscape"]["steps"]:
            self.assertTrue(end <= step["first"] <= step["last"] <= len(run["device_traces"][0]))
            end = step["last"]

    def record(self, loop, steps=3, says_steps=True, **options):
        with redirect_stderr(io.StringIO()) as said:
            with mp.record(self.path, **options) as r:
                for _ in range(steps):
                    loop.step()
                    if says_steps:
                        r.step()
        return said.getvalue()

    def test_three_lines(self):
        loop = Loop()
        said = self.record(loop, model=loop.model, optimizer=loop.optimizer)
        run = self.run_file()
        self.assertIn("3 steps", said)
        self.assertEqual([s["index"] for s in run["memscape"]["steps"]], [0, 1, 2])
        self.assertIn("the loss", {label.get("region") for label in run["memscape"]["labels"]})
        self.assertIsNone(run["memscape"]["error"])

    def test_neither_model_nor_steps(self):
        self.record(Loop(), says_steps=False)
        self.assertEqual(len(self.run_file()["memscape"]["steps"]), 3)

    def test_it_ends_after_its_steps(self):
        self.record(Loop(), steps=8, says_steps=True)
        self.assertEqual(len(self.run_file()["memscape"]["steps"]), 8)
        loop = Loop()
        with redirect_stderr(io.StringIO()), mp.record(self.path, loop.model, loop.optimizer, steps=2) as r:
            for _ in range(6):
                loop.step()
                r.step()
        run = self.run_file()
        self.assertEqual(len(run["memscape"]["steps"]), 2)
        self.assertTrue(any(" %)" in note for note in run["memscape"]["notes"]), run["memscape"]["notes"])

    def test_an_exception_is_in_the_file_and_goes_on(self):
        loop = Loop()
        with self.assertRaisesRegex(RuntimeError, "out of everything"), redirect_stderr(io.StringIO()):
            with mp.record(self.path, loop.model, loop.optimizer) as r:
                loop.step()
                r.step()
                loop.step(fails=True)
        run = self.run_file()
        self.assertIn("out of everything", run["memscape"]["error"])
        last = run["memscape"]["labels"][run["device_traces"][0][-1]["label"]]
        self.assertEqual((last["step"], len(run["memscape"]["steps"])), (1, 2))

    def test_other_threads_may_run(self):
        stop = threading.Event()

        def work():
            while not stop.is_set():
                torch.randn(64, 64) @ torch.randn(64, 64)

        thread = threading.Thread(target=work)
        thread.start()
        try:
            loop = Loop()
            self.record(loop, model=loop.model)
        finally:
            stop.set()
            thread.join()
        self.assertEqual(len(self.run_file()["memscape"]["steps"]), 3)

    def test_a_file_that_cannot_be_written_is_a_message(self):
        loop = Loop()
        with redirect_stderr(io.StringIO()) as said:
            with mp.record(self.path, loop.model) as r:
                loop.step()
                os.mkdir(self.path)  # a folder is in the way
        self.assertIn("was not written", said.getvalue())
        self.assertEqual(os.listdir(self.folder.name), ["run.memscape-run"])
        with redirect_stderr(io.StringIO()):
            self.assertTrue(r.save(self.path + "2"))
        with self.assertRaisesRegex(OSError, "no folder"):
            mp.record(os.path.join(self.folder.name, "none", "run"))
        with self.assertRaisesRegex(ValueError, "steps"):
            mp.record(self.path, steps=0)

    def test_nothing_is_left_behind(self):
        loop = Loop()
        before = (torch.autograd.backward, torch.autograd.grad, vars(torch.optim.AdamW).get("step"))
        self.record(loop, model=loop.model, optimizer=loop.optimizer)
        self.assertEqual(before, (torch.autograd.backward, torch.autograd.grad, vars(torch.optim.AdamW).get("step")))
        self.assertFalse(torch.autograd._profiler_enabled())

    def test_run_leaves_the_script_alone(self):
        script = os.path.join(self.folder.name, "train.py")
        with open(script, "w") as file:
            file.write("import sys, torch\nfrom torch import nn\nassert __name__ == '__main__' and sys.argv[1:] == ['--lr', '1']\n"
                       "m = nn.Linear(8, 8)\no = torch.optim.SGD(m.parameters(), lr=0.1)\n"
                       "for i in range(1000000):\n    o.zero_grad(); m(torch.randn(4, 8)).sum().backward(); o.step()\n")
        done = subprocess.run([sys.executable, "-m", "memscape_probe", "run", "--steps", "3", "-o", self.path, script, "--lr", "1"],
                              env=dict(os.environ, PYTHONPATH=PACKAGE, PYTHONDONTWRITEBYTECODE="1"), capture_output=True,
                              text=True, timeout=280)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(self.run_file()["memscape"]["steps"]), 3)


class TestExport(unittest.TestCase):
    def test_it_says_what_it_needs_or_exports(self):
        version = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "net.json")
            if version < (2, 1):
                with self.assertRaisesRegex(Exception, "needs torch 2.1"):
                    mp.export(Net(), torch.zeros(4, 64), path)
                return
            mp.export(Net(), torch.zeros(4, 64), path, loss=F.cross_entropy, targets=[torch.zeros(4, dtype=torch.long)])
            with open(path) as file:
                self.assertIn('"memscape-network"', file.read())


if __name__ == "__main__":
    unittest.main()
