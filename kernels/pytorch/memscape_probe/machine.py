# SPDX-License-Identifier: Apache-2.0
"""What memory there is, what this process took of it, and which errors mean that it ran out."""
import pathlib
import platform
import re

import torch

from .problem import Problem

MIB = 1 << 20


def available(device):
    """Bytes that can still be taken, or None: MemAvailable or what a control group leaves; the GPU's free bytes."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    found = re.search(r"^MemAvailable: *(\d+) kB", read("/proc/meminfo"), re.M)
    rooms = [int(found.group(1)) * 1024] if found else []
    most, used = read("/sys/fs/cgroup/memory.max").strip(), read("/sys/fs/cgroup/memory.current").strip()
    if most.isdigit() and used.isdigit():
        rooms.append(max(0, int(most) - int(used)))
    return min(rooms) if rooms else None


def read(path):
    try:
        return pathlib.Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def last_cache():
    """Bytes of the largest cache of the first processor; 0 where the system does not say."""
    sizes = [read(path).strip() for path in pathlib.Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")]
    return max((int(size[:-1]) << 10 for size in sizes if re.fullmatch(r"\d+K", size)), default=0)  # in KiB, whatever the size


def high_water():
    """Bytes of the largest resident size of this process so far, or None."""
    found = re.search(r"^VmHWM:\s*(\d+) kB", read("/proc/self/status"), re.M)
    return int(found.group(1)) * 1024 if found else None


def check_room(needed, device, what, is_forced):
    """Refuses what is larger than what is free. Errors: run.memory."""
    room = available(device)
    if is_forced or room is None or needed <= room:
        return
    raise Problem("run.memory", f"{what} takes {needed / MIB:,.0f} MiB at least, and {room / MIB:,.0f} MiB are free",
                  "choose a smaller model, or close other programs")


def is_out_of_memory(error):
    text = str(error)
    return (isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"
            or "DefaultCPUAllocator" in text or "out of memory" in text or "not enough memory" in text)


def synchronize(device):
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def describe(device, workload=None):
    """What a record says of where it comes from."""
    facts = {"backend": "pytorch", "torch": torch.__version__, "python": platform.python_version(), "device": str(device)}
    if device.type == "cuda":
        facts.update(gpu=torch.cuda.get_device_name(device), cuda=torch.version.cuda)
    else:
        facts.update(threads=torch.get_num_threads())
    if workload is not None and workload.library != "torch":
        facts[workload.library] = __import__(workload.library).__version__
    return facts


def measure(request):
    """`machine`: nothing is measured; torch is imported, and the device described."""
    return {"figures": {}, "series": [], "detail": {}}, describe(torch.device(request.device))
