// SPDX-License-Identifier: Apache-2.0
// The digests of make_conversions.py by the host functions of CUDA's cuda_fp8.h. Built by hand, see there.
#include <cuda_fp8.h>
#include <cuda_runtime_api.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>

static std::uint64_t mix(std::uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static float number(std::uint64_t i)
{
    const std::uint64_t h = mix((i + 1) * 0x9e3779b97f4a7c15u);
    const std::uint64_t cleared = (h >> 48) % 24;
    auto bits =
        std::uint32_t((h >> 63) << 31 | (127 - 40 + (h >> 32) % 70) << 23 | (h & 0x7fffff) >> cleared << cleared);
    if (h % 16 == 0)
        bits = std::uint32_t(h >> 20);
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
}

static unsigned long long digest(__nv_saturation_t saturation, __nv_fp8_interpretation_t kind)
{
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < (1u << 22); ++i) {
        const std::uint64_t bits = __nv_cvt_float_to_fp8(number(i), saturation, kind);
        const bool isNan = kind == __NV_E4M3 ? (bits & 0x7f) == 0x7f : (bits & 0x7f) > 0x7c;
        sum += mix(i << 20 | (isNan ? 0xfffffu : bits));
    }
    return sum;
}

int main()
{
    std::printf("{\"version\": \"CUDA %d.%d\", ", CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
    std::printf("\"fp8-e4m3\": \"%016llx\", \"fp8-e4m3-saturating\": \"%016llx\", ", digest(__NV_NOSAT, __NV_E4M3),
                digest(__NV_SATFINITE, __NV_E4M3));
    std::printf("\"fp8-e5m2\": \"%016llx\", \"fp8-e5m2-saturating\": \"%016llx\"}\n", digest(__NV_NOSAT, __NV_E5M2),
                digest(__NV_SATFINITE, __NV_E5M2));
}
