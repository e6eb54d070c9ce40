// SPDX-License-Identifier: Apache-2.0
#include "core/experiments/training-memory/fresh_pages.h"

#include "core/trace/request_trace.h"
#include "core/trace/touched_pages.h"

#include <algorithm>

namespace memscape {

namespace {

constexpr std::size_t mostPlayed = 400000; ///< requests of three steps

Result<std::int64_t> faultsOf(const RequestTrace& step, const PolicySetting& heap, int steps)
{
    MEMSCAPE_TRY(all, repeated(step, steps, mostPlayed));
    MEMSCAPE_TRY(pages, pagesOf(all, heap, FirstTouch::Lazy));
    return pages.faults;
}

} // namespace

Result<std::optional<double>> freshPagesOfStep(const Trace& trace)
{
    if (trace.repetition().times != 1)
        return std::nullopt;
    PolicySetting heap;
    heap.kind = PolicyKind::Malloc;
    const auto counted = [&]() -> Result<double> {
        MEMSCAPE_TRY(step, requestsOf(trace, mostPlayed));
        MEMSCAPE_TRY(two, faultsOf(step, heap, 2));
        MEMSCAPE_TRY(three, faultsOf(step, heap, 3));
        return double(std::max<std::int64_t>(0, three - two));
    }();
    if (!counted && counted.error().code == "predict.cancelled")
        return fail(counted.error());
    return counted ? std::optional(*counted) : std::nullopt;
}

} // namespace memscape
