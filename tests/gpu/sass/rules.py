# SPDX-License-Identifier: Apache-2.0
"""What the machine code of a kernel must be like, so that the kernel measures what it says.

Every kernel promises to keep its variables in registers (what cannot be kept stands in ALLOWED_STACK, by name and
with the reason) and that the compiler knows which memory each access goes to. promises_of() says what kernels promise
beside that. A rule looks at the order of instructions in memory and at straight runs of them (blocks); it follows no
branch, which for kernels as small as these is enough."""
import dataclasses
import re

REGISTERS_OF_MULTIPROCESSOR = 65536
STORES = {"ST", "STG", "STS", "STL", "RED", "REDG", "BAR", "BRA", "EXIT", "NOP", "BSSY", "BSYNC", "MEMBAR", "WARPSYNC"}
MEMORY = {"LD", "ST", "LDG", "STG", "LDS", "STS", "LDL", "STL", "ATOM", "ATOMG", "ATOMS", "RED", "REDG", "LDSM", "LDGSTS"}
GENERIC = {"LD", "ST", "ATOM"}
JUMPS = {"BRA", "EXIT", "RET", "CALL", "BRX", "JMP"}


@dataclasses.dataclass
class Instruction:
    at: int        # bytes from the kernel's start
    opcode: str
    operands: list
    target: int    # of a branch, None for any other

    @property
    def base(self):
        return self.opcode.partition(".")[0]

    @property
    def width(self):
        """Bytes that a load or store moves for a thread."""
        named = {"128": 16, "64": 8, "U16": 2, "S16": 2, "U8": 1, "S8": 1}
        return next((named[part] for part in self.opcode.split(".") if part in named), 4)

    @property
    def writes(self):
        """Numbers of the registers that it writes."""
        found = re.match(r"R(\d+)", self.operands[0]) if self.operands and self.base not in STORES else None
        if not found:
            return set()
        is_pair = ".64" in self.opcode or ".WIDE" in self.opcode or self.base == "CS2R" and ".32" not in self.opcode
        count = 4 if ".128" in self.opcode else 2 if is_pair else 1
        return set(range(int(found[1]), int(found[1]) + count))

    @property
    def reads(self):
        """Numbers of the registers that it reads; of a pair the lower one."""
        start = 0 if self.base in STORES or not self.writes else 1
        return {int(number) for operand in self.operands[start:] for number in re.findall(r"\bR(\d+)", operand)}

    @property
    def address(self):
        """The register in whose place of memory a load looks, None when anything is added to it."""
        found = re.search(r"\[R(\d+)(?:\.64)?\]$", self.operands[-1])
        return int(found[1]) if found else None


def parse(lines):
    """Instructions of a kernel; the addresses in the text need not begin at 0."""
    found = [re.match(r"\s*/\*([0-9a-f]+)\*/\s+(?:@!?U?P\w+\s+)?([\w.]+)\s*([^;]*)", line) for line in lines]
    start = int(found[0][1], 16) if found else 0
    code = []
    for at, opcode, rest in (match.groups() for match in found):
        operands = [operand.strip() for operand in rest.split(",")] if rest.strip() else []
        to = re.search(r"0x([0-9a-f]+)$", operands[-1]) if opcode.startswith("BRA") and operands else None
        code.append(Instruction(int(at, 16) - start, opcode, operands, int(to[1], 16) - start if to else None))
    return code


def blocks(code):
    """Runs of instructions that are only entered at the first and only left after the last."""
    entries = {one.target for one in code}
    block = []
    for one in code:
        if block and (one.at in entries or block[-1].base in JUMPS):
            yield block
            block = []
        block.append(one)
    if block:
        yield block


# ---- rules: each gives complaints ---------------------------------------------------------------

def fits(threads):
    """A block of so many threads gets its registers."""
    def rule(kernel, _):
        taken = (kernel.registers + 7) // 8 * 8
        if taken * threads > REGISTERS_OF_MULTIPROCESSOR:
            yield f"{kernel.registers} registers: a block of {threads} threads does not start"
    return rule


def moves(loaded, stored):
    """Global loads and stores of these widths in bytes, and of all of these."""
    def rule(_, code):
        for access, promised in (("LDG", loaded), ("STG", stored)):
            found = {one.width for one in code if one.base == access}
            if found != set(promised):
                yield f"{access} of {sorted(found)} B, promised {sorted(promised)} B"
    return rule


def in_flight(count, groups):
    """So many loads are on their way before the first of them is used, in `groups` places."""
    def rule(_, code):
        met = sum(most >= count for block in blocks(code) for most in loads_before_use(block))
        if met < groups:
            yield f"{count} loads on their way in {met} places, promised in {groups}"
    return rule


def loads_before_use(block):
    awaited = []
    for one in block:
        if any(one.reads & answer for answer in awaited):
            yield len(awaited)
            awaited = []
        if one.base == "LDG":
            awaited.append(one.writes)
    yield len(awaited)


def turns_of(code, access, count):
    """The blocks with the requests that are timed."""
    return [block for block in blocks(code) if sum(one.base == access for one in block) >= count]


def timed(access, count):
    """Requests come `count` a turn; the clocks are read before the first, and after the last is answered. Stores
    have no answer."""
    def rule(_, code):
        turns = turns_of(code, access, count)
        if not turns:
            yield f"no turn of {count} {access} is left"
            return
        requests = [one for turn in turns for one in turn if one.base == access]
        if extra := sum(sum(one.base == access for one in turn) % count for turn in turns):
            yield f"{extra} {access} more than turns of {count}"
        for clock in ("SR_CLOCKLO", "SR_GLOBALTIMERLO"):
            reads = [one.at for one in code if clock in one.operands]
            if len(reads) < 2 or reads[0] > requests[0].at:
                yield f"{clock} is not read before the first {access}"
            elif reads[-1] < requests[-1].at:
                yield f"{clock} is last read before the last {access}"
            elif access.startswith("LD") and not is_awaited(code, requests[-1], reads[-1]):
                yield f"{clock} is last read without waiting for the last {access}"
    return rule


def is_awaited(code, load, until):
    return any(one.reads & load.writes for one in code if load.at < one.at < until)


def read_together():
    """The two clocks are read one directly after the other."""
    def rule(_, code):
        reads = [one.at for one in code if {"SR_CLOCKLO", "SR_GLOBALTIMERLO"} & set(one.operands)]
        if len(reads) != 2 or reads[1] - reads[0] != 16:
            yield f"the clocks are read at {', '.join(map(hex, reads))}"
    return rule


def chase(access, count, computes=False):
    """Timed, and each load's address is the answer of the one before, or with `computes` made of it; no other
    memory is asked in between."""
    def rule(kernel, code):
        yield from timed(access, count)(kernel, code)
        for turn in turns_of(code, access, count):
            if others := {one.base for one in turn} & MEMORY - {access}:
                yield f"{', '.join(sorted(others))} between the loads"
            last = max(i for i, one in enumerate(turn) if one.base == access)
            if turn[-1].target == turn[0].at:  # a loop: the first load follows the last
                turn = turn[last:] + turn[:last + 1]
            yield from broken_links(turn, access, computes)
    return rule


def broken_links(turn, access, computes):
    answer = set()  # registers with the last answer, or with what was made of it
    for one in turn:
        if one.base == access:
            if answer and not (one.reads & answer if computes else one.address in answer):
                yield f"{access} at {one.at:#x} does not follow the load before it"
            answer = one.writes if computes else {min(one.writes)}
        elif computes and one.reads & answer:
            answer = answer | one.writes
        elif one.writes & answer:
            if not computes:
                yield f"{one.opcode} at {one.at:#x} changes the address between two loads"
            answer = answer - one.writes


def adds_four_at_a_time():
    """Additions to memory ask for no answer, and where the GPU can (from sm_90 on) take four floats at a time."""
    def rule(kernel, code):
        if asked := sum(one.base in ("ATOM", "ATOMG") for one in code):
            yield f"{asked} additions to memory wait for an answer"
        added = [one for one in code if one.base in ("RED", "REDG")]
        generation = int(kernel.architecture.removeprefix("sm_"))
        if not added and generation >= 80:  # before, the kernel is empty
            yield "nothing is added to memory"
        if generation >= 90 and (single := sum("F32x4" not in one.opcode for one in added)):
            yield f"{single} additions to memory take fewer than four floats"
    return rule


# ---- which kernel promises what -------------------------------------------------------------------

WIDTHS = {"unsigned char": 1, "unsigned short": 2, "unsigned int": 4, "Word8": 8, "Word16": 16}
READ, WRITE, COPY, TRIAD = (f"Operation {i}" for i in range(4))
IN_FLIGHT = 4            # plan.h
CHASED, BANKED = 32, 16  # loads of a turn: chase.cu, kernels.h
MOST_THREADS = 1024      # the largest block that these are launched with


def promises_of(name):
    """What a kernel of this short name promises beside what every kernel does."""
    base, _, template = name.partition("<")
    arguments = template.removesuffix(">").split(",")
    if base == "chase_v":
        return [chase("LDG", CHASED, computes=arguments == ["ChaseKind 0"])]
    if base == "chase_shared_v4":
        return [chase("LDS", CHASED)]
    if base == "banks_latency_v2":
        return [chase("LDS", BANKED)]
    if base == "banks_throughput_v1":
        return [timed("STS" if arguments[1] == "true" else "LDS", BANKED), fits(MOST_THREADS)]
    if base in ("stream_v1", "stream_v2", "stream_v3"):
        return streaming(WIDTHS[arguments[0]], arguments[1], base == "stream_v3")
    if base in ("stride_v1", "stride_v2"):
        return streaming(WIDTHS[arguments[0]], arguments[1], base == "stride_v2", arguments[2] == "Gatherer")
    if base == "stamp_v1":
        return [read_together()]
    if base == "gradientsOfAll_9":
        return [adds_four_at_a_time()]
    if base == "laps_v1":
        return streaming(16, arguments[0], True)
    return []


def streaming(width, operation, is_unrolled, gathers=False):
    loaded = ([] if operation == WRITE else [width]) + [4] * gathers
    stored = [4] if operation == READ else [width]  # a read leaves its sum
    rules = [moves(loaded, stored), fits(MOST_THREADS)]
    if is_unrolled and loaded:
        # Of gathered words the first of four may be used before the last is asked for: ptxas saves a register.
        rules.append(in_flight(IN_FLIGHT - gathers, groups=(operation != WRITE) + gathers))
    return rules


# Bytes of local memory, by patterns of name and architecture.
ALLOWED_STACK = (
    # Of 255 registers 192 are sums: a few addresses go to memory and come back once a tile.
    (r"flash_6<.*>", r"sm_(80|86|89|90|100|120)", 24),
    # Of 255 registers 192 are sums, too: what is wanted after the loop over tiles waits in memory, and one address.
    (r"gradientsOfKeys_1<KeysTile<\w+,128,1,64>>", r"sm_8[069]", 8),
    (r"gradientsOfQueries_1<FlashTile<\w+,128,4,2,32,true>>", r"sm_1[02]0", 16),
    # These GPUs have too little shared memory for it and never run it: they take the smaller tile.
    (r"gradientsOfAll_9<OnePassTile<\w+,64,128,128,8>>", r"sm_8[69]", 8),
    # Hopper widens FP8 to halves: addresses go to memory and come back once a strip, or at the end.
    (r"formatProduct_1<E[45]M[32]Numbers,(true|false)>", r"sm_(90|100)", 16),
)


def is_allowed(entry, kernel):
    return bool(re.fullmatch(entry[0], kernel.name) and re.fullmatch(entry[1], kernel.architecture))


def stack_allowed(kernel):
    return next((entry[2] for entry in ALLOWED_STACK if is_allowed(entry, kernel)), 0)


def unneeded_allowances(kernels):
    """Sentences: what is allowed to kernels of one architecture of which none takes it."""
    for entry in ALLOWED_STACK:
        allowed = [kernel for kernel in kernels if is_allowed(entry, kernel)]
        if allowed and not any(kernel.stack for kernel in allowed):
            yield f"{entry[0]} {allowed[0].architecture}: {entry[2]} B of local memory are allowed and not taken any more"


def complaints_of(kernel):
    """What is wrong with a kernel, a sentence each."""
    if kernel.stack > stack_allowed(kernel):
        yield f"{kernel.stack} B of local memory, allowed {stack_allowed(kernel)}"
    if not kernel.stack and (local := kernel.counts["LDL"] + kernel.counts["STL"]):
        yield f"{local} accesses to local memory"
    if unknown := sum(kernel.counts[name] for name in GENERIC):
        yield f"{unknown} accesses to memory of a kind that the compiler did not know"
    if promises := promises_of(kernel.name):
        code = parse(kernel.code)
        for rule in promises:
            yield from rule(kernel, code)
