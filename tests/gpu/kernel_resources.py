#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Registers and spills of the kernels of attention and of a training step, for every GPU they are compiled for.

    kernel_resources.py [--arch 75 80 …] [--jobs N] [--out FILE]

Needs nvcc ($CUDACXX, or on the path) and no GPU: ptxas says what it did. One line a kernel and
architecture; ends with 1 when a kernel spills that should not, with 2 when one does not compile, with 3
when there is no nvcc. Registers allow 65536 / (registers × threads) blocks on a multiprocessor."""
import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
FILES = ("attention/flash.cu", "attention/flash_wide.cu", "attention/flash_backward.cu", "attention/standard.cu", "amp.cu")
ARCHITECTURES = (75, 80, 86, 89, 90, 100, 120)
# Bytes by kernel. Of version 6's 255 registers 192 are sums: a few addresses go to memory and come back once a tile. On
# Turing a product's copies pass registers, beside 128 that are sums.
ALLOWED = {"flash_6": 64}
ALLOWED_ON_TURING = {"tensorProduct_1": 160}


def kernels_of(log):
    """(mangled name, registers, spilled bytes) of every kernel in ptxas's words."""
    name, spilled = None, 0
    for line in log.splitlines():
        if found := re.search(r"Compiling entry function '(\S+)'", line):
            name = found[1]
        elif found := re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", line):
            spilled = max(int(found[1]), int(found[2]))
        elif (found := re.search(r"Used (\d+) registers", line)) and name:
            yield name, int(found[1]), spilled
            name, spilled = None, 0


def words(mangled):
    """Kernel, element and the numbers of its template: 'flash_6', 'bf16', ['128', '4', '2', '64', '1']."""
    parts = re.match(r"_ZN8memscape4cuda(\d+)", mangled)
    start = parts.end()
    name = mangled[start:start + int(parts[1])]
    rest = mangled[start + int(parts[1]):]
    element = "bf16" if "Bfloat" in rest else "fp16" if "Half" in rest else "fp32"
    return name, element, re.findall(r"L[ib](\d+)E", rest)


def compile_one(nvcc, architecture, file):
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([nvcc, "-std=c++17", "-O3", "-Werror=all-warnings", f"-arch=sm_{architecture}", f"-I{ROOT}", "-Xptxas", "-v",
                               "-cubin", "-o", f"{folder}/out.cubin", str(ROOT / "kernels/cuda" / file)],
                              capture_output=True, text=True, check=False)
    return architecture, file, done.returncode, done.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--arch", nargs="*", type=int, default=ARCHITECTURES)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--out", type=pathlib.Path)
    options = parser.parse_args()
    nvcc = os.environ.get("CUDACXX") or shutil.which("nvcc")
    if not nvcc:
        print("no nvcc: set CUDACXX or install a CUDA toolkit", file=sys.stderr)
        return 3
    lines, failed, seen = [], 0, 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        work = [pool.submit(compile_one, nvcc, architecture, file) for architecture in options.arch for file in FILES]
        for done in work:
            architecture, file, status, log = done.result()
            if status:
                print(f"sm_{architecture} {file} does not compile:\n{log}", file=sys.stderr)
                return 2
            for mangled, registers, spilled in sorted(kernels_of(log)):
                name, element, numbers = words(mangled)
                allowed = (ALLOWED_ON_TURING if architecture < 80 else ALLOWED).get(name, 0)
                seen += 1
                failed += spilled > allowed
                verdict = "" if spilled <= allowed else "  SPILLS"
                lines.append(f"sm_{architecture:<4} {name:<20} {element} {','.join(numbers):<14} {registers:>3} registers {spilled:>4} B spilled{verdict}")
                print(lines[-1], flush=True)
    print(f"{seen} kernels, {failed} spill that should not")
    if options.out:
        options.out.write_text("\n".join(lines) + "\n")
    return 1 if failed or not seen else 0


if __name__ == "__main__":
    sys.exit(main())
