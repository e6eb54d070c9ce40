# SPDX-License-Identifier: Apache-2.0
"""python3 -m memscape_probe run [--steps N] [-o FILE] [--device D] SCRIPT ARGUMENTS…

Runs a training script as it is, records the first N steps of its optimizer and ends the script there."""
import argparse
import os
import runpy
import sys
import traceback

from .recorder import Recorder


class _Enough(BaseException):
    """Leaves the script; no `except Exception` of it holds this."""


def _arguments(words):
    parser = argparse.ArgumentParser(
        prog="python3 -m memscape_probe run",
        description="Record the memory of the first steps of a training script into a run file.")
    parser.add_argument("--steps", type=int, default=10, help="steps of the optimizer to record, then stop (10)")
    parser.add_argument("-o", "--output", help="the run file (SCRIPT's name with .memscape-run)")
    parser.add_argument("--device", help="cpu or cuda:0 (the GPU when there is one)")
    parser.add_argument("-m", dest="module", action="store_true", help="SCRIPT is a module's name, as in python3 -m")
    parser.add_argument("script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args(words)
    if options.steps < 1:
        parser.error("--steps is a whole number from 1 on")
    if not options.module and not os.path.isfile(options.script):
        parser.error(f"{options.script}: no such file")
    return options


def _run(options):
    """The script, as python3 would run it."""
    sys.argv = [options.script] + options.arguments
    if options.module:
        sys.path.insert(0, os.getcwd())
        runpy.run_module(options.script, run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = os.path.dirname(os.path.abspath(options.script))
        runpy.run_path(options.script, run_name="__main__")


def main(words):
    """The exit code: the script's own; 1 when it raised or the file was not written."""
    options = _arguments(words)
    name = options.script.rpartition(".")[2] if options.module else os.path.splitext(os.path.basename(options.script))[0]
    recorder = Recorder(options.output or name + ".memscape-run", device=options.device, steps=options.steps)

    def enough(steps):
        if steps >= options.steps:
            raise _Enough

    recorder.on_optimizer_step = enough
    code, failure = 0, None
    recorder.__enter__()
    try:
        _run(options)
    except _Enough:
        pass
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else (0 if leaving.code is None else 1)
        if isinstance(leaving.code, str):
            print(leaving.code, file=sys.stderr)
    except BaseException as error:
        failure = error
        traceback.print_exception(type(error), error, error.__traceback__)
        code = 130 if isinstance(error, KeyboardInterrupt) else 1
    recorder.__exit__(type(failure) if failure else None, failure, None)
    return code if recorder.written else code or 1
