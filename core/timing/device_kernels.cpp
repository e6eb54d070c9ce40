// SPDX-License-Identifier: Apache-2.0
#include "core/timing/device_kernels.h"

#include "core/timing/attention_time.h"
#include "core/timing/gemm_time.h"

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

/// Terms of a part of a split sum: cuBLAS leaves 1024³ whole on an H100 (gemm_time.h).
constexpr double leastSplit = 2048;

/// FlashAttention-2's, whose shares do not depend on which of our versions runs.
double attentionSeconds(const Device& device, const AttentionProblem& problem)
{
    const auto& versions = attentionVersions(AttentionKind::Flash, true);
    const auto cost = attentionCost(device, versions.back(), problem);
    return cost ? cost->seconds : 0;
}

/// Parts that a product's sum is cut into where it has too few tiles to keep the multiprocessors busy.
double splits(int units, const ProductPart& part)
{
    const double tiles = std::ceil(part.shape.m / 128) * std::ceil(part.shape.n / 128) * part.count;
    return std::max(1.0, std::floor(std::min(units / tiles, part.shape.k / leastSplit)));
}

/// s of a product's waves that multiply nothing: while they fill and write, memory holds them.
double fillingSeconds(int units, const OperatorCost& cost)
{
    double seconds = 0;
    for (const ProductPart& part : cost.products)
        if (part.count > 0)
            seconds += tiledSeconds(units, 1, part.shape.m, part.shape.n, 0, part.count * splits(units, part));
    return seconds;
}

} // namespace

double DeviceKernels::productSeconds(const DeviceRates& rates, const OperatorCost& cost) const
{
    const double rate = rates.rate(cost) * m_efficiency;
    double seconds = 0, counted = 0;
    for (const ProductPart& part : cost.products) {
        if (part.count <= 0)
            continue;
        const auto& [m, n, k] = part.shape;
        const double pieces = splits(m_device.units, part);
        seconds += tiledSeconds(m_device.units, rate, m, n, k / pieces, part.count * pieces);
        counted += 2 * m * n * k * part.count;
    }
    return seconds + std::max(0.0, cost.flops - counted) / rate;
}

TimeParts DeviceKernels::parts(const DeviceRates& rates, const OperatorCost& cost) const
{
    const double memory = cost.bytes / rates.bandwidth;
    const double launch = cost.kernels * rates.launch;
    double arithmetic = cost.isProduct ? productSeconds(rates, cost) : cost.flops / rates.rate(cost);
    if (cost.attention)
        if (const double seconds = attentionSeconds(m_device, *cost.attention); seconds > 0)
            arithmetic = seconds / cost.attentionShare;
    TimeParts parts;
    const double longest = std::max(arithmetic, memory);
    const double multiplying = arithmetic - fillingSeconds(m_device.units, cost);
    (launch > longest ? parts.calls : memory > multiplying ? parts.memory : parts.arithmetic) = longest + launch;
    return parts;
}

Dispatch eagerDispatch(UpdateStyle style)
{
    Dispatch dispatch{11.5e-6, 8.5e-6, 0};
    switch (style) {
    case UpdateStyle::Fused: dispatch.update = 3.2e-6; break;
    case UpdateStyle::Foreach: dispatch.update = 16e-6; break;
    default: dispatch.update = 27e-6;
    }
    return dispatch;
}

} // namespace memscape
