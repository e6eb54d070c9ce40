// SPDX-License-Identifier: Apache-2.0
#include "core/timing/calibration_check.h"

#include "core/base/quantity.h"
#include "core/timing/working_set.h"

#include <algorithm>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr double orderMargin = 1.05;     ///< of latencies: two levels may be as near as noise
constexpr double bandwidthMargin = 1.10; ///< of streams
constexpr double pageMargin = 1.15;      ///< of latencies over two sizes of pages

bool isMeasured(const Sourced& value)
{
    return value.known() && value.evidence == Evidence::Measured;
}

tl::unexpected<Error> impossible(std::string what)
{
    return fail("run.impossible", "the fitted rates are impossible: " + std::move(what),
                "something else used the machine: calibrate again when it is quieter");
}

Result<void> checkLatencies(const std::vector<const MemoryLevel*>& path)
{
    const MemoryLevel* nearer = nullptr;
    for (const MemoryLevel* level : path) {
        if (!isMeasured(level->latency))
            continue;
        if (nearer && level->latency.value * orderMargin < nearer->latency.value)
            return impossible(fmt::format("the latency of {} is {}, that of {} before it {}", level->id,
                                          quantityText(level->latency.value, Unit::Second), nearer->id,
                                          quantityText(nearer->latency.value, Unit::Second)));
        nearer = level;
    }
    return {};
}

Result<void> checkBandwidths(const std::vector<const MemoryLevel*>& path)
{
    const MemoryLevel* nearest = nullptr;
    for (const MemoryLevel* level : path) {
        if (!isMeasured(level->bandwidth))
            continue;
        if (nearest && level->bandwidth.value > nearest->bandwidth.value * bandwidthMargin)
            return impossible(fmt::format("the bandwidth of {} is {}, that of {} before it only {}", level->id,
                                          quantityText(level->bandwidth.value, Unit::BytePerSecond), nearest->id,
                                          quantityText(nearest->bandwidth.value, Unit::BytePerSecond)));
        if (!nearest)
            nearest = level;
    }
    return {};
}

Result<void> checkPages(const Device& device)
{
    const auto measured = [&](double pageBytes) {
        return std::any_of(device.tlbs.begin(), device.tlbs.end(), [&](const TlbLevel& tlb) {
            return tlb.pageBytes == pageBytes && isMeasured(tlb.missPenalty);
        });
    };
    const MemoryLevel* last = device.lastCache();
    if (!measured(0x1p21) || !last || !last->capacity.known())
        return {};
    for (double size = 4096; size <= 8 * last->capacity.value; size *= 2) {
        const double huge = latencyOf(device, size, Pages::Huge).seconds;
        const double small = latencyOf(device, size, Pages::Small).seconds;
        if (huge > small * pageMargin)
            return impossible(fmt::format("{} answer in {} in huge pages and in {} in pages of 4 KiB",
                                          quantityText(size, Unit::Byte), quantityText(huge, Unit::Second),
                                          quantityText(small, Unit::Second)));
    }
    return {};
}

} // namespace

Result<void> checkPossible(const Device& calibrated)
{
    std::vector<const MemoryLevel*> path;
    for (const MemoryLevel& level : calibrated.levels) {
        if (level.kind == LevelKind::Cache || level.kind == LevelKind::Dram)
            path.push_back(&level);
    }
    MEMSCAPE_CHECK(checkLatencies(path));
    MEMSCAPE_CHECK(checkBandwidths(path));
    return checkPages(calibrated);
}

} // namespace memscape
