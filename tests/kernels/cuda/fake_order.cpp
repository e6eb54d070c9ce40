// SPDX-License-Identifier: Apache-2.0
// The fake GPU's order: streams do what they are given at once, one after the other; what a real GPU may do in another
// order is found here.
#include "tests/kernels/cuda/fake_parts.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <utility>

namespace fake {

namespace {

/// How far each stream is known to have come, by stream.
using Seen = std::map<cudaStream_t, std::uint64_t>;
void join(Seen& to, const Seen& from)
{
    for (const auto& [stream, count] : from)
        to[stream] = std::max(to[stream], count);
}

std::set<cudaStream_t> streams;
std::map<cudaStream_t, Seen> seenBy;
std::map<std::uintptr_t, Seen> seenAtEvent;
Seen seenByHost, issued;

struct Access
{
    const char *begin, *end;
    cudaStream_t stream;
    std::uint64_t at;
    bool isWrite;
};
std::vector<Access> accesses;

/// A copy to pinned memory that the host has not waited for.
struct Arrival
{
    cudaStream_t stream;
    std::uint64_t at;
    char* to;
    std::vector<char> bytes;
};
std::vector<Arrival> arrivals;

void arrive(const Arrival& one)
{
    std::memcpy(one.to, one.bytes.data(), one.bytes.size());
}

void hostHasSeen(const Seen& seen)
{
    join(seenByHost, seen);
    std::erase_if(arrivals, [](const Arrival& one) {
        const bool hasArrived = seenByHost[one.stream] >= one.at;
        if (hasArrived)
            arrive(one);
        return hasArrived;
    });
    std::erase_if(accesses, [](const Access& one) { return seenByHost[one.stream] >= one.at; });
}

Seen& seenAt(cudaEvent_t event)
{
    return seenAtEvent[reinterpret_cast<std::uintptr_t>(event)];
}

} // namespace

void streamBegins(cudaStream_t stream)
{
    streams.insert(stream);
}

void streamEnds(cudaStream_t stream)
{
    streams.erase(stream);
}

bool isParallel()
{
    return streams.size() > 1;
}

void touch(cudaStream_t stream, const void* at, std::uint64_t bytes, bool isWrite)
{
    if (!isParallel() || bytes == 0)
        return;
    const auto* const begin = static_cast<const char*>(at);
    const char* const end = begin + bytes;
    Seen& seen = seenBy[stream];
    join(seen, seenByHost);
    for (const Access& one : accesses) {
        if ((isWrite || one.isWrite) && one.begin < end && begin < one.end && seen[one.stream] < one.at)
            fakeGpu().race = std::string(isWrite ? "written" : "read") + " while another stream "
                + (one.isWrite ? "writes it" : "reads it");
    }
    seen[stream] = ++issued[stream];
    accesses.push_back({begin, end, stream, issued[stream], isWrite});
}

void streamWaits(cudaStream_t stream, cudaEvent_t event)
{
    join(seenBy[stream], seenAt(event));
}

void eventIsRecorded(cudaEvent_t event, cudaStream_t stream)
{
    seenAt(event) = seenBy[stream];
}

void hostWaits(cudaEvent_t event)
{
    hostHasSeen(seenAt(event));
}

void hostWaits(cudaStream_t stream)
{
    hostHasSeen(seenBy[stream]);
}

void arrivesLater(cudaStream_t stream, void* to, std::vector<char> bytes)
{
    arrivals.push_back({stream, issued[stream], static_cast<char*>(to), std::move(bytes)});
}

void arriveFor(const void* from, std::uint64_t bytes)
{
    const auto* const begin = static_cast<const char*>(from);
    for (const Arrival& one : arrivals) {
        if (one.to < begin + bytes && begin < one.to + one.bytes.size())
            arrive(one);
    }
}

void forgetAccesses(const void* at, std::uint64_t bytes)
{
    const auto* const begin = static_cast<const char*>(at);
    std::erase_if(accesses, [&](const Access& one) { return one.begin < begin + bytes && begin < one.end; });
    std::erase_if(arrivals, [&](const Arrival& one) { return one.to >= begin && one.to < begin + bytes; });
}

void forgetOrder()
{
    seenBy.clear();
    seenAtEvent.clear();
    seenByHost.clear();
    issued.clear();
    accesses.clear();
    arrivals.clear();
    streams.clear();
}

} // namespace fake

void fakeReads(cudaStream_t stream, const void* at, std::uint64_t bytes)
{
    fake::touch(stream, at, bytes, false);
}

void fakeWrites(cudaStream_t stream, const void* at, std::uint64_t bytes)
{
    fake::touch(stream, at, bytes, true);
}
