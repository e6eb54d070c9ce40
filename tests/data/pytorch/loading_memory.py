# SPDX-License-Identifier: Apache-2.0
"""What a process keeps in the host's memory while a model is loaded, by the kernel's own count; writes
loading_memory.json. The model is SmolLM2 135M with random weights, saved as safetensors in parts of 50 MB.

host         the most that RssAnon of /proc/self/status grew by, read every 2 ms in another thread
mapped       the same of RssFile, of pages of mapped files; with every weight read once afterwards
way, file, form, head: as in `inference-memory` (loading, file_precision, weight_precision, output_head)

    python3 tests/data/pytorch/loading_memory.py > tests/data/pytorch/loading_memory.json
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, LlamaConfig

CONFIG = LlamaConfig(hidden_size=576, intermediate_size=1536, num_hidden_layers=30, num_attention_heads=9,
                     num_key_value_heads=3, vocab_size=49152, tie_word_embeddings=True)
CASES = [("host", "bf16", "bf16", "model"), ("host", "fp32", "bf16", "model"), ("host", "bf16", "fp32", "model"),
         ("host", "bf16", "fp32", "loaded"), ("state-dict", "bf16", "bf16", "model")]
TYPES = {"bf16": torch.bfloat16, "fp32": torch.float32}


def resident():
    lines = dict(line.split(":", 1) for line in open("/proc/self/status") if line.startswith("Rss"))
    return {key: 1024 * int(lines[key].split()[0]) for key in ("RssAnon", "RssFile")}


class Peak:
    def __enter__(self):
        self.before, self.most, self.is_over = resident(), {"RssAnon": 0, "RssFile": 0}, False
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()
        return self

    def watch(self):
        while not self.is_over:
            for key, value in resident().items():
                self.most[key] = max(self.most[key], value - self.before[key])
            time.sleep(0.002)

    def __exit__(self, *_):
        self.is_over = True
        self.thread.join()


def measured(folder, way, form):
    with Peak() as peak:
        if way == "host":
            model = AutoModelForCausalLM.from_pretrained(folder, dtype=TYPES[form])
        else:
            model = AutoModelForCausalLM.from_config(CONFIG, dtype=TYPES[form])
            model.load_state_dict(torch.load(folder / "state.pt"))
    host = peak.most["RssAnon"]
    with Peak() as peak_of_use:
        for parameter in model.parameters():
            parameter.view(torch.uint8).max()
    return {"host": host, "mapped": peak.most["RssFile"] + peak_of_use.most["RssFile"]}


def saved(folder, file, head):
    model = AutoModelForCausalLM.from_config(CONFIG, dtype=TYPES[file])
    model.save_pretrained(folder, max_shard_size="50MB")
    torch.save(model.state_dict(), folder / "state.pt")
    if head == "loaded":
        index = json.loads((folder / "model.safetensors.index.json").read_text())
        part = folder / index["weight_map"]["model.embed_tokens.weight"]
        tensors = load_file(part)
        tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"].clone()
        save_file(tensors, part, {"format": "pt"})
        index["weight_map"]["lm_head.weight"] = part.name
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def main():
    cases = []
    for way, file, form, head in CASES:
        with tempfile.TemporaryDirectory() as folder:
            saved(pathlib.Path(folder), file, head)
            answer = subprocess.run([sys.executable, __file__, folder, way, form], check=True, capture_output=True, text=True)
            cases.append({"way": way, "file": file, "form": form, "head": head, **json.loads(answer.stdout)})
    versions = {"torch": torch.__version__, "transformers": transformers.__version__}
    print(json.dumps({"versions": versions, "model": "smollm2-135m", "cases": cases}, indent=1))


if len(sys.argv) > 1:
    print(json.dumps(measured(pathlib.Path(sys.argv[1]), *sys.argv[2:])))
else:
    main()
