# SPDX-License-Identifier: Apache-2.0
"""The kernels inside a built CUDA module: what ptxas gave each of them, and their machine code as text.

cuobjdump takes the module apart and names registers and memory; nvdisasm turns machine code into text. Starting
nvdisasm costs a third of a second, so it is started once for each architecture, over the code of all kernels laid
end to end. From Turing on every instruction is 16 bytes: the n-th line of text is the n-th instruction."""
import collections
import dataclasses
import functools
import pathlib
import re
import shutil
import struct
import subprocess

INSTRUCTION_BYTES = 16


@dataclasses.dataclass
class Kernel:
    name: str           # short, as short_names() makes it
    architecture: str   # sm_90
    registers: int
    stack: int          # bytes of local memory a thread has
    shared: int         # bytes that are there without asking; on sm_90 and later 1024 of them are the system's
    code: list          # lines as nvdisasm prints them: '/*0070*/ @P0 LDG.E.128 R4, desc[UR4][R8.64] ;'

    @functools.cached_property
    def counts(self):
        """Instructions by name, without what comes after the first point; padding is not counted."""
        found = collections.Counter(re.findall(r"\*/\s+(?:@!?U?P\w+\s+)?(\w+)", "\n".join(self.code)))
        del found["NOP"]
        return found


def tool(name, folders):
    """A program of the CUDA toolkit, from one of the folders or the path; None when there is none."""
    return next((str(path) for path in (pathlib.Path(folder) / name for folder in folders) if path.is_file()), shutil.which(name))


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def sections(elf):
    """Name and content of the sections of a 64-bit little-endian ELF file that have machine code."""
    table, = struct.unpack_from("<Q", elf, 40)
    size, count, names = struct.unpack_from("<HHH", elf, 58)
    headers = [struct.unpack_from("<IIQQQQ", elf, table + i * size) for i in range(count)]
    for name, _, _, _, offset, length in headers:
        start = headers[names][4] + name
        text = elf[start:elf.index(b"\0", start)].decode()
        if text.startswith(".text."):
            yield text.removeprefix(".text."), elf[offset:offset + length]


def short_names(mangled):
    """Readable names that stay when arguments change: no return type, no arguments, no namespaces of ours."""
    full = run("c++filt", *mangled).splitlines() if mangled else []
    return {m: short_name(name) for m, name in zip(mangled, full)}


def short_name(name):
    name = re.sub(r"\(anonymous namespace\)::|memscape::(cuda::)?|std::", "", name)
    name = re.sub(r"\((\w+)\)(?=\d)", r"\1 ", name)  # an enumerator: (Operation)2 → Operation 2
    depth = 0
    for at, letter in enumerate(name):  # up to the arguments, which come after the template's
        depth += {"<": 1, ">": -1}.get(letter, 0)
        if letter == "(" and depth == 0:
            name = name[:at]
            break
    return name.removeprefix("void ").replace(", ", ",").replace(" >", ">")


def resources(text):
    """Registers, stack and shared bytes by mangled name, from cuobjdump -res-usage."""
    found = re.findall(r"Function (\S+):\s+REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+)", text)
    return {name: (int(registers), max(int(stack), int(local)), int(shared)) for name, registers, stack, shared, local in found}


def lines_of(text):
    return [line for line in text.splitlines() if line.lstrip().startswith("/*")]


def kernels_of(cubins, cuobjdump, nvdisasm, folder):
    """The kernels of some cubins of one architecture."""
    architecture = cubins[0].name.split(".")[-2]
    code, given = [], {}
    for cubin in cubins:
        code += sections(cubin.read_bytes())
        given.update(resources(run(cuobjdump, "-res-usage", cubin)))
    names = short_names([name for name, _ in code])
    raw = pathlib.Path(folder) / f"{architecture}.bin"
    raw.write_bytes(b"".join(text for _, text in code))
    lines = lines_of(run(nvdisasm, "-ndf", "-b", architecture.replace("sm_", "SM"), raw))
    if len(lines) * INSTRUCTION_BYTES != raw.stat().st_size:
        raise RuntimeError(f"{architecture}: {raw.stat().st_size} bytes of code became {len(lines)} instructions")
    at = 0
    for name, text in code:
        count = len(text) // INSTRUCTION_BYTES
        yield Kernel(names[name], architecture, *given[name], lines[at:at + count])
        at += count


def extract(module, cuobjdump, folder):
    """Every cubin of a module or object file, by architecture."""
    subprocess.run([cuobjdump, "-xelf", "all", str(pathlib.Path(module).resolve())], cwd=folder, check=True, capture_output=True)
    found = {}
    for cubin in sorted(pathlib.Path(folder).glob("*.cubin")):
        found.setdefault(cubin.name.split(".")[-2], []).append(cubin)
    return found


def compiler_release(cubin):
    """'13.0': the release of the compiler that wrote a cubin, as it says itself."""
    found = re.search(rb"Cuda compilation tools, release (\d+\.\d+)", cubin.read_bytes())
    return found[1].decode() if found else "unknown"
