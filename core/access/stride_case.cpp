// SPDX-License-Identifier: Apache-2.0
#include "core/access/stride_case.h"

#include <algorithm>

namespace memscape {

namespace {

constexpr std::uint64_t randomBytesPerAccess = 64;

} // namespace

double StrideCase::usefulBytes() const
{
    return double(accesses) * double(elementBytes) * arrays();
}

double StrideCase::memoryBytes() const
{
    return double(arrayBytes) * arrays();
}

int StrideCase::threadsOn(const Device& device) const
{
    const int all = std::max(1, device.threads);
    return threads == 0 ? all : std::min(threads, all);
}

Result<StrideCase> completed(StrideCase walk)
{
    if (walk.offsetBytes + walk.elementBytes > walk.arrayBytes) {
        return fail("access.bytes", "no element fits behind the offset", "make bytes larger or offset smaller",
                    "offset");
    }
    const std::uint64_t room = walk.arrayBytes - walk.offsetBytes;
    const std::uint64_t elements = room / walk.elementBytes;
    switch (walk.pattern) {
    case Pattern::Contiguous:
    case Pattern::Misaligned:
        walk.pitchBytes = walk.elementBytes;
        walk.accesses = elements;
        break;
    case Pattern::Strided:
    case Pattern::Aos:
        walk.pitchBytes = walk.stride * walk.elementBytes;
        walk.accesses = walk.stride == 0 ? elements : (elements - 1) / walk.stride + 1;
        break;
    case Pattern::Soa:
        walk.pitchBytes = walk.elementBytes;
        walk.accesses = walk.stride == 0 ? elements : (elements - 1) / walk.stride + 1;
        break;
    case Pattern::Random: walk.accesses = std::max<std::uint64_t>(1, room / randomBytesPerAccess); break;
    }
    return walk;
}

Result<WarpAccess> firstRequest(const StrideCase& walk, const GranuleSizes& sizes)
{
    const std::uint64_t elements = (walk.arrayBytes - walk.offsetBytes) / walk.elementBytes;
    const auto request = walk.pattern == Pattern::Random
        ? randomRequest(walk.offsetBytes, 1, elements, walk.elementBytes)
        : stridedRequest(walk.offsetBytes, walk.pitchBytes / walk.elementBytes, walk.elementBytes);
    if (!request)
        return fail(request.error());
    return resolveRequest(*request, sizes);
}

Result<WarpCounts> requestCounts(const StrideCase& walk, const GranuleSizes& sizes)
{
    if (walk.pattern == Pattern::Random) {
        return expectedRandomCounts(walk.offsetBytes, (walk.arrayBytes - walk.offsetBytes) / walk.elementBytes,
                                    walk.elementBytes, warpLanes, sizes);
    }
    return stridedCounts(walk.offsetBytes, walk.pitchBytes / walk.elementBytes, walk.elementBytes, warpLanes, sizes);
}

Result<HostFootprint> hostFootprint(const StrideCase& walk, const HostSizes& sizes)
{
    if (walk.pattern == Pattern::Random)
        return randomFootprint(walk.arrayBytes - walk.offsetBytes, walk.elementBytes, walk.accesses, sizes);
    // A field of a structure of arrays is one short contiguous array.
    const std::uint64_t bytes =
        walk.pattern == Pattern::Soa ? walk.offsetBytes + walk.accesses * walk.elementBytes : walk.arrayBytes;
    return stridedFootprint({bytes, walk.elementBytes, walk.pitchBytes, walk.offsetBytes}, sizes);
}

} // namespace memscape
