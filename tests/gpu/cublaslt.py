#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints where PyTorch's own cuBLASLt lies, for MEMSCAPE_CUBLASLT; nothing, and status 1, where there is none.

    MEMSCAPE_CUBLASLT=$(python3 tests/gpu/cublaslt.py) memscape-cli measure precision --device cuda:0

pip puts the library beside PyTorch: nvidia/cu13/lib for CUDA 13, nvidia/cublas/lib for CUDA 12. A PyTorch that was built against a
toolkit has none, and what it has loaded is taken, when it is loaded already. Nothing is imported: that takes seconds."""
import pathlib
import site
import sys
import sysconfig

VARIABLE = "MEMSCAPE_CUBLASLT"
FOLDERS = ("nvidia/cu13/lib", "nvidia/cublas/lib", "torch/lib")
NAMES = ("libcublasLt.so.13", "libcublasLt.so.12")


def loaded(maps="/proc/self/maps"):
    """The library that this process uses, when PyTorch has been imported."""
    try:
        lines = pathlib.Path(maps).read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    for line in lines:
        path = line.split(maxsplit=5)[5] if len(line.split(maxsplit=5)) == 6 else ""
        if "/libcublasLt.so" in path:
            return path
    return None


def folders():
    """Where packages lie, those of the user and of the system among them."""
    user = [site.getusersitepackages()] if site.ENABLE_USER_SITE else []
    paths = [*sys.path, sysconfig.get_path("platlib"), *user, *site.getsitepackages()]
    return list(dict.fromkeys(path for path in paths if path))


def installed(among=None):
    """The first in the folders of packages."""
    for folder in folders() if among is None else among:
        for below in FOLDERS:
            for name in NAMES:
                file = pathlib.Path(folder) / below / name
                if file.is_file():
                    return str(file)
    return None


def find():
    return loaded() or installed()


if __name__ == "__main__":
    FILE = find()
    if not FILE:
        sys.exit("no cuBLASLt of PyTorch's was found")
    print(FILE)
