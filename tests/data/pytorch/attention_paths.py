#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Which implementation scaled_dot_product_attention picks on a CPU: torch._fused_sdp_choice() of small cases, 0 for its math
# path and 1 for the kernel. Prints attention_paths.json.
import itertools
import json

import torch

HEADS, TOKENS = 4, 8
TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def choice(dtype, width, value_width, shares, masked, dropout):
    def heads(count, size):
        return torch.zeros(1, count, TOKENS, size, dtype=TYPES[dtype])

    keys = HEADS // 2 if shares else HEADS
    mask = torch.ones(1, 1, TOKENS, TOKENS, dtype=torch.bool) if masked else None
    return torch._fused_sdp_choice(heads(HEADS, width), heads(keys, width), heads(keys, value_width), mask, dropout, not masked,
                                   enable_gqa=shares)


cases = [{"dtype": dtype, "width": width, "value_width": value_width, "shares": shares, "masked": masked, "dropout": dropout,
          "choice": choice(dtype, width, value_width, shares, masked, dropout)}
         for dtype, (width, value_width), shares, masked, dropout in itertools.product(
             TYPES, ((64, 64), (12, 12), (7, 7), (192, 128), (512, 512)), (False, True), (False, True), (0.0, 0.1))]
print(json.dumps({"torch": torch.__version__.split("+")[0], "cases": cases}).replace('{"dtype"', '\n  {"dtype"').replace("]}", "\n]}"))
