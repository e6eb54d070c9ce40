// SPDX-License-Identifier: Apache-2.0
// The pages that PyTorch touches for the first time in each step on a processor. Its allocator there is the C library's
// malloc, which maps blocks beyond 32 MiB on their own and gives the free end of its arena back; what comes again is
// cleared page by page. Six steps are played through that malloc (core/trace/heap_policy.cpp), the first of them with
// the state that its update makes; the mean of the last four is any later step's.
//
// Left out: blocks that Python, OpenMP and oneDNN allocate in between, huge pages.
#pragma once

#include "core/trace/request_trace.h"

#include <optional>

namespace memscape {

/// So many steps in a row. The first update makes the optimizer's state when it runs, above the first gradients: what a
/// step gives back then lies below it, and malloc keeps the pages. Errors: those of requestsOf() and repeated().
Result<RequestTrace> stepsFromTheFirst(const Trace& trace, int steps);

/// Nothing of a trace that repeats its micro-batches, or that is longer than a heap is played for a time.
/// Errors: predict.cancelled.
Result<std::optional<double>> freshPagesOfStep(const Trace& trace);

} // namespace memscape
