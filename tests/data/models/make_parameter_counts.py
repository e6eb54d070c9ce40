#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Parameters of every model in resources/models, counted by PyTorch.

    python3 tests/data/models/make_parameter_counts.py > tests/data/models/parameter_counts.json

Builds each configuration with Hugging Face transformers on the meta device (no memory, no download)
and writes, per model: the number of parameters with tied ones once, the number that one token uses
(routed experts by their share), and how many tensors of which shape there are. The
architectures that transformers does not have are diffusers' (UNet), torchvision's (EfficientNet, DenseNet) or are built here
from torch.nn (AlexNet, VGG).
"""
import collections
import json
import pathlib
import sys

import torch
import transformers
from torch import nn

from make_saved_bytes import LIBRARY

ROOT = pathlib.Path(__file__).resolve().parents[3]


def alexnet(classes):
    def conv(*a, **k):
        return [nn.Conv2d(*a, **k), nn.ReLU()]
    features = (conv(3, 64, 11, stride=4, padding=2) + [nn.MaxPool2d(3, 2)] + conv(64, 192, 5, padding=2)
                + [nn.MaxPool2d(3, 2)] + conv(192, 384, 3, padding=1) + conv(384, 256, 3, padding=1)
                + conv(256, 256, 3, padding=1) + [nn.MaxPool2d(3, 2), nn.AdaptiveAvgPool2d(6), nn.Flatten()])
    return nn.Sequential(*features, nn.Linear(256 * 36, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(),
                         nn.Linear(4096, classes))


def vgg(config):
    layers, width = [], 3
    for depth, channels in zip(config["depths"], config["hidden_sizes"]):
        for _ in range(depth):
            layers.append(nn.Conv2d(width, channels, 3, padding=1))
            if config["batch_norm"]:
                layers.append(nn.BatchNorm2d(channels))
            layers.append(nn.ReLU())
            width = channels
        layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(7), nn.Flatten(), nn.Linear(512 * 49, 4096), nn.ReLU(),
                         nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, config["num_labels"]))


def mobilenet_v1_standard(classes):
    layers, width = [nn.Conv2d(3, 32, 3, 2, 1, bias=False), nn.BatchNorm2d(32)], 32
    for channels in [64, 128, 128, 256, 256] + [512] * 6 + [1024] * 2:
        layers += [nn.Conv2d(width, channels, 3, 1, 1, bias=False), nn.BatchNorm2d(channels)]
        width = channels
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1024, classes))


def check_against_diffusers(config):
    """Its DiT has the same parameters, but time and class in each block and positions that are none."""
    from diffusers import DiTTransformer2DModel
    heads, side = config["num_heads"], config["input_size"] // config["patch_size"]
    theirs = DiTTransformer2DModel(num_attention_heads=heads, attention_head_dim=config["hidden_size"] // heads,
                                   in_channels=4, out_channels=8, num_layers=config["depth"],
                                   sample_size=config["input_size"], patch_size=config["patch_size"])
    for block in theirs.transformer_blocks[1:]:
        block.norm1.emb = theirs.transformer_blocks[0].norm1.emb
    count = sum(p.numel() for p in theirs.parameters()) + side * side * config["hidden_size"]
    assert count == sum(p.numel() for p in LIBRARY["dit"](config).parameters()), count


def build(config):
    kind = config.get("model_type") or config["_class_name"]
    if kind == "dit":
        check_against_diffusers(config)
    if kind == "alexnet":
        return alexnet(config["num_labels"])
    if kind == "vgg":
        return vgg(config)
    if kind in LIBRARY:
        return LIBRARY[kind](config)
    if config.get("separable") is False:
        return mobilenet_v1_standard(config["num_labels"])
    if kind in ("mobilenet_v1", "mobilenet_v2"):
        config = dict(config, tf_padding=False)
    values = {key: value for key, value in config.items() if key not in ("model_type", "architectures", "torch_dtype")}
    settings = transformers.AutoConfig.for_model(kind, **values)
    model = getattr(transformers, config["architectures"][0])(settings)
    if kind in ("t5", "mt5") and not config["tie_word_embeddings"]:
        # transformers 5 ties T5 always; the published checkpoints of v1.1 hold a head of their own.
        model.lm_head.weight = nn.Parameter(torch.empty_like(model.lm_head.weight))
    return model


def count(model, config):
    parameters = list(model.named_parameters())  # a tied parameter appears once
    total = sum(p.numel() for _, p in parameters)
    active = total
    experts = next((config[key] for key in ("num_local_experts", "n_routed_experts", "num_experts") if key in config), 0)
    for name, p in parameters:
        if ".experts." in name:
            active -= p.numel() - p.numel() * config["num_experts_per_tok"] // experts
    shapes = collections.Counter("x".join(map(str, p.shape)) for _, p in parameters)
    result = {"parameters": total, "active": active}
    if not experts:
        result["shapes"] = dict(sorted(shapes.items()))
    return result


def main():
    counts = {}
    for path in sorted((ROOT / "resources/models").glob("*.json")):
        for entry in json.loads(path.read_text())["models"]:
            with torch.device("meta"):
                model = build(entry["config"])
            counts[entry["name"]] = count(model, entry["config"])
            print(entry["name"], counts[entry["name"]]["parameters"], file=sys.stderr)
    made = {"made_by": "tests/data/models/make_parameter_counts.py", "torch": torch.__version__,
            "transformers": transformers.__version__, "models": counts}
    text = json.dumps(made, indent=1)
    print(text)


if __name__ == "__main__":
    main()
