# SPDX-License-Identifier: Apache-2.0
"""What this Python has, without importing torch (which takes seconds): one JSON line."""
import importlib.util
import json
import pathlib
import platform
import re

from . import __version__


def torch_facts():
    """{"version", "cuda": whether it is built for CUDA}; None where there is no torch."""
    try:
        spec = importlib.util.find_spec("torch")
    except (ImportError, ValueError):
        return None
    if spec is None or not spec.origin:
        return None
    try:
        text = (pathlib.Path(spec.origin).parent / "version.py").read_text(encoding="utf-8")
    except OSError:
        return None
    version = re.search(r"(?m)^__version__[^'\"\n]*['\"]([^'\"]+)", text)
    return {"version": version.group(1) if version else "unknown", "cuda": bool(re.search(r"(?m)^cuda[^=\n]*= *['\"]", text))}


def main(words):
    print(json.dumps({"memscape_probe": __version__, "python": platform.python_version(), "torch": torch_facts()}))
    return 0
