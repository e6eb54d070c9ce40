// SPDX-License-Identifier: Apache-2.0
#include "core/trace/request_trace.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include <fmt/format.h>

namespace memscape {

namespace {

tl::unexpected<Error> tooLong(std::size_t found, std::size_t most)
{
    return fail("trace.length", fmt::format("{} requests are too many to play one by one: at most {}", found, most),
                "take fewer steps, a smaller batch or a model with fewer layers");
}

/// What makes two blocks the same for the next step.
using Likeness = std::tuple<std::int64_t, NameId, ModuleId, std::uint16_t, Category>;

Likeness likenessOf(const RequestedBlock& block)
{
    return {block.bytes, block.name, block.module, block.stream, block.category};
}

/// How one step hands over to the next.
struct StepEnds
{
    std::vector<std::pair<BlockId, BlockId>> carried; ///< what it frees of before it, and what it leaves in its place
    /// What it leaves beside that has a name in the loop: the next step's takes the name, and nothing holds this one.
    std::vector<bool> isRebound;
};

/// `own`: the first block that the step makes.
Result<StepEnds> endsOf(const RequestTrace& trace, const std::vector<Request>& step, BlockId own)
{
    std::vector<bool> isFreed(trace.blocks.size());
    for (const Request& request : step)
        if (request.kind == RequestKind::Free)
            isFreed[request.block] = true;
    std::multimap<Likeness, BlockId> left;
    for (BlockId block = own; block < trace.blocks.size(); ++block)
        if (!isFreed[block])
            left.emplace(likenessOf(trace.blocks[block]), block);
    StepEnds ends{{}, std::vector<bool>(trace.blocks.size())};
    for (BlockId block = 1; block < own; ++block) {
        if (!isFreed[block])
            continue;
        const auto found = left.find(likenessOf(trace.blocks[block]));
        if (found == left.end())
            return fail("trace.steps",
                        fmt::format("the step frees {} and leaves nothing in its place", trace.nameOf(block)),
                        "choose steps=1");
        ends.carried.emplace_back(block, found->second);
        left.erase(found);
    }
    for (const auto& [likeness, block] : left)
        ends.isRebound[block] = true;
    return ends;
}

} // namespace

std::string RequestTrace::nameOf(BlockId block) const
{
    const RequestedBlock& one = blocks[block];
    const std::string& name = names[one.name];
    const std::string& module = modules[one.module];
    if (name.empty() && module.empty())
        return fmt::format("block {}", block);
    return module.empty() || name.empty() ? module + name : fmt::format("{} · {}", module, name);
}

std::size_t RequestTrace::count(RequestKind kind) const
{
    return std::size_t(
        std::count_if(requests.begin(), requests.end(), [&](const Request& r) { return r.kind == kind; }));
}

Result<RequestTrace> requestsOf(const Trace& trace, std::size_t most)
{
    assert(trace.repetition().times == 1);
    const std::vector<Event>& events = trace.events();
    if (events.size() > most)
        return tooLong(events.size(), most);
    RequestTrace made;
    made.names = trace.names();
    made.modules = trace.modules();
    made.requests.reserve(events.size());
    made.blocks.resize(trace.blockCount() + 1);
    for (const Event& event : events) {
        made.requests.push_back(
            {event.block, event.isAllocation() ? RequestKind::Allocate : RequestKind::Free, event.phase});
        if (event.isAllocation())
            made.blocks[event.block] = {event.bytes, event.name, event.module, event.stream, event.category};
    }
    return made;
}

Result<RequestTrace> repeated(RequestTrace trace, int times, std::size_t most)
{
    if (times == 1)
        return trace;
    const auto begin = std::find_if(trace.requests.begin(), trace.requests.end(),
                                    [](const Request& r) { return r.phase != Phase::Setup; });
    const std::vector<Request> step(begin, trace.requests.end());
    const std::size_t setup = trace.requests.size() - step.size();
    if (setup + step.size() * std::size_t(times) > most)
        return tooLong(setup + step.size() * std::size_t(times), most);
    const BlockId own = BlockId(1 + std::count_if(trace.requests.begin(), begin, [](const Request& r) {
                                    return r.kind == RequestKind::Allocate;
                                }));
    MEMSCAPE_TRY(ends, endsOf(trace, step, own));
    const std::size_t blocks = trace.blocks.size();
    std::vector<BlockId> standsFor(blocks); // for each block of the first time, that of this time
    std::iota(standsFor.begin(), standsFor.end(), BlockId(0));
    for (int time = 1; time < times; ++time) {
        std::vector<BlockId> now = standsFor;
        for (const auto& [old, successor] : ends.carried)
            now[old] = standsFor[successor];
        for (BlockId block = own; block < blocks; ++block) {
            now[block] = BlockId(trace.blocks.size());
            trace.blocks.push_back(RequestedBlock(trace.blocks[block]));
        }
        const std::vector<BlockId> earlier = std::exchange(standsFor, std::move(now));
        for (const Request& request : step) {
            trace.requests.push_back({standsFor[request.block], request.kind, request.phase});
            if (request.kind == RequestKind::Allocate && ends.isRebound[request.block])
                trace.requests.push_back({earlier[request.block], RequestKind::Free, request.phase});
        }
    }
    return trace;
}

RequestTrace withEmptyCache(RequestTrace trace, std::size_t before)
{
    const std::size_t at = std::min(before, trace.requests.size());
    const Phase phase = at > 0 ? trace.requests[at - 1].phase : Phase::Setup;
    trace.requests.insert(trace.requests.begin() + std::ptrdiff_t(at), {noBlock, RequestKind::EmptyCache, phase});
    return trace;
}

void divideSizes(RequestTrace& trace, std::int64_t divisor)
{
    for (RequestedBlock& block : trace.blocks)
        block.bytes = block.bytes / divisor + (block.bytes % divisor != 0);
}

std::vector<BlockId> completedBy(const Request& call, std::vector<BlockId>& pending)
{
    if (call.block == noBlock)
        return std::exchange(pending, {});
    return std::vector<BlockId>(std::erase(pending, call.block), call.block);
}

std::vector<LifeSpan> lifetimesOf(const RequestTrace& trace)
{
    const auto last = std::uint32_t(trace.requests.size());
    std::vector<LifeSpan> lifetimes(trace.blocks.size(), {last, last});
    std::vector<BlockId> pending;
    std::vector<bool> isRecorded(trace.blocks.size());
    for (std::uint32_t i = 0; i < last; ++i) {
        const Request& request = trace.requests[i];
        if (request.kind == RequestKind::Allocate) {
            lifetimes[request.block].begin = i;
        } else if (request.kind == RequestKind::Record) {
            isRecorded[request.block] = true;
        } else if (request.kind == RequestKind::Free) {
            lifetimes[request.block].end = i;
            if (isRecorded[request.block])
                pending.push_back(request.block);
        } else {
            for (const BlockId block : completedBy(request, pending)) // both wait for the streams
                lifetimes[block].end = i;
        }
    }
    for (const BlockId block : pending)
        lifetimes[block].end = last;
    return lifetimes;
}

std::int64_t peakOfLiveBytes(const RequestTrace& trace)
{
    std::int64_t live = 0, peak = 0;
    for (const Request& request : trace.requests) {
        const std::int64_t bytes = trace.blocks[request.block].bytes;
        live += request.kind == RequestKind::Allocate ? bytes : request.kind == RequestKind::Free ? -bytes : 0;
        peak = std::max(peak, live);
    }
    return peak;
}

} // namespace memscape
