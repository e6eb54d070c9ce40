// SPDX-License-Identifier: Apache-2.0
// The pages that PyTorch touches for the first time in each step on a processor. Its allocator there is the C library's
// malloc, which maps blocks beyond 32 MiB on their own and gives the free end of its arena back; what comes again is
// cleared page by page. Two and three steps are played through that malloc (core/trace/heap_policy.cpp); the third
// one's pages are those of any later step.
//
// Left out: blocks that Python, OpenMP and oneDNN allocate in between, huge pages.
#pragma once

#include "core/trace/trace.h"

#include <optional>

namespace memscape {

/// Nothing of a trace that repeats its micro-batches, or that is longer than a heap is played for a time.
/// Errors: predict.cancelled.
Result<std::optional<double>> freshPagesOfStep(const Trace& trace);

} // namespace memscape
