# SPDX-License-Identifier: Apache-2.0
"""The history of CUDA's caching allocator, under the names that torch 1.13 to 2.x give it. Kept simple: it was written
from PyTorch's documentation and sources, on a machine without a GPU."""
import torch

ENTRIES = 1_000_000  # a ring: older ones are lost


def start():
    """Begins to keep Python stacks and the last ENTRIES allocations and frees."""
    memory = torch.cuda.memory
    try:
        memory._record_memory_history("all", context="alloc", stacks="python", max_entries=ENTRIES)
    except TypeError:  # torch < 2.1
        memory._record_memory_history(True, trace_alloc_max_entries=ENTRIES, trace_alloc_record_context=True)


def stop():
    try:
        torch.cuda.memory._record_memory_history(None)
    except TypeError:
        torch.cuda.memory._record_memory_history(False)


def snapshot():
    result = torch.cuda.memory._snapshot()
    if isinstance(result, list):  # torch < 2.0 answers segments alone
        result = {"segments": result, "device_traces": []}
    result.setdefault("device_traces", [])
    return result
