#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What other tools say of the published rows, written to resources/published/tools/.

    other_tools.py MEMSCAPE_CLI

Needs accelerate, llm-analysis, transformers and torch (PyPI). A tool is asked only for rows that it can express: accelerate for training
with Adam and for weights alone, DeepSpeed's formula for what ZeRO stages keep, LLaMA-Factory's table for each of its
methods, llm-analysis for steps of decoders whose feed-forward is a whole multiple of their width. All defaults are the
tools' own; SimuMax (not on PyPI) prints its predictions in the table of its measurements: simumax.json was read from
there. Parameters are counted by MEMSCAPE_CLI, whose counts are those of transformers.
"""
import glob
import importlib.metadata
import json
import os
import subprocess
import sys

root = os.path.dirname(os.path.abspath(__file__)) + "/../../.."
published = os.path.join(root, "resources", "published")


def settings(table, row):
    return dict(text.split("=", 1) for text in table.get("parameters", []) + row.get("parameters", []))


def memory_rows():
    for table, row, given in rows():
        if row["family"] != "step time" and row["unit"] in ("GB", "GiB", "MiB", "MB"):
            yield table, row, given


def rows():
    for name in sorted(glob.glob(os.path.join(published, "*.json"))):
        with open(name) as file:
            table = json.load(file)
        for row in table["rows"]:
            if "cannot" not in row:
                yield table, row, settings(table, row)


shared = ("tensor", "pipeline", "context", "expert")


def ranks(given, *kinds):
    """Ranks of these kinds of parallelism together."""
    together = 1
    for kind in kinds:
        together *= int(given.get(kind + "_parallel", 1))
    return together


counts = {}


def parameters_of(model):
    if model not in counts:
        path = os.path.join(published, model) if model.startswith("models/") else model
        answer = subprocess.run([sys.argv[1], "predict", "training-memory", "model=" + path, "advice=none", "batch=1", "sequence=8", "--device", "nvidia-h200", "--json"],
                                check=True, capture_output=True, text=True)
        counts[model] = json.loads(answer.stdout)["predicted"]["figures"]["parameter_count"]["value"]
    return counts[model]


def accelerate(row, given):
    """The larger of its four numbers, as `accelerate estimate-memory` prints it."""
    from accelerate.commands.estimate import estimate_training_usage
    count = parameters_of(given["model"])
    if row["family"] == "inference":
        return count * {"bf16": 2, "int8": 1, "nf4": 0.5}[given["weight_precision"]]
    if row["family"] == "full training" and given.get("optimizer", "adamw") == "adamw" and ranks(given, "data", *shared) == 1:
        return max(estimate_training_usage(4 * count, "float16").values())
    return None


def deepspeed(row, given):
    """deepspeed/runtime/zero/stage_1_and_2.py and stage3.py, estimate_zero{2,3}_model_states_mem_needs without offload; the largest layer's 4 B left out."""
    if row["family"] != "full training" or given.get("optimizer", "adamw") != "adamw" or given["precision"] != "bf16-mixed" or ranks(given, *shared[1:]) > 1:
        return None
    count, copies = parameters_of(given["model"]) / ranks(given, "tensor"), ranks(given, "data")
    return (18 * count / copies) if given.get("zero") == "3" else 2 * count + 18 * count / copies


def llama_factory(row, given):
    """The column for x billion parameters."""
    count, adapter = parameters_of(given["model"]), given.get("adapter", "none")
    if row["family"] == "inference" or ranks(given, "data", *shared) > 1:
        return None
    if adapter != "none":
        return count * (0.5 if given.get("base_precision", "").startswith("nf4") or adapter == "qlora" else 2)
    if given.get("optimizer", "adamw") != "adamw":
        return None
    return count * (8 if given["precision"] == "bf16" else 18)


gpus = {"nvidia-a100-40gb": "a100-sxm-40gb", "nvidia-a100-80gb": "a100-sxm-80gb", "nvidia-h100-sxm": "h100-sxm-80gb"}


def llm_analysis(row, given, device, efficiency):
    from llm_analysis.analysis import ActivationRecomputation, DSZeRO, LLMAnalysis
    from llm_analysis.config import ModelConfig, ParallelismConfig, get_dtype_config_by_name, get_gpu_config_by_name
    if device not in gpus or not given["model"].startswith("models/") or "batch" not in given:
        return None
    with open(os.path.join(published, given["model"])) as file:
        model = json.load(file)
    if model["model_type"] != "gpt2":
        return None
    sequence = int(given["sequence"])
    config = ModelConfig(name="published", num_layers=model["n_layer"], n_head=model["n_head"], hidden_dim=model["n_embd"],
                         vocab_size=model["vocab_size"], max_seq_len=sequence, expansion_ratio=4, model_type="gpt2")
    analysis = LLMAnalysis(config, get_gpu_config_by_name(gpus[device]), get_dtype_config_by_name("w16a16e16"),
                           ParallelismConfig(tp_size=1, pp_size=1, dp_size=ranks(given, "data"), sp_size=1), flops_efficiency=efficiency)
    try:
        answer = analysis.training(batch_size_per_gpu=int(given["batch"]), gradient_accumulation_steps=int(given.get("accumulation", 1)), seq_len=sequence,
                                   ds_zero=DSZeRO(int(given.get("zero", 0))), flash_attn=given.get("attention", "eager") != "eager",
                                   activation_recomputation=ActivationRecomputation(2 if given.get("checkpointing") == "block" else 0))
    except AssertionError: # of what ran, it says that it does not fit
        return None
    return answer["latency_per_iter"]


def memory_tracker(row, given):
    """torch.distributed._tools.mem_tracker on two steps of the model of transformers with fake tensors, which take
    minutes: its peak over a step with state. One processor's: there are no kernels of a GPU to choose from."""
    import torch
    import transformers
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.distributed._tools.mem_tracker import MemTracker
    plain = given.get("optimizer", "adamw") == "adamw" and not given.keys() & {"checkpointing", "compile", "loss", "adapter", "zero"}
    if row["family"] != "full training" or not plain or given["model"] not in ("llama-3.2-3b", "vit-h-14"):
        return None
    transformers.modeling_utils.PreTrainedModel.initialize_weights = lambda self: None  # it reads what fake tensors lack
    config = catalogue_config(given["model"])
    kind, made = config["model_type"], config["architectures"][0]
    settings = transformers.AutoConfig.for_model(kind, **{k: v for k, v in config.items() if k not in ("model_type", "architectures", "torch_dtype")})
    settings._attn_implementation, settings.use_cache = "sdpa", False
    batch, low = int(given["batch"]), torch.bfloat16

    def inputs():
        if kind == "vit":
            return {"pixel_values": torch.randn(batch, 3, 224, 224), "labels": torch.randint(0, 1000, (batch,))}
        shape = (batch, int(given["sequence"]))
        return {"input_ids": torch.randint(0, config["vocab_size"], shape), "labels": torch.randint(0, config["vocab_size"], shape)}

    with FakeTensorMode(), torch.device("cpu"):
        torch.set_default_dtype(low if given["precision"] == "bf16" else torch.float32)
        model = getattr(transformers, made)(settings).train()
        torch.set_default_dtype(torch.float32)
        optimizer, tracker = torch.optim.AdamW(model.parameters(), foreach=True), MemTracker()
        tracker.track_external(model, optimizer)
        with tracker:
            for step in range(2):
                with torch.autocast("cpu", dtype=low, enabled=given["precision"] == "bf16-autocast"):
                    loss = model(**inputs()).loss
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
                del loss
                if step == 0:
                    tracker.reset_mod_stats()
        return tracker.get_tracker_snapshot("peak")[torch.device("cpu")]["Total"]


def catalogue_config(name):
    for path in glob.glob(os.path.join(root, "resources", "models", "*.json")):
        with open(path) as file:
            for model in json.load(file)["models"]:
                if model["name"] == name:
                    return model["config"]
    return None


def estimates(ask, from_rows):
    found = []
    for table, row, given in from_rows:
        value = ask(table, row, given)
        if value is not None:
            found.append({"table": table["title"], "row": row["row"], "figure": row["figure"], "value": value})
    return found


def write(name, tool, how, found):
    with open(os.path.join(published, "tools", name + ".json"), "w") as file:
        json.dump({"format": "memscape-tool-estimates", "version": 1, "tool": tool, "how": how, "rows": found}, file, indent=1)
        file.write("\n")


def version(package):
    return importlib.metadata.version(package)


def main():
    write("accelerate", "accelerate " + version("accelerate"), "commands/estimate.py: training with Adam, or the weights alone",
          estimates(lambda table, row, given: accelerate(row, given), memory_rows()))
    write("deepspeed", "DeepSpeed 0.19.8", "runtime/zero: estimate_zero2 and estimate_zero3_model_states_mem_needs, no offload, parameters over tensor_parallel",
          estimates(lambda table, row, given: deepspeed(row, given), memory_rows()))
    write("llama-factory", "LLaMA-Factory's table", "README, hardware requirement: the column for x billion parameters",
          estimates(lambda table, row, given: llama_factory(row, given), memory_rows()))
    import torch
    write("memtracker", "MemTracker of PyTorch " + torch.__version__.split("+")[0], "torch.distributed._tools.mem_tracker: two steps of the model of transformers with fake tensors on a processor",
          estimates(lambda table, row, given: memory_tracker(row, given), memory_rows()))
    steps = [one for one in rows() if one[1]["family"] == "step time"]
    for name, efficiency, why in (("llm-analysis", None, "its default efficiencies, 1"), ("llm-analysis-half", 0.5, "flops_efficiency 0.5, which its source names for Megatron-LM")):
        write(name, "llm-analysis " + version("llm-analysis") + (", 0.5" if efficiency else ""), "LLMAnalysis.training, " + why,
              estimates(lambda table, row, given: llm_analysis(row, given, row.get("device", table.get("device")), efficiency), steps))


if __name__ == "__main__":
    main()
