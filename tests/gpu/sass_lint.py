#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads the machine code of a built CUDA module: does every kernel measure what it says, and is it made as before?

    sass_lint.py MODULE [--tools FOLDER …] [--table FILE] [--update]

MODULE is libmemscape-cuda.so; of an object file the rules are checked, too, and the counts of all others are missing.
Needs c++filt and, in a FOLDER, in build/sass, in /usr/local/cuda/bin or on the path, cuobjdump and nvdisasm: from a
CUDA toolkit or the Python packages nvidia-cuda-cuobjdump and nvidia-cuda-nvdisasm. No GPU.

The rules (sass/rules.py) hold for every architecture and compiler. The counts (tests/gpu/kernels.txt, sass/table.py)
are compared where the module was built by the table's release of nvcc; --update writes them anew for the architectures
that the module has. Ends with 0 when all is well, 1 when a rule is broken or a count differs, 77 when there is nothing
to disassemble with."""
import argparse
import concurrent.futures
import pathlib
import sys
import tempfile

from sass import module, rules, table

ROOT = pathlib.Path(__file__).resolve().parents[2]
NOTHING_TO_RUN_WITH = 77  # ctest: skipped


def find_tools(folders):
    """cuobjdump and nvdisasm, None for one that is missing."""
    places = [*folders, *sorted(ROOT.glob("build/sass/nvidia/cu*/bin")), "/usr/local/cuda/bin"]
    return [module.tool(name, places) for name in ("cuobjdump", "nvdisasm")]


def read_architecture(cubins, tools, folder):
    """Of one architecture: complaints, rows of the table, the number of kernels, allowances that no kernel takes."""
    kernels = list(module.kernels_of(cubins, *tools, folder))
    complaints = [f"{kernel.name} {kernel.architecture}: {complaint}" for kernel in kernels for complaint in rules.complaints_of(kernel)]
    rows = dict(table.row(kernel) for kernel in kernels if table.is_counted(kernel))
    return complaints, rows, len(kernels), list(rules.unneeded_allowances(kernels))


def read(path, tools):
    """The same of a whole module, and its architectures and its compiler's release."""
    complaints, rows, count, unneeded = [], {}, 0, []
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ProcessPoolExecutor() as pool:
        cubins = module.extract(path, tools[0], folder)
        release = module.compiler_release(next(iter(cubins.values()))[0]) if cubins else "unknown"
        for found in [pool.submit(read_architecture, some, tools, folder) for some in cubins.values()]:
            complaints += found.result()[0]
            rows.update(found.result()[1])
            count += found.result()[2]
            unneeded += found.result()[3]
    return complaints, rows, count, unneeded, list(cubins), release


def update(path, rows, built, release):
    old, old_release = table.parse(path.read_text()) if path.exists() else ({}, release)
    if old_release != release and not set(table.ARCHITECTURES) & {architecture for _, architecture in old} <= set(built):
        print(f"the table is of nvcc {old_release}, the module of {release} and not of all its architectures: build them all first")
        return 1
    path.write_text(table.text(table.merged(old, rows, built), release))
    print(f"{path}: {len(rows)} lines of {', '.join(a for a in built if a in table.ARCHITECTURES)} written, nvcc {release}")
    return 0


def compare(path, rows, built, release):
    """Prints what differs from the table; the number of lines that do."""
    old, old_release = table.parse(path.read_text())
    if old_release != release:
        print(f"counts not compared: the table is of nvcc {old_release}, the module of {release}")
        return 0
    differences = list(table.differences(old, rows, built))
    for line in differences:
        print(line)
    if differences:
        print(f"{len(differences)} kernels are not made as {path.name} says. If that is meant: tests/gpu/sass_lint.py --update MODULE, and commit it")
    return len(differences)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("module", type=pathlib.Path)
    parser.add_argument("--tools", nargs="*", default=[])
    parser.add_argument("--table", type=pathlib.Path, default=ROOT / "tests/gpu/kernels.txt")
    parser.add_argument("--update", action="store_true")
    options = parser.parse_args()
    tools = find_tools(options.tools)
    if None in tools:
        print("no cuobjdump or no nvdisasm: install a CUDA toolkit with them, or let packaging/test --with-cuda fetch them into build/sass")
        return NOTHING_TO_RUN_WITH
    complaints, rows, count, unneeded, built, release = read(options.module, tools)
    if release == table.release_of(options.table):  # another release may need them
        complaints += unneeded
    if not count:
        print(f"{options.module} has no kernels")
        return 1
    for complaint in complaints:
        print(complaint)
    if options.update:
        return update(options.table, rows, built, release) or bool(complaints)
    different = compare(options.table, rows, built, release)
    print(f"{count} kernels for {', '.join(built)}, nvcc {release}: {len(complaints)} broken promises, {different} changed counts")
    return 1 if complaints or different else 0


if __name__ == "__main__":
    sys.exit(main())
