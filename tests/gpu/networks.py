# SPDX-License-Identifier: Apache-2.0
"""The networks whose memory is compared: configurations of transformers, built with random weights; nothing is downloaded. Both
sides are described by the same config.json. A class that this transformers lacks is one network's failure."""
import torch
import transformers
from torch.nn.attention import SDPBackend

NO_DROPOUT = {"attn_pdrop": 0.0, "embd_pdrop": 0.0, "resid_pdrop": 0.0}
NETWORKS = {
    "gpt2": ("GPT2Config", dict(**NO_DROPOUT)),
    "gpt2-medium": ("GPT2Config", dict(n_embd=1024, n_layer=24, n_head=16, **NO_DROPOUT)),
    "llama-1b": ("LlamaConfig", dict(hidden_size=2048, intermediate_size=5504, num_hidden_layers=16, num_attention_heads=16,
                                     num_key_value_heads=16, vocab_size=32000, max_position_embeddings=8192)),
    "llama-gqa": ("LlamaConfig", dict(hidden_size=2048, intermediate_size=8192, num_hidden_layers=12, num_attention_heads=32,
                                      num_key_value_heads=8, vocab_size=128256, tie_word_embeddings=True, max_position_embeddings=8192)),
    "mistral": ("MistralConfig", dict(hidden_size=1536, intermediate_size=4096, num_hidden_layers=12, num_attention_heads=16,
                                      num_key_value_heads=4, vocab_size=32000, sliding_window=None)),
    "qwen2-0.5b": ("Qwen2Config", dict(hidden_size=896, intermediate_size=4864, num_hidden_layers=24, num_attention_heads=14,
                                       num_key_value_heads=2, vocab_size=151936, tie_word_embeddings=True)),
    "qwen3-0.6b": ("Qwen3Config", dict(hidden_size=1024, intermediate_size=3072, num_hidden_layers=28, num_attention_heads=16,
                                       num_key_value_heads=8, head_dim=128, vocab_size=151936, tie_word_embeddings=True)),
    "gemma": ("GemmaConfig", dict(hidden_size=1024, intermediate_size=4096, num_hidden_layers=12, num_attention_heads=8,
                                  num_key_value_heads=1, head_dim=128, vocab_size=64000)),
    "phi3": ("Phi3Config", dict(hidden_size=1536, intermediate_size=4096, num_hidden_layers=12, num_attention_heads=16,
                                num_key_value_heads=16, vocab_size=32064, embd_pdrop=0.0, resid_pdrop=0.0, attention_dropout=0.0,
                                pad_token_id=0, sliding_window=None)),
    "pythia-410m": ("GPTNeoXConfig", dict(hidden_size=1024, intermediate_size=4096, num_hidden_layers=24, num_attention_heads=16,
                                          vocab_size=50304, hidden_dropout=0.0, attention_dropout=0.0)),
    "opt-125m": ("OPTConfig", dict(dropout=0.0, attention_dropout=0.0)),
    "bert-base": ("BertConfig", dict(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)),
}
BACKENDS = {"flash": SDPBackend.FLASH_ATTENTION, "efficient": SDPBackend.EFFICIENT_ATTENTION}
SMALL_LAYERS, SMALL_VOCABULARY = 2, 500


def is_encoder(name):
    return name.startswith("bert")


def configuration(name):
    kind, fields = NETWORKS[name]
    return getattr(transformers, kind)(**fields)


def description(name):
    """What config.json says."""
    fields = configuration(name).to_dict()
    if is_encoder(name):
        fields["architectures"] = ["BertForMaskedLM"]
    return fields


def build(name, precision, attention, device):
    """The network as it is before training or inference; on the CPU, for --check, two layers and few words of it."""
    config = configuration(name)
    if device == "cpu":
        config.num_hidden_layers, config.vocab_size = SMALL_LAYERS, SMALL_VOCABULARY
        if getattr(config, "layer_types", None):
            config.layer_types = config.layer_types[:SMALL_LAYERS]
    auto = transformers.AutoModelForMaskedLM if is_encoder(name) else transformers.AutoModelForCausalLM
    with torch.device(device):
        network = auto.from_config(config, attn_implementation="eager" if attention == "eager" else "sdpa")
    return network.to({"bf16": torch.bfloat16, "fp16": torch.float16}.get(precision, torch.float32))
