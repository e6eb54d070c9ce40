// SPDX-License-Identifier: Apache-2.0
#include "core/timing/reached_step.h"

#include "core/timing/token_kernels.h"
#include "core/timing/working_set.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace memscape {

namespace {

constexpr double besideCollectives = 0.5; ///< twice the time

constexpr double speedDeviation = 0.08 / 5.4; ///< of GPUs of a kind

/// Mean of the largest of n numbers that are normally distributed, in deviations.
double largestOf(double n)
{
    if (n <= 1)
        return 0;
    constexpr double step = 0.01, most = 8;
    double sum = 0;
    for (double x = step / 2; x < most; x += step) {
        const double above = 0.5 * std::erfc(x / std::numbers::sqrt2);
        sum += (1 - std::pow(1 - above, n) - std::pow(above, n)) * step;
    }
    return sum;
}

double ranksOf(const Plan& plan)
{
    return double(plan.copies()) * plan.tensorParallel * plan.pipelineParallel;
}

/// Multiprocessors that a collective among GPUs of a machine keeps.
double blocksOfCollectives(const Device& device, const NcclLink& link)
{
    const Link* const peer = device.link("peer");
    const double total = peer ? link.share * peer->bandwidth.value : 0;
    return total > 0 ? ncclBlocks(ncclChannels(total, link.generation, true)) : 0;
}

} // namespace

ReachedTiming::ReachedTiming(const Device& device, const Plan& plan, double held,
                             std::span<const RecomputedRange> recomputed)
{
    m_options.efficiency = sustainedShare(device, productFormat(plan.precision));
    const double slowest = device.isGpu() ? 1 + speedDeviation * largestOf(ranksOf(plan)) : 1;
    m_options.efficiency /= slowest;
    m_options.recomputed = recomputed;
    m_dispatch = eagerDispatch(plan.update);
    m_options.dispatch = &m_dispatch;
    m_options.machines = {plan.machineRanks, plan.network};
    if (device.isGpu()) {
        m_dispatch = dispatchOfGpu(device, plan);
        m_kernels.emplace(device, m_options.efficiency, slowest);
        m_options.kernels = &*m_kernels;
        m_nccl = ncclLink(device);
        m_options.nccl = &m_nccl;
        m_options.ownReduce = plan.served.reducesItself ? ownReduceStart(device) : 0;
        const double blocks = blocksOfCollectives(device, m_nccl);
        m_options.collectiveUnits = blocks / std::max(2 * blocks, double(device.units));
        m_options.productsBeside = device.architecture == "Hopper" ? besideCollectives : m_options.collectiveUnits;
        return;
    }
    m_host = hostOperations(device);
    m_options.host = &m_host;
    m_options.held = held;
    if (isPytorchOnHost(device)) {
        m_pytorch = pytorchOperations(device);
        m_options.pytorch = &*m_pytorch;
        m_host = m_pytorch->products;
        m_dispatch = {m_pytorch->forwardCall, m_pytorch->backwardCall}; // updateSeconds() has its own
    }
    m_options.bandwidth = bandwidthOf(device, held, Operation::Copy, device.units).bytesPerSecond;
}

Result<StepTime> reachedStepTime(const Graph& graph, const std::vector<ParameterTensor>& parameters, const Plan& plan,
                                 const Device& device, double held, std::span<const RecomputedRange> recomputed)
{
    return stepTime(graph, parameters, plan, device, ReachedTiming(device, plan, held, recomputed).options());
}

} // namespace memscape
