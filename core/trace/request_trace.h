// SPDX-License-Identifier: Apache-2.0
// What a program asks of an allocator, in order: blocks made and given up, blocks that another stream uses, and the
// calls that ask for nothing (empty_cache, synchronize). It is a Trace (trace.h) in the form in which any allocator can
// play it, or a script of lines (trace_script.h).
//
// Not modelled: the time between two requests, and which thread asks.
#pragma once

#include "core/trace/allocator.h"
#include "core/trace/trace.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace memscape {

enum class RequestKind : std::uint8_t {
    Allocate,
    Free,
    Record,      ///< tensor.record_stream(): a free becomes complete when the streams are synchronized
    Synchronize, ///< torch.cuda.synchronize(); of one block: its other streams have come past its free
    EmptyCache,  ///< torch.cuda.empty_cache()
};
constexpr std::size_t requestKindCount = std::size_t(RequestKind::EmptyCache) + 1;

struct Request
{
    BlockId block = noBlock; ///< of the first three kinds, and of Synchronize where it is about one block
    RequestKind kind = RequestKind::Allocate;
    Phase phase = Phase::Setup;
};

/// Of the whole life of a block.
struct RequestedBlock
{
    std::int64_t bytes = 0; ///< as asked for
    NameId name = 0;
    ModuleId module = 0;
    std::uint16_t stream = 0;
    Category category = Category::Unknown;
};

/// What a recording adds to its requests: with it PyTorch's allocator goes on from where the recording begins, and does
/// what it did then (core/snapshot/snapshot_requests.h).
struct Recording
{
    AllocatorOptions options;               ///< of that run; deviceLimit where the driver refused something
    std::vector<AllocatorSegment> segments; ///< before the first event
    std::vector<BlockId> owners;            ///< of their blocks, one after the other; noBlock: free
    /// Where the driver put the segment that it gave for a block; by block.
    std::vector<std::pair<BlockId, std::uint64_t>> places;
    std::int64_t peakReserved = 0, endReserved = 0; ///< B, as recorded
    std::int64_t segmentsAtTheEnd = 0;
};

struct RequestTrace
{
    std::vector<Request> requests;
    std::vector<RequestedBlock> blocks{1}; ///< by BlockId; [0] is none
    std::vector<std::string> names, modules;
    std::shared_ptr<const Recording> recording; ///< of a snapshot alone

    /// "transformer.h.3.mlp · softmax", "weight", or "block 7" where it has no name.
    std::string nameOf(BlockId block) const;
    std::size_t count(RequestKind kind) const;
};

/// A simulated step without a repetition (StepSettings::repeatsMicroBatches), of at most `most` events.
/// Errors: trace.length.
Result<RequestTrace> requestsOf(const Trace& trace, std::size_t most);

/// The requests after the setup happen `times` times in a row. A block that one time leaves behind is the one that the
/// next time frees in place of what was there before (a batch that is replaced, gradients that are kept); where nothing
/// was there, a variable of the loop holds it (the loss), and it is freed when the next time makes its own.
/// Errors: trace.steps when a step frees what was there before it and leaves nothing in its place, trace.length.
Result<RequestTrace> repeated(RequestTrace trace, int times, std::size_t most);

/// empty_cache() before request `before` (0 is the first; behind the last one: at the end).
RequestTrace withEmptyCache(RequestTrace trace, std::size_t before);

/// Sizes divided by `divisor`, rounded up, at least one byte.
void divideSizes(RequestTrace& trace, std::int64_t divisor);

/// Takes out of the blocks whose free waits those that a Synchronize or EmptyCache completes: its one, or all.
std::vector<BlockId> completedBy(const Request& call, std::vector<BlockId>& pending);

/// First and last request of each block's life; a block that is never freed ends behind the last request.
struct LifeSpan
{
    std::uint32_t begin = 0, end = 0;
};
std::vector<LifeSpan> lifetimesOf(const RequestTrace& trace);

/// The most bytes that are alive at once, as they were asked for: no allocator can do with less.
std::int64_t peakOfLiveBytes(const RequestTrace& trace);

} // namespace memscape
