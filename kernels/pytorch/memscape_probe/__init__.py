# SPDX-License-Identifier: Apache-2.0
"""Where a PyTorch program's bytes go: what Memscape runs in your own Python. Needs torch 1.13 or newer and nothing else.

torch is imported where it is needed, not here: a worker says hello before it."""

__version__ = "0.1.0"

_LAZY = {"record": "recorder", "region": "recorder", "Recorder": "recorder", "export": "exporter"}


def __getattr__(name):
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib
    return getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
