// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/common/simd.h"

namespace memscape::host {

bool hasIsa(Isa isa)
{
#if MEMSCAPE_X86
    switch (isa) {
    case Isa::Scalar:
    case Isa::Bytes16: return true;
    case Isa::Bytes32: return __builtin_cpu_supports("avx2");
    case Isa::Bytes64:
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl")
            && __builtin_cpu_supports("avx512bw");
    }
    return false;
#else
    return isa == Isa::Scalar || isa == Isa::Bytes16;
#endif
}

Isa widestIsa()
{
    for (const Isa isa : {Isa::Bytes64, Isa::Bytes32, Isa::Bytes16}) {
        if (hasIsa(isa))
            return isa;
    }
    return Isa::Scalar;
}

std::string isaText(Isa isa)
{
    switch (isa) {
    case Isa::Scalar: return "scalar";
    case Isa::Bytes16: return MEMSCAPE_X86 ? "SSE2" : "16-byte vectors";
    case Isa::Bytes32: return "AVX2";
    case Isa::Bytes64: return "AVX-512";
    }
    return {};
}

} // namespace memscape::host
