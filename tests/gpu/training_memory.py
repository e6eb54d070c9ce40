#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Peak memory of real networks in PyTorch on this GPU, in training and in inference, beside what Memscape predicts for this GPU.

    training_memory.py CLI OUT.json [--what training|inference|both] [--only NAME…] [--budget SECONDS] [--check]

Each case (memory_cases.py) is a network of transformers with random weights (networks.py), in a process of its own:

  training    three steps; the third step's max_memory_allocated and max_memory_reserved against peak_allocated and peak_reserved
              of `predict training-memory`, its time beside the predicted floor; the loop takes the loss alone
  forward     the second of two passes under no_grad, without a cache, against weights + activations of inference-memory
  generation  the prompt in one pass, then token after token with the cache that transformers keeps, against weights + KV cache +
              activations: an upper bound, since the cache is full only when the prompt's activations are gone; the cache's own bytes
              beside kv_cache

One case's failure or hang does not stop the others. Ends with 1 when a case fails, the mean error of the allocated training
peaks is above 1 % or one is above 3 %, or a cache is not what was predicted to the byte; with 3 when there is no GPU.

--check needs no GPU: every case runs on the CPU with two layers and few tokens, and the prediction is made for an H200; no bytes of
PyTorch's are compared but those of the cache."""
import argparse
import json
import multiprocessing
import pathlib
import statistics
import sys
import tempfile

from comparison import Budget, add_common, ask, figure, no_gpu, say, write
from memory_cases import INFERENCE, TRAINING, Training, name_of

CASE_SECONDS = 150
MEAN_GOAL, WORST_GOAL, CACHE_GOAL = 0.01, 0.03, 1e-9


def small(case):
    """What a CPU runs in a moment."""
    if isinstance(case, Training):
        return case._replace(batch=1, sequence=32)
    return case._replace(batch=1, prompt=24, generated=min(case.generated, 4))


def run_case(case, check, pipe):
    """In the child: PyTorch is first touched here."""
    try:
        import memory_torch
        if check:
            case = small(case)
        pipe.send(memory_torch.run(case, "cpu" if check else "cuda"))
    except BaseException as error:  # whatever it is, it is this case's alone
        pipe.send({"error": (str(error).strip().splitlines() or [type(error).__name__])[0]})


def measured(case, check, timeout):
    """In a process of its own, so that no case inherits another's cached segments."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=run_case, args=(case, check, there))
    process.start()
    there.close()
    patience = 0.0
    try:
        if not here.poll(timeout):
            return {"error": f"no answer within {timeout:.0f} s"}
        patience = 20.0  # to give the GPU's memory back
        return here.recv()
    except EOFError:
        return {"error": "the process ended without an answer"}
    finally:
        process.join(patience)
        process.kill()
        process.join()


def config_file(case, folder):
    import networks
    file = pathlib.Path(folder) / f"{case.network}.json"
    if not file.exists():
        file.write_text(json.dumps(networks.description(case.network)), encoding="utf-8")
    return file


def predicted(options, case, folder, device):
    is_training = isinstance(case, Training)
    try:
        words = {"model": config_file(case, folder)} | case.words()
    except Exception as error:  # transformers lacks the network, or refuses its configuration
        return {"error": f"{type(error).__name__}: {error}"}
    record = ask(options.cli, "predict", "training-memory" if is_training else "inference-memory", words, device, CASE_SECONDS)
    if "error" in record:
        return record
    keys = ("peak_allocated", "peak_reserved", "step_time") if is_training else ("weights", "activations", "kv_cache")
    found = {key: figure(record["answer"], key) for key in keys}
    if None in found.values():
        return {"error": f"the prediction lacks {', '.join(key for key, value in found.items() if value is None)}"}
    if is_training:
        return {"allocated": found["peak_allocated"], "reserved": found["peak_reserved"], "seconds": found["step_time"]}
    cache = found["kv_cache"] if case.generated else 0
    return {"allocated": found["weights"] + found["activations"] + cache, "cache": cache, **found}


def cache_of_small(case, cache):
    """The predicted bytes of the cache for what a CPU runs of a case: fewer layers, sequences and tokens."""
    import networks
    run = small(case)
    return (cache * networks.SMALL_LAYERS / networks.configuration(case.network).num_hidden_layers
            * run.batch * (run.prompt + run.generated) / (case.batch * (case.prompt + case.generated)))


def errors_of(ours, theirs):
    """(predicted - measured) / measured of what both have."""
    return {key: ours[key] / theirs[key] - 1 for key in ("allocated", "reserved", "cache", "seconds")
            if ours.get(key) and theirs.get(key)}


def kind_of(case):
    return "training" if isinstance(case, Training) else "generation" if case.generated else "forward"


def row_text(row):
    problem = row["measured"].get("error") or row["predicted"].get("error")
    if problem:
        return f"{row['kind']} {row['name']}: {problem}"
    texts = {"allocated": "allocated {:.1f} MiB", "reserved": "reserved {:.1f} MiB", "cache": "cache {:.1f} MiB"}
    parts = [text.format(row["measured"][key] / 2**20) + f" ({row['errors'][key]:+.2%})" for key, text in texts.items()
             if key in row["errors"]]
    if "seconds" in row["errors"]:
        parts.append(f"step {row['measured']['seconds'] * 1e3:.1f} ms (floor {row['errors']['seconds']:+.1%})")
    return f"{row['kind']} {row['name']}: " + (", ".join(parts) or f"runs; predicted {row['predicted']['allocated'] / 2**20:.1f} MiB")


def summary_of(rows):
    """Mean and largest error of the allocated peaks by kind."""
    summary = {}
    for kind in ("training", "forward", "generation"):
        errors = [abs(row["errors"]["allocated"]) for row in rows if row["kind"] == kind and "allocated" in row["errors"]]
        if errors:
            summary[kind] = {"cases": len(errors), "mean_error": statistics.fmean(errors), "worst_error": max(errors)}
    return summary


def is_failed(rows, summary):
    training = summary.get("training")
    return (not rows or any("error" in row["measured"] or "error" in row["predicted"] for row in rows)
            or any(abs(row["errors"].get("cache", 0)) > CACHE_GOAL for row in rows)
            or bool(training and (training["mean_error"] > MEAN_GOAL or training["worst_error"] > WORST_GOAL)))


def cases_of(options):
    """Both kinds in turn, so that a run that is cut off has some of each."""
    training = TRAINING if options.what != "inference" else []
    inference = INFERENCE if options.what != "training" else []
    mixed = [case for pair in zip(training, inference) for case in pair]
    shorter = min(len(training), len(inference))
    asked = mixed + training[shorter:] + inference[shorter:]
    return [case for case in asked if not options.only or any(word in name_of(case) for word in options.only)]


def run(options, folder):
    budget, rows, asked = Budget(options.budget), [], cases_of(options)
    document = {"device": options.device, "rows": rows, "whole": False}
    device = "nvidia-h200" if options.check else options.device
    for case in asked:
        if budget.is_over():
            break
        left = budget.left()
        row = {"kind": kind_of(case), "name": name_of(case), "case": case._asdict(),
               "predicted": predicted(options, case, folder, device),
               "measured": measured(case, options.check, min(CASE_SECONDS, left) if left is not None else CASE_SECONDS)}
        if options.check and row["predicted"].get("cache"):
            row["predicted"]["cache"] = cache_of_small(case, row["predicted"]["cache"])
        row["errors"] = errors_of(row["predicted"], row["measured"])
        document |= row["measured"].pop("where", {})
        rows.append(row)
        say(row_text(row))
        document["summary"] = summary_of(rows)
        write(options.out, document)
    document["whole"] = len(rows) == len(asked)
    write(options.out, document)
    for kind, found in document.get("summary", {}).items():
        say(f"{kind}: {found['cases']} cases, mean error {found['mean_error']:.2%}, worst {found['worst_error']:.2%}")
    if not document["whole"]:
        say(f"{len(rows)} of {len(asked)} cases within the budget")
    return 1 if is_failed(rows, document.get("summary", {})) else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_common(parser)
    parser.add_argument("--what", choices=("training", "inference", "both"), default="both")
    parser.add_argument("--only", nargs="*", default=[])
    options = parser.parse_args()
    if not options.check and not pathlib.Path("/dev/nvidia0").exists():
        return no_gpu()
    with tempfile.TemporaryDirectory() as folder:
        return run(options, folder)


if __name__ == "__main__":
    sys.exit(main())
