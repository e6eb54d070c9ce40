// SPDX-License-Identifier: Apache-2.0
#include "core/experiments/training-memory/fresh_pages.h"

#include "core/trace/touched_pages.h"

#include <algorithm>
#include <utility>

namespace memscape {

namespace {

constexpr std::size_t mostPlayed = 400000; ///< requests of all steps
/// Steps. From one to the next malloc takes other holes: the mean of the last four counts.
constexpr int settled = 2, played = 6;

Result<std::int64_t> faultsOf(const Trace& trace, int steps)
{
    PolicySetting heap;
    heap.kind = PolicyKind::Malloc;
    MEMSCAPE_TRY(all, stepsFromTheFirst(trace, steps));
    MEMSCAPE_TRY(pages, pagesOf(all, heap, FirstTouch::Lazy));
    return pages.faults;
}

} // namespace

Result<RequestTrace> stepsFromTheFirst(const Trace& trace, int steps)
{
    MEMSCAPE_TRY(step, requestsOf(trace, mostPlayed));
    MEMSCAPE_TRY(all, repeated(std::move(step), steps, mostPlayed));
    const auto update = std::find_if(all.requests.begin(), all.requests.end(),
                                     [](const Request& request) { return request.phase == Phase::Optimizer; });
    std::stable_partition(all.requests.begin(), update, [&](const Request& request) {
        return request.phase != Phase::Setup || all.blocks[request.block].category != Category::OptimizerState;
    });
    return all;
}

Result<std::optional<double>> freshPagesOfStep(const Trace& trace)
{
    if (trace.repetition().times != 1)
        return std::nullopt;
    const auto counted = [&]() -> Result<double> {
        MEMSCAPE_TRY(before, faultsOf(trace, settled));
        MEMSCAPE_TRY(all, faultsOf(trace, played));
        return double(std::max<std::int64_t>(0, all - before)) / (played - settled);
    }();
    if (!counted && counted.error().code == "predict.cancelled")
        return fail(counted.error());
    return counted ? std::optional(*counted) : std::nullopt;
}

} // namespace memscape
