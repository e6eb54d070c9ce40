#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of sass_lint.py, on machine code written by hand: each rule on a kernel that keeps it and on kernels that break it."""
import contextlib
import io
import pathlib
import struct
import tempfile
import unittest
import unittest.mock

import sass_lint
from sass import module, rules, table


def kernel(name, code, architecture="sm_90", registers=32, stack=0):
    """A kernel of these instructions, one a line; a label 'a:' in front, '&a' in the place of an address. It begins at
    0x1000, as kernels do that others stand before."""
    lines = [line.strip() for line in code.strip().splitlines()]
    places = {line.split(":")[0]: f"0x{0x1000 + 16 * i:x}" for i, line in enumerate(lines) if ":" in line}
    text = []
    for i, line in enumerate(lines):
        line = line.split(":")[-1].strip()
        for label, place in places.items():
            line = line.replace("&" + label, place)
        text.append(f"        /*{0x1000 + 16 * i:04x}*/                   {line} ;")
    return module.Kernel(name, architecture, registers, stack, 0, text)


def complaints(*arguments, **more):
    return list(rules.complaints_of(kernel(*arguments, **more)))


CLOCKS = "CS2R R2, SR_GLOBALTIMERLO\nCS2R R4, SR_CLOCKLO\n"
END = "ISETP.NE.AND P0, PT, R8, -0x1, PT\n@!P0 EXIT\nCS2R R6, SR_CLOCKLO\nCS2R R12, SR_GLOBALTIMERLO\nSTG.E.64 desc[UR4][R14.64], R6\nEXIT"


def chain(loads, middle="", name="chase_v<ChaseKind 1>", end=END, load="LDG.E.64.STRONG.GPU R8, desc[UR4][R8.64]\n"):
    """A chase of so many loads a turn, with `middle` between the first and the second."""
    turn = "turn: " + load + middle + load * (loads - 1)
    return complaints(name, CLOCKS + turn + "@P1 BRA &turn\n" + end)


class EveryKernel(unittest.TestCase):
    def test_one_that_keeps_to_registers_and_known_memory_is_fine(self):
        self.assertEqual(complaints("any_v1", "LDG.E R0, desc[UR4][R2.64]\nATOMS.ADD R0, [R4], R5\nREDG.E.ADD desc[UR4][R2.64], R0\nEXIT"), [])

    def test_local_memory_is_named_with_its_bytes(self):
        self.assertEqual(complaints("any_v1", "STL [R1], R0\nEXIT", stack=16), ["16 B of local memory, allowed 0"])

    def test_local_memory_without_a_stack_is_found_in_the_code(self):
        self.assertEqual(complaints("any_v1", "@P0 STL.64 [R1], R0\nLDL.LU R0, [R1]\nEXIT"), ["2 accesses to local memory"])

    def test_local_memory_is_allowed_by_name_architecture_and_bytes(self):
        with unittest.mock.patch("sass.rules.ALLOWED_STACK", ((r"tight_1<.*>", r"sm_1[02]0", 8),)):
            self.assertEqual(complaints("tight_1<float>", "EXIT", "sm_100", stack=8), [])
            self.assertEqual(complaints("tight_1<float>", "EXIT", "sm_100", stack=16), ["16 B of local memory, allowed 8"])
            self.assertEqual(complaints("tight_1<float>", "EXIT", "sm_90", stack=8), ["8 B of local memory, allowed 0"])
            self.assertEqual(complaints("tight_2<float>", "EXIT", "sm_100", stack=8), ["8 B of local memory, allowed 0"])

    def test_an_unused_allowance_is_removed(self):
        kernels = [kernel("tight_1<float>", "EXIT", "sm_100", stack=stack) for stack in (0, 8)]
        with unittest.mock.patch("sass.rules.ALLOWED_STACK", ((r"tight_1<.*>", r"sm_1[02]0", 8),)):
            self.assertEqual(list(rules.unneeded_allowances(kernels)), [])
            self.assertEqual(list(rules.unneeded_allowances(kernels[:1])),
                             ["tight_1<.*> sm_100: 8 B of local memory are allowed and not taken any more"])
            self.assertEqual(list(rules.unneeded_allowances([])), [])  # another object file

    def test_an_access_to_memory_of_unknown_kind_is_found(self):
        for access in ("LD.E R0, desc[UR4][R2.64]", "ST.E.64 [R2.64], R4", "@P0 ATOM.E.ADD PT, R0, [R2.64], R4"):
            self.assertEqual(complaints("flash_2<>", access + "\nEXIT"), ["1 accesses to memory of a kind that the compiler did not know"])


class Chases(unittest.TestCase):
    def test_a_chain_of_whole_turns_is_fine(self):
        self.assertEqual(chain(32), [])
        self.assertEqual(chain(128), [])
        self.assertEqual(chain(32, name="chase_v<ChaseKind 2>", load="LDG.E.64.STRONG.GPU R8, [R8]\n"), [])  # Turing
        self.assertEqual(chain(32, name="chase_shared_v4", load="LDS R8, [R8]\n"), [])
        self.assertEqual(chain(16, name="banks_latency_v2<Word16>", load="LDS.128 R8, [R8]\n"), [])

    def test_counting_the_turns_between_the_loads_is_fine(self):
        self.assertEqual(chain(32, "IADD3 R0, P1, R0, 0x4, RZ\nISETP.NE.U32.AND P1, PT, R0, RZ, PT\n"), [])

    def test_a_turn_that_is_not_whole_is_found(self):
        self.assertEqual(chain(33), ["1 LDG more than turns of 32"])
        self.assertEqual(chain(31), ["no turn of 32 LDG is left"])
        self.assertEqual(chain(32, name="chase_shared_v4"), ["no turn of 32 LDS is left"])

    def test_a_load_that_does_not_follow_the_last_is_found(self):
        self.assertEqual(chain(31, "LDG.E.64 R10, desc[UR4][R20.64]\n"),
                         ["LDG at 0x30 does not follow the load before it", "LDG at 0x40 does not follow the load before it"])

    def test_an_offset_is_not_the_answer(self):
        self.assertEqual(chain(31, "LDG.E.64 R8, desc[UR4][R8.64+0x8]\n"), ["LDG at 0x30 does not follow the load before it"])

    def test_a_loop_that_begins_elsewhere_than_it_ended_is_found(self):
        turn = "LDG.E.64 R8, desc[UR4][R20.64]\n" + "LDG.E.64 R8, desc[UR4][R8.64]\n" * 31
        self.assertEqual(complaints("chase_v<ChaseKind 2>", CLOCKS + "turn: " + turn + "@P1 BRA &turn\n" + END),
                         ["LDG at 0x20 does not follow the load before it"])

    def test_arithmetic_on_the_address_is_found_but_for_the_chain_of_indices(self):
        middle = "IADD3 R8, P0, R8, R16, RZ\n"
        self.assertEqual(chain(32, middle), ["IADD3 at 0x30 changes the address between two loads", ])
        self.assertEqual(chain(32, "IMAD.WIDE.U32 R10, R8, 0x80, R6\nMOV R8, R10\n", name="chase_v<ChaseKind 0>"), [])

    def test_an_index_that_is_not_made_of_the_last_is_found(self):
        load = "IMAD.WIDE.U32 R10, R8, 0x80, R6\nLDG.E.64 R8, desc[UR4][R10.64]\n"
        stray = "IMAD.WIDE.U32 R10, R20, 0x80, R6\nLDG.E.64 R8, desc[UR4][R10.64]\n"
        self.assertEqual(complaints("chase_v<ChaseKind 0>", CLOCKS + "turn: " + load * 32 + "@P1 BRA &turn\n" + END), [])
        self.assertEqual(complaints("chase_v<ChaseKind 0>", CLOCKS + "turn: " + load * 31 + stray + "@P1 BRA &turn\n" + END),
                         ["LDG at 0x410 does not follow the load before it"])

    def test_other_memory_between_the_loads_is_found(self):
        self.assertEqual(chain(32, "STS [R16], R17\n"), ["STS between the loads"])

    def test_a_clock_that_is_read_too_early_is_found(self):
        early = "CS2R R6, SR_CLOCKLO\nISETP.NE.AND P0, PT, R8, -0x1, PT\n@!P0 EXIT\nCS2R R12, SR_GLOBALTIMERLO\nEXIT"
        self.assertEqual(chain(32, end=early), ["SR_CLOCKLO is last read without waiting for the last LDG"])
        self.assertEqual(chain(32, "CS2R R6, SR_CLOCKLO\nCS2R R12, SR_GLOBALTIMERLO\n", end="ISETP.NE.AND P0, PT, R8, -0x1, PT\nEXIT"),
                         ["SR_CLOCKLO is last read before the last LDG", "SR_GLOBALTIMERLO is last read before the last LDG"])

    def test_a_clock_that_is_read_once_or_too_late_is_found(self):
        loads = "turn: " + "LDG.E.64 R8, desc[UR4][R8.64]\n" * 32 + "@P1 BRA &turn\n"
        self.assertEqual(complaints("chase_v<ChaseKind 1>", "CS2R R2, SR_GLOBALTIMERLO\n" + loads + "CS2R R4, SR_CLOCKLO\n" + END),
                         ["SR_CLOCKLO is not read before the first LDG"])


class Stamp(unittest.TestCase):
    def test_clocks_side_by_side_are_fine(self):
        self.assertEqual(complaints("stamp_v1", "CS2R R4, SR_GLOBALTIMERLO\nCS2R R6, SR_CLOCKLO\nSTG.E.64 desc[UR4][R2.64], R4\nEXIT"), [])

    def test_a_store_between_the_clocks_is_found(self):
        self.assertEqual(complaints("stamp_v1", "CS2R R4, SR_GLOBALTIMERLO\nSTG.E.64 desc[UR4][R2.64], R4\nCS2R R4, SR_CLOCKLO\nEXIT"),
                         ["the clocks are read at 0x0, 0x20"])
        self.assertEqual(complaints("stamp_v1", "CS2R R4, SR_CLOCKLO\nEXIT"), ["the clocks are read at 0x0"])


class Banks(unittest.TestCase):
    def requests(self, count, access, name, end=END):
        return complaints(name, CLOCKS + "turn: " + (access + "\n") * count + "@P1 BRA &turn\n" + end, registers=64)

    def test_whole_turns_are_fine(self):
        self.assertEqual(self.requests(64, "STS.128 [R4], R8", "banks_throughput_v1<Word16,true>"), [])
        self.assertEqual(self.requests(16, "LDS R8, [R4]", "banks_throughput_v1<unsigned int,false>"), [])

    def test_stores_that_the_compiler_made_one_are_found(self):
        self.assertEqual(self.requests(1, "STS [R4], R7", "banks_throughput_v1<unsigned int,true>"), ["no turn of 16 STS is left"])

    def test_registers_that_a_full_block_does_not_get_are_found(self):
        self.assertEqual(complaints("stream_v1<unsigned int,Operation 0>", "LDG.E R0, desc[UR4][R2.64]\nSTG.E desc[UR4][R4.64], R0\nEXIT", registers=65),
                         ["65 registers: a block of 1024 threads does not start"])


class Streams(unittest.TestCase):
    def test_words_of_the_promised_width_are_fine(self):
        copy = "LDG.E.128 R4, desc[UR4][R2.64]\nSTG.E.128 desc[UR4][R8.64], R4\nEXIT"
        self.assertEqual(complaints("stream_v1<Word16,Operation 2>", copy), [])
        self.assertEqual(complaints("stream_v1<unsigned char,Operation 1>", "STG.E.U8 desc[UR4][R8.64], R4\nEXIT"), [])

    def test_narrower_words_are_found(self):
        split = "LDG.E.64 R4, desc[UR4][R2.64]\nLDG.E.64 R6, desc[UR4][R2.64+0x8]\nSTG.E.128 desc[UR4][R8.64], R4\nEXIT"
        self.assertEqual(complaints("stream_v2<Word16,Operation 2>", split), ["LDG of [8] B, promised [16] B"])
        self.assertEqual(complaints("stream_v1<Word16,Operation 1>", "STG.E desc[UR4][R8.64], R4\nEXIT"), ["STG of [4] B, promised [16] B"])

    def test_a_write_that_reads_is_found(self):
        self.assertEqual(complaints("stream_v1<Word8,Operation 1>", "LDG.E.64 R2, desc[UR4][R2.64]\nSTG.E.64 desc[UR4][R8.64], R4\nEXIT"),
                         ["LDG of [8] B, promised [] B"])

    def test_four_loads_before_the_first_use_are_fine_and_three_are_found(self):
        loads = [f"LDG.E.128 R{8 + 4 * i}, desc[UR4][R2.64]" for i in range(4)]
        uses = [f"IADD3 R0, R{11 + 4 * i}, R0, RZ" for i in range(4)]  # of the last of four registers
        end = ["STG.E desc[UR4][R4.64], R0", "EXIT"]
        self.assertEqual(complaints("laps_v1<Operation 0,true>", "\n".join(loads + uses + end)), [])
        self.assertEqual(complaints("laps_v1<Operation 0,true>", "\n".join(loads[:3] + uses[:1] + loads[3:] + uses[1:] + end)),
                         ["4 loads on their way in 0 places, promised in 1"])

    def test_gathered_words_need_indices_and_words_on_their_way(self):
        indices = [f"LDG.E R{8 + i}, desc[UR4][R2.64]" for i in range(4)]
        places = [f"IMAD.WIDE.U32 R{32 + 2 * i}, R{8 + i}, 0x10, R6" for i in range(4)]
        words = [f"LDG.E.128 R{12 + 4 * i}, desc[UR4][R{32 + 2 * i}.64]" for i in range(4)]
        uses = [f"IADD3 R0, R{12 + 4 * i}, R0, RZ" for i in range(4)]
        end = ["STG.E desc[UR4][R4.64], R0", "EXIT"]
        name = "stride_v2<Word16,Operation 0,Gatherer>"
        self.assertEqual(complaints(name, "\n".join(indices + places + words + uses + end)), [])
        alone = [line for four in zip(places, words, uses) for line in four]
        self.assertEqual(complaints(name, "\n".join(indices + alone + end)), ["3 loads on their way in 1 places, promised in 2"])


class Additions(unittest.TestCase):
    NAME = "gradientsOfAll_9<OnePassTile<Half,128,64,128,8>>"
    FOUR = "REDG.E.ADD.F32x4.FTZ.RN.STRONG.GPU desc[UR8][R6.64], R16\nEXIT"
    ONE = "RED.E.ADD.F32.FTZ.RN.STRONG.GPU [R6.64], R16\nEXIT"

    def test_four_at_a_time_are_fine_and_single_ones_where_there_are_no_others(self):
        self.assertEqual(complaints(self.NAME, self.FOUR), [])
        self.assertEqual(complaints(self.NAME, self.ONE, architecture="sm_80"), [])

    def test_single_ones_an_answer_and_nothing_at_all_are_found(self):
        self.assertEqual(complaints(self.NAME, self.ONE), ["1 additions to memory take fewer than four floats"])
        self.assertEqual(complaints(self.NAME, self.FOUR.replace("REDG.E", "ATOMG.E")),
                         ["1 additions to memory wait for an answer", "nothing is added to memory"])


class Table(unittest.TestCase):
    def setUp(self):
        self.one = kernel("flash_5<FlashTile<Half,64>>", "LDSM.16.M88.4 R0, [R8]\nHMMA.16816.F32 R0, R4, R8, R0\nHMMA.16816.F32 R0, R4, R8, R0\nEXIT\nNOP", registers=128)

    def test_a_row_counts_what_matters_and_no_padding(self):
        self.assertEqual(table.row(self.one), (("flash_5<FlashTile<Half,64>>", "sm_90"), ("128", "0", "0", "2×HMMA", "1", "0", "4")))

    def test_kernels_without_tensor_cores_and_shared_memory_are_left_out(self):
        self.assertTrue(table.is_counted(self.one))
        self.assertTrue(table.is_counted(kernel("hopper", "HGMMA.64x128x16.F32 R24, gdesc[UR4]\nEXIT", "sm_90a")))
        self.assertFalse(table.is_counted(kernel("add", "HFMA2.MMA R2, -RZ, RZ, 0, 0\nEXIT")))
        self.assertFalse(table.is_counted(kernel("other", "LDS R0, [R8]\nEXIT", "sm_86")))

    def test_what_is_written_is_read_back_in_order(self):
        rows = {("b<unsigned int>", "sm_120"): ("1",) * 7, ("b<unsigned int>", "sm_90"): ("2",) * 7, ("a" * 70, "sm_80"): ("3",) * 7}
        content = table.text(rows, "13.0")
        self.assertEqual(table.parse(content), (rows, "13.0"))
        self.assertEqual([line.split()[-1] for line in content.splitlines()[4:]], ["3", "2", "1"])

    def test_a_changed_count_is_named(self):
        old, new = dict([table.row(self.one)]), {("flash_5<FlashTile<Half,64>>", "sm_90"): ("128", "8", "0", "2×HMMA", "1", "2", "4")}
        self.assertEqual(list(table.differences(old, new, ["sm_90"])), ["flash_5<FlashTile<Half,64>> sm_90: stack 0 → 8, LDS 0 → 2"])
        self.assertEqual(list(table.differences(old, {}, ["sm_90"])), ["flash_5<FlashTile<Half,64>> sm_90: in the table, not in the module"])
        self.assertEqual(list(table.differences({}, old, ["sm_90"])), ["flash_5<FlashTile<Half,64>> sm_90: not in the table"])
        self.assertEqual(list(table.differences(old, {}, ["sm_80"])), [])  # not built

    def test_an_update_keeps_what_was_not_built(self):
        old = {("a", "sm_80"): ("1",) * 7, ("a", "sm_90"): ("1",) * 7, ("gone", "sm_90"): ("1",) * 7}
        self.assertEqual(table.merged(old, {("a", "sm_90"): ("2",) * 7}, ["sm_90"]), {("a", "sm_80"): ("1",) * 7, ("a", "sm_90"): ("2",) * 7})


class Command(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "kernels.txt"
        self.rows = {("a", "sm_90"): ("1",) * 7}
        self.path.write_text(table.text(self.rows, "13.0"))

    def said(self, function, *arguments):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            return function(*arguments), out.getvalue()

    def test_equal_counts_are_silent(self):
        self.assertEqual(self.said(sass_lint.compare, self.path, self.rows, ["sm_90"], "13.0"), (0, ""))

    def test_a_changed_count_says_how_to_update(self):
        different, out = self.said(sass_lint.compare, self.path, {("a", "sm_90"): ("2",) * 7}, ["sm_90"], "13.0")
        self.assertEqual(different, 1)
        self.assertIn("a sm_90: registers 1 → 2", out)
        self.assertIn("sass_lint.py --update MODULE", out)

    def test_another_release_is_said_and_not_compared(self):
        different, out = self.said(sass_lint.compare, self.path, {}, ["sm_90"], "13.1")
        self.assertEqual((different, out), (0, "counts not compared: the table is of nvcc 13.0, the module of 13.1\n"))

    def test_an_update_by_another_release_needs_all_architectures(self):
        both = self.rows | {("a", "sm_80"): ("1",) * 7}
        self.path.write_text(table.text(both, "13.0"))
        self.assertEqual(self.said(sass_lint.update, self.path, self.rows, ["sm_90"], "13.1")[0], 1)
        self.assertEqual(table.parse(self.path.read_text()), (both, "13.0"))
        self.assertEqual(self.said(sass_lint.update, self.path, both, ["sm_80", "sm_90"], "13.1")[0], 0)
        self.assertEqual(table.parse(self.path.read_text()), (both, "13.1"))


    def test_without_a_disassembler_it_is_skipped_with_the_reason(self):
        with unittest.mock.patch("sass_lint.find_tools", return_value=["cuobjdump", None]), unittest.mock.patch("sys.argv", ["sass_lint.py", "module.so"]):
            status, out = self.said(sass_lint.main)
        self.assertEqual(status, 77)
        self.assertIn("packaging/test --with-cuda", out)

    def test_a_tool_is_taken_from_a_folder_that_has_it(self):
        folder = self.path.parent
        (folder / "nvdisasm").touch()
        self.assertEqual(module.tool("nvdisasm", [folder / "none", folder]), str(folder / "nvdisasm"))
        self.assertIsNone(module.tool("no-such-tool", [folder]))


class Module(unittest.TestCase):
    def test_names_are_short_and_stay(self):
        names = module.short_names([
            "_ZN8memscape4cuda7chase_vILNS0_9ChaseKindE2EEEvPKcmmmPNS0_11ChaseResultE",
            "_ZN8memscape4cuda15chase_shared_v4EPKjjmPNS0_11ChaseResultE",
            "_ZN8memscape4cuda9stride_v2INS0_6Word16ELNS_9OperationE2ENS0_6WalkerEEEvPKT_PS5_T1_mNS0_4SinkE"])
        self.assertEqual(list(names.values()), ["chase_v<ChaseKind 2>", "chase_shared_v4", "stride_v2<Word16,Operation 2,Walker>"])
        self.assertEqual(module.short_name("void memscape::cuda::f<memscape::cuda::Tile<(int)4, true> >(void (*)(int))"), "f<Tile<int 4,true>>")

    def test_resources_are_read(self):
        text = " Function a:\n  REG:26 STACK:24 SHARED:1024 LOCAL:0 CONSTANT[0]:568\n Function b:\n  REG:8 STACK:0 SHARED:0 LOCAL:4 TEXTURE:0\n"
        self.assertEqual(module.resources(text), {"a": (26, 24, 1024), "b": (8, 4, 0)})

    def test_sections_with_code_are_found(self):
        names, code = b"\0.shstrtab\0.text.kernel\0", bytes(range(32))
        heads = [(0, 64, 0), (1, 64, len(names)), (11, 64 + len(names), len(code))]
        table_at = 64 + len(names) + len(code)
        elf = bytearray(64)
        struct.pack_into("<Q", elf, 40, table_at)
        struct.pack_into("<HHH", elf, 58, 64, len(heads), 1)
        elf += names + code
        for name, offset, size in heads:
            elf += struct.pack("<IIQQQQ", name, 1, 0, 0, offset, size) + bytes(24)
        self.assertEqual(list(module.sections(bytes(elf))), [("kernel", code)])


if __name__ == "__main__":
    unittest.main()
