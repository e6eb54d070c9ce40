#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What PyTorch's GradScaler does, step by step, when gradients are infinite or not.

    pip install torch
    python3 tests/data/precision/make_grad_scaler.py > tests/data/precision/grad_scaler.json

A parameter gets a gradient by hand (1, infinity or not a number), then scaler.step(SGD) and
scaler.update() run. A step is [was infinite, the parameter changed, scale, growth tracker] after it.
"""
import json
import random

import torch


def sequence(name, bad, count, **options):
    """`bad`: step -> "inf", "nan" or None."""
    parameter = torch.nn.Parameter(torch.zeros(3))
    optimizer = torch.optim.SGD([parameter], lr=1.0)
    scaler = torch.amp.GradScaler("cpu", **options)
    scaler.scale(torch.zeros(1))  # makes its tensors, as the first loss would
    steps = []
    for i in range(count):
        gradient = torch.ones(3)
        if bad(i):
            gradient[1] = float(bad(i))
        parameter.grad = gradient
        before = parameter.detach().clone()
        scaler.step(optimizer)
        stepped = not torch.equal(before, parameter.detach())
        parameter.data.zero_()
        scaler.update()
        steps.append([bool(bad(i)), stepped, scaler.get_scale(), scaler._get_growth_tracker()])
    state = torch.amp.GradScaler("cpu", **options).state_dict()
    kept = {"init_scale": state["scale"], **{k: state[k] for k in ("growth_factor", "backoff_factor", "growth_interval")}}
    return {"name": name, "options": kept, "steps": steps}


dice = random.Random(5)
often = {i: dice.choice(["inf", "nan", "-inf"]) for i in range(400) if dice.random() < 0.12}
result = {
    "made_by": "tests/data/precision/make_grad_scaler.py",
    "torch": torch.__version__,
    "sequences": [
        sequence("defaults", lambda i: "inf" if i in (0, 1, 2, 2010) else None, 4020),
        sequence("often infinite", often.get, 400, growth_interval=5),
        sequence("grows to infinity", lambda i: None, 40, init_scale=2.0**110, growth_interval=1),
        sequence("backs off to zero", lambda i: "nan", 40, init_scale=2.0**-120, growth_interval=3),
        sequence("odd factors", lambda i: "inf" if i % 7 == 3 else None, 120, init_scale=1000.0,
                 growth_factor=1.7, backoff_factor=0.3, growth_interval=3),
    ],
}
print(json.dumps(result, separators=(",", ":")))
