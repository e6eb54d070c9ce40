// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/placement/adam.h"

#include "kernels/host/common/simd.h"
#include "kernels/programs/common/mlp_numbers.h"

#include <cmath>
#include <vector>

namespace memscape::host {

namespace {

/// What a step does to every element alike.
struct AdamFactors
{
    float beta1, rest1, beta2, rest2; ///< β and 1 − β
    float rate;                       ///< lr / (1 − β₁ᵗ)
    float root;                       ///< 1 / √(1 − β₂ᵗ)
    float epsilon;
};

AdamFactors factorsOf(const AdamStep& step)
{
    const double first = 1 - std::pow(double(step.beta1), step.step),
                 second = 1 - std::pow(double(step.beta2), step.step);
    return {step.beta1,
            1 - step.beta1,
            step.beta2,
            1 - step.beta2,
            float(double(step.rate) / first),
            float(1 / std::sqrt(second)),
            step.epsilon};
}

/// A loop that the compiler turns into vectors of its caller's width.
MEMSCAPE_INLINE void adamLoop(float* __restrict p, float* __restrict m, float* __restrict v, const float* __restrict g,
                              std::size_t count, const AdamFactors& by)
{
    const AdamFactors f = by;
    for (std::size_t i = 0; i < count; ++i) {
        const float gradient = g[i];
        const float first = f.beta1 * m[i] + f.rest1 * gradient;
        const float second = f.beta2 * v[i] + f.rest2 * gradient * gradient;
        m[i] = first;
        v[i] = second;
        p[i] -= f.rate * first / (__builtin_sqrtf(second) * f.root + f.epsilon);
    }
}

using AdamKernel = void (*)(const AdamArrays& arrays, std::size_t count, const AdamFactors& factors);

void adam16(const AdamArrays& a, std::size_t count, const AdamFactors& factors)
{
    adamLoop(a.p, a.m, a.v, a.g, count, factors);
}
#if MEMSCAPE_X86
__attribute__((target("avx2,fma"))) void adam32(const AdamArrays& a, std::size_t count, const AdamFactors& factors)
{
    adamLoop(a.p, a.m, a.v, a.g, count, factors);
}
__attribute__((target("avx512f,avx512vl,avx512bw,fma"))) void adam64(const AdamArrays& a, std::size_t count,
                                                                     const AdamFactors& factors)
{
    adamLoop(a.p, a.m, a.v, a.g, count, factors);
}
#endif

std::vector<AdamKernel> adamKernels()
{
    std::vector<AdamKernel> kernels{adam16};
#if MEMSCAPE_X86
    if (hasIsa(Isa::Bytes32) && __builtin_cpu_supports("fma"))
        kernels.push_back(adam32);
    if (hasIsa(Isa::Bytes64))
        kernels.push_back(adam64);
#endif
    return kernels;
}

void compareAdam(Check& check, AdamKernel kernel, std::size_t count)
{
    constexpr float behind = 77;
    std::vector<float> p(count + 1, behind), m(count + 1, behind), v(count + 1, behind), g(count);
    std::vector<double> exactP(count), exactM(count), exactV(count);
    for (std::size_t i = 0; i < count; ++i) {
        p[i] = mlpUniform(1, i);
        m[i] = mlpUniform(2, i) / 16;
        v[i] = std::fabs(mlpUniform(3, i)) / 64;
        exactP[i] = double(p[i]);
        exactM[i] = double(m[i]);
        exactV[i] = double(v[i]);
    }
    AdamStep step;
    for (step.step = 1; step.step <= 3; ++step.step) {
        for (std::size_t i = 0; i < count; ++i) {
            g[i] = mlpUniform(3 + std::uint64_t(step.step), i);
            const double gradient = double(g[i]);
            exactM[i] = double(step.beta1) * exactM[i] + double(1 - step.beta1) * gradient;
            exactV[i] = double(step.beta2) * exactV[i] + double(1 - step.beta2) * gradient * gradient;
            const double root = std::sqrt(exactV[i] / (1 - std::pow(double(step.beta2), step.step)));
            exactP[i] -= double(step.rate) * (exactM[i] / (1 - std::pow(double(step.beta1), step.step)))
                / (root + double(step.epsilon));
        }
        kernel({p.data(), m.data(), v.data(), g.data()}, count, factorsOf(step));
    }
    for (std::size_t i = 0; i < count; ++i) {
        check.compare(i, double(p[i]), exactP[i]);
        check.compare(i, double(m[i]), exactM[i]);
        check.compare(i, double(v[i]), exactV[i]);
    }
    check.require(count, p[count] == behind && m[count] == behind && v[count] == behind, "written behind the end");
}

} // namespace

void adamUpdate(const AdamArrays& arrays, std::size_t count, const AdamStep& step)
{
    static const AdamKernel widest = adamKernels().back();
    widest(arrays, count, factorsOf(step));
}

Check checkAdam()
{
    Check check({1e-6, 2e-6});
    for (const AdamKernel kernel : adamKernels()) {
        for (const std::size_t count : {1, 7, 16, 33, 1000})
            compareAdam(check, kernel, count);
    }
    return check;
}

} // namespace memscape::host
