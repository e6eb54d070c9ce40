# SPDX-License-Identifier: Apache-2.0
"""PyTorch's device-to-device copy of 1 and 2 GiB: median bytes per second, read and written counted."""
import json
import statistics
import sys

import torch


def copy_rate(array_bytes: int) -> dict:
    """Median over 30 copies, each between two events, after 25 ms of warm-up."""
    source = torch.randn(array_bytes // 4, device="cuda")
    target = torch.empty_like(source)
    for _ in range(10):
        target.copy_(source)
    torch.cuda.synchronize()
    seconds = []
    for _ in range(30):
        begin = torch.cuda.Event(enable_timing=True)
        end = torch.cuda.Event(enable_timing=True)
        begin.record()
        target.copy_(source)
        end.record()
        end.synchronize()
        seconds.append(begin.elapsed_time(end) * 1e-3)
    if not torch.equal(source, target):
        sys.exit("PyTorch's copy is not equal to its source")
    rate = 2 * array_bytes / statistics.median(seconds)
    return {"working_set": 2 * array_bytes, "bytes_per_second": rate, "seconds": seconds}


if not torch.cuda.is_available():
    sys.exit("this PyTorch sees no GPU")
print(json.dumps({"torch": torch.__version__, "device": torch.cuda.get_device_name(0),
                  "copies": [copy_rate(1 << 30), copy_rate(2 << 30)]}, indent=2))
