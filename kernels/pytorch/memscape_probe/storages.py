# SPDX-License-Identifier: Apache-2.0
"""The memory behind a tensor, for torch 1.13 and 2.x."""
import gc

import torch

try:
    from torch.multiprocessing.reductions import StorageWeakRef
except ImportError:
    StorageWeakRef = None


def storage_of(tensor):
    return tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()._storage


def address_of(tensor):
    """Where its storage begins; 0 when it has none (sparse, fake, meta, freed)."""
    try:
        return storage_of(tensor).data_ptr()
    except Exception:
        return 0


def bytes_of(tensor):
    try:
        return storage_of(tensor).nbytes()
    except Exception:
        return 0


def watch(tensor):
    """An object whose expired() is true once nothing holds the tensor's storage."""
    try:
        return StorageWeakRef(storage_of(tensor))
    except Exception:
        return None


def tensors_alive(device):
    """Tensors on the device that Python's garbage collector knows, and their gradients."""
    found = []
    for thing in gc.get_objects():
        if issubclass(type(thing), torch.Tensor):
            try:
                if thing.device.type == device.type and thing.layout == torch.strided:
                    found.append(thing)
                    if thing.is_leaf and thing.grad is not None:
                        found.append(thing.grad)
            except Exception:
                continue
    return found
