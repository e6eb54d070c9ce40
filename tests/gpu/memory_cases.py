# SPDX-License-Identifier: Apache-2.0
"""What is run and predicted: training steps, forward passes without gradients, and generation with a cache of keys and values."""
from typing import NamedTuple


class Training(NamedTuple):
    network: str
    batch: int
    sequence: int
    precision: str
    optimizer: str
    implementation: str
    checkpointing: str
    attention: str

    def words(self):
        """For `predict training-memory`; the loop takes the loss alone."""
        return {"batch": self.batch, "sequence": self.sequence, "precision": self.precision, "optimizer": self.optimizer,
                "optimizer_implementation": self.implementation, "checkpointing": self.checkpointing, "attention": self.attention,
                "advice": "none", "keeps_logits": "false"}


class Inference(NamedTuple):
    network: str
    batch: int
    prompt: int
    generated: int  # tokens after the prompt, with a cache; 0: one forward pass without one
    precision: str
    attention: str

    def words(self):
        """For `predict inference-memory`."""
        return {"batch": self.batch, "sequence": self.prompt, "context": self.prompt + self.generated, "precision": self.precision,
                "weight_precision": self.precision, "kv_precision": self.precision, "attention": self.attention}


def name_of(case):
    return "-".join(str(word) for word in case)


TRAINING = [Training(*case) for case in (
    ("gpt2", 8, 1024, "fp32", "adamw", "foreach", "none", "eager"),
    ("llama-1b", 4, 2048, "bf16", "adamw", "fused", "none", "flash"),
    ("gpt2", 8, 1024, "bf16-autocast", "adamw", "foreach", "block", "flash"),
    ("bert-base", 32, 512, "fp32", "adamw", "foreach", "none", "eager"),
    ("gpt2", 8, 1024, "fp32", "adamw", "fused", "none", "eager"),
    ("gpt2", 8, 1024, "fp32", "adamw", "loop", "none", "eager"),
    ("gpt2", 8, 1024, "fp32", "sgd", "foreach", "none", "eager"),
    ("gpt2", 8, 1024, "fp32", "momentum", "foreach", "none", "eager"),
    ("gpt2", 8, 1024, "bf16-autocast", "adamw", "foreach", "none", "eager"),
    ("gpt2", 8, 1024, "bf16-autocast", "adamw", "foreach", "none", "flash"),
    ("gpt2", 8, 1024, "fp32", "adamw", "foreach", "none", "efficient"),
    ("gpt2-medium", 4, 1024, "bf16", "adamw", "foreach", "none", "flash"),
    ("gpt2-medium", 4, 1024, "fp32", "adamw", "foreach", "block", "eager"),
    ("llama-1b", 2, 1024, "fp32", "adamw", "foreach", "none", "eager"),
    ("llama-1b", 4, 2048, "bf16", "adamw", "fused", "block", "flash"),
    ("llama-1b", 4, 2048, "bf16-autocast", "adamw", "foreach", "block", "flash"),
    ("llama-1b", 4, 1024, "bf16", "adafactor", "auto", "none", "flash"),
    ("llama-gqa", 2, 2048, "bf16", "adamw", "foreach", "none", "flash"),
    ("llama-gqa", 2, 2048, "bf16-autocast", "adamw", "foreach", "block", "efficient"),
    ("mistral", 4, 1024, "bf16-autocast", "adamw", "foreach", "none", "eager"),
    ("mistral", 4, 1024, "bf16", "sgd", "foreach", "none", "flash"),
    ("qwen2-0.5b", 4, 1024, "bf16-autocast", "adamw", "foreach", "none", "flash"),
    ("qwen2-0.5b", 2, 1024, "fp32", "adamw", "foreach", "block", "eager"),
    ("qwen3-0.6b", 4, 1024, "bf16", "adamw", "foreach", "none", "flash"),
    ("gemma", 4, 1024, "bf16", "adamw", "foreach", "none", "flash"),
    ("phi3", 4, 1024, "bf16", "adamw", "foreach", "none", "flash"),
    ("pythia-410m", 4, 1024, "bf16-autocast", "adamw", "foreach", "none", "eager"),
    ("pythia-410m", 4, 1024, "bf16", "adamw", "loop", "none", "flash"),
    ("opt-125m", 8, 1024, "fp32", "adamw", "foreach", "none", "eager"),
    ("opt-125m", 8, 1024, "bf16-autocast", "adamw", "foreach", "block", "flash"),
    ("bert-base", 32, 512, "bf16-autocast", "adamw", "foreach", "none", "flash"),
)]

INFERENCE = [Inference(*case) for case in (
    ("llama-1b", 4, 2048, 0, "bf16", "flash"),
    ("llama-1b", 4, 2048, 64, "bf16", "flash"),
    ("gpt2", 8, 1024, 0, "fp32", "eager"),
    ("gpt2", 8, 960, 64, "fp32", "eager"),
    ("bert-base", 32, 512, 0, "fp32", "eager"),
    ("llama-gqa", 2, 2048, 0, "bf16", "flash"),
    ("llama-gqa", 8, 4096, 64, "bf16", "flash"),
    ("mistral", 4, 1024, 64, "bf16", "eager"),
    ("qwen2-0.5b", 4, 1024, 0, "bf16", "flash"),
    ("qwen2-0.5b", 16, 256, 256, "bf16", "flash"),
    ("qwen3-0.6b", 4, 1024, 64, "bf16", "flash"),
    ("gemma", 4, 1024, 64, "bf16", "flash"),
    ("phi3", 4, 1024, 64, "bf16", "flash"),
    ("pythia-410m", 4, 1024, 64, "fp16", "flash"),
    ("opt-125m", 8, 1024, 0, "fp16", "flash"),
    ("opt-125m", 8, 960, 64, "fp16", "flash"),
)]
