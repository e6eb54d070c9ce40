# SPDX-License-Identifier: Apache-2.0
"""The table of what kernels are made of: a line for a kernel and architecture, sorted, written by `sass_lint.py --update`.

Only kernels with tensor-core instructions or loads from shared memory are in it, for ARCHITECTURES: there a changed
count is a changed kernel. Another release of nvcc counts otherwise, so the table names its own."""
import re

ARCHITECTURES = ("sm_80", "sm_90", "sm_90a", "sm_120")
TENSOR = re.compile(r"[HIQDB](G?)MMA|UTC\w*MMA")
COLUMNS = ("registers", "stack", "shared", "tensor", "LDSM", "LDS", "instructions")
WIDTHS = (60, 6, 9, 5, 6, 9, 4, 4, 12)  # fixed, so that a new name moves no other line; columns are two blanks apart
HEADER = """# SPDX-License-Identifier: Apache-2.0
# Registers, bytes of stack and of static shared memory, and counts of instructions, as nvcc {release} makes them.
# Written by tests/gpu/sass_lint.py --update MODULE: a change of these kernels changes it, knowingly.
"""


def is_counted(kernel):
    tensor = any(TENSOR.fullmatch(name) for name in kernel.counts)
    return kernel.architecture in ARCHITECTURES and (tensor or kernel.counts["LDS"] or kernel.counts["LDSM"])


def row(kernel):
    """(kernel and architecture, its values), all words."""
    tensor = "+".join(f"{count}×{name}" for name, count in sorted(kernel.counts.items()) if TENSOR.fullmatch(name))
    values = (kernel.registers, kernel.stack, kernel.shared, tensor or "-", kernel.counts["LDSM"], kernel.counts["LDS"], kernel.counts.total())
    return (kernel.name, kernel.architecture), tuple(map(str, values))


def order(key):
    name, architecture = key
    return name, int(re.sub(r"\D", "", architecture)), architecture


def text(rows, release):
    lines = [("kernel", "GPU", *COLUMNS)] + [(*key, *rows[key]) for key in sorted(rows, key=order)]
    body = ["  ".join(word.ljust(width) for word, width in zip(line, WIDTHS)).rstrip() for line in lines]
    return HEADER.format(release=release) + "\n".join(body) + "\n"


def parse(content):
    """(rows, release) of a table as text() writes it."""
    release = re.search(r"as nvcc (\S+) makes", content)
    rows = {}
    for line in content.splitlines():
        words = re.split(r"  +", line)
        if not line.startswith("#") and words[0] != "kernel":
            rows[words[0], words[1]] = tuple(words[2:])
    return rows, release[1] if release else ""


def release_of(path):
    return parse(path.read_text())[1] if path.exists() else ""


def merged(old, new, built):
    """`new` in place of what `old` says of the architectures that were built."""
    return {key: values for key, values in old.items() if key[1] not in built} | new


def differences(old, new, built):
    """Sentences: what of the architectures that were built is not as the table says."""
    for key in sorted(old.keys() | new.keys(), key=order):
        was, now = old.get(key), new.get(key)
        if key[1] not in built or was == now:
            continue
        place = " ".join(key)
        if was is None or now is None:
            yield f"{place}: {'not in the table' if was is None else 'in the table, not in the module'}"
        else:
            changed = (f"{column} {a} → {b}" for column, a, b in zip(COLUMNS, was, now) if a != b)
            yield f"{place}: {', '.join(changed)}"
