#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Assembles version 8 of flash attention and refuses what would be right and slow: products that ptxas
# runs one after the other or fences by itself (it says so, C7510 to C7520), setmaxnreg ignored (C7508),
# registers spilled to memory; and, where there is a disassembler, a softmax that was put off until the
# products that it should hide behind are done.
# Arguments: nvcc, the sources' root, where the cubin goes, cuobjdump (may be missing).
said=$("$1" -std=c++17 -I"$2" -gencode=arch=compute_90a,code=sm_90a -Xptxas -v -cubin -o "$3" \
    "$2/kernels/cuda/attention/flash_hopper.cu" 2>&1) || { echo "$said"; exit 1; }
kernels=$(echo "$said" | grep -c "Compiling entry function .*flash_8")
[ "$kernels" -eq 4 ] || { echo "$kernels kernels instead of 4: two formats, two head dimensions"; exit 1; }
if echo "$said" | grep -E "C75[0-9][0-9]|Potential|[1-9][0-9]* bytes (stack frame|spill)"; then
    exit 1
fi
echo "$said" | grep "Used"
[ -x "$4" ] || { echo "no cuobjdump: the order of instructions was not looked at"; exit 0; }
# A tile has 64 exponentials for the scores and 2 for the sums, between the wait for the scores (one
# group may still run) and the wait for the values.
"$4" -sass "$3" | awk '
    /Function :/ { name = $NF; open = 0 }
    /WARPGROUP.DEPBAR.LE gsb0, 0x1/ { open = 1; powers = 0 }
    /MUFU.EX2/ { powers += open }
    /WARPGROUP.DEPBAR.LE gsb0, 0x0/ && open { open = 0; ++loops; if (powers < 66) { late = 1
        print name ": " powers " of 66 exponentials before the values are waited for" } }
    END { print loops " loops"; exit late || loops != 4 }'
