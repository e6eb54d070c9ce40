#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small files as the safetensors library and transformers write them.

    python3 tests/data/models/make_safetensors.py

tiny.safetensors: four tensors of three types, one of them empty. tiny-llama/: a model of 2 layers
saved in parts with its index and its config.json.
"""
import pathlib

import torch
import transformers
from safetensors.torch import save_file

HERE = pathlib.Path(__file__).parent

save_file({"weight": torch.zeros(2, 3), "half": torch.zeros(8, dtype=torch.bfloat16),
           "count": torch.zeros((), dtype=torch.int64), "empty": torch.zeros(0, 4)},
          HERE / "tiny.safetensors", metadata={"format": "pt"})

torch.manual_seed(0)
settings = transformers.LlamaConfig(hidden_size=16, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                                    intermediate_size=24, vocab_size=40, max_position_embeddings=32)
model = transformers.LlamaForCausalLM(settings).to(torch.bfloat16)
model.save_pretrained(HERE / "tiny-llama", max_shard_size="4KB")
(HERE / "tiny-llama" / "generation_config.json").unlink(missing_ok=True)
