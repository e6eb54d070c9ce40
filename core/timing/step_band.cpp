// SPDX-License-Identifier: Apache-2.0
#include "core/timing/step_band.h"

#include "core/timing/product_rates.h"
#include "core/timing/pytorch_operations.h"

#include <algorithm>

namespace memscape {

namespace {

struct Multiples
{
    double low, high;
    const char* why;
};

/// Of PyTorch on a processor: its operators were timed one by one, each at its best, and a step has them in turn.
constexpr Multiples operatorMultiples{0.9, 1.5, "operators were timed alone, each at its best"};

Multiples productMultiples(const Device& device, const Plan& plan)
{
    if (isPytorchOnHost(device))
        return operatorMultiples;
    const auto rate = productRate(device, productFormat(plan.precision));
    if (!rate)
        return {0.7, 1.6, "no rate of this format is known"};
    if (device.calibration && rate->reached.evidence == Evidence::Measured)
        return {0.97, 1.05, "measured on this machine"};
    switch (rate->reached.evidence) {
    case Evidence::Measured: return {0.93, 1.2, "published for this device: libraries and clocks differ"};
    case Evidence::Derived: return {0.9, 1.3, "published for a like device"};
    default: return {0.85, 1.4, "a share of the dense rate, until calibrated"};
    }
}

Multiples attentionMultiples(const Device& device)
{
    if (device.architecture == "Hopper" || device.architecture == "Blackwell")
        return {0.55, 1.2, "kernels of this architecture's own are up to twice as fast"};
    return {0.9, 1.2, "other kernels than FlashAttention-2's"};
}

Multiples memoryMultiples(const Device& device)
{
    if (isPytorchOnHost(device))
        return operatorMultiples;
    if (device.calibration)
        return {0.97, 1.05, "measured on this machine"};
    return {0.9, 1.15, "what a copy reaches, and how much L2 keeps between operators"};
}

} // namespace

StepBand stepBand(const StepTime& time, const Device& device, const Plan& plan)
{
    StepBand band;
    const auto add = [&](const char* what, double expected, const Multiples& multiples) {
        if (!(expected > 0))
            return;
        band.parts.push_back({what, multiples.low * expected, expected, multiples.high * expected, multiples.why});
    };
    // Attention is held by arithmetic; its part is told apart.
    const double attention = std::min(time.attention, time.arithmeticBound);
    add("matrix products", time.arithmeticBound - attention, productMultiples(device, plan));
    add("attention", attention, attentionMultiples(device));
    add("passes over memory", time.memoryBound - time.turned, memoryMultiples(device));
    add("pictures turned for tensor cores", time.turned, {0, 1.2, "some kernels of cuDNN read NCHW"});
    add("launches", time.launchBound, {0.7, 1.4, "driver and launch method"});
    add("optimizer", time.optimizer, memoryMultiples(device));
    add("waiting for the host", time.dispatch, {0.5, 2.5, "the host's processor and hooks of the training program"});
    add("pages touched first", time.pageFaults,
        {0.7, 1.4, "which holes malloc takes, and what the system does meanwhile"});
    if (time.communication > 0)
        band.parts.push_back({"communication", 0.7 * time.exposed, time.exposed + time.slowed,
                              1.3 * time.exposed + 0.3 * (time.communication - time.exposed),
                              "collectives take bandwidth and multiprocessors from what they hide behind"});
    double booked = 0;
    for (const BandPart& part : band.parts) {
        booked += part.expected;
        band.low += part.low;
        band.high += part.high;
    }
    const double rest = std::max(0.0, time.total - booked); // additions of gradients, a step's start
    band.low = std::min(time.total, band.low + rest);
    band.high = std::max(time.total, band.high + rest);
    std::stable_sort(band.parts.begin(), band.parts.end(),
                     [](const BandPart& a, const BandPart& b) { return a.high - a.low > b.high - b.low; });
    return band;
}

} // namespace memscape
