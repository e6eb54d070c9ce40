// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/common/numa_memory.h"

#include "core/base/rounding.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <system_error>

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace memscape::host {

namespace {

constexpr int mostNumaNodes = 1024;
constexpr std::size_t numaPage = 4096;
constexpr std::size_t askedAtOnce = 4096; ///< pages
constexpr unsigned long bindPolicy = 2;   ///< MPOL_BIND
constexpr std::size_t wordBits = 8 * sizeof(unsigned long);

} // namespace

Result<int> farNodeOf(const std::vector<NumaNode>& nodes, int processor)
{
    const NumaNode* const home = nodeOfProcessor(nodes, processor);
    const NumaNode* const far = home ? farthestNode(nodes, *home) : nullptr;
    if (!far)
        return fail("run.skipped", "this machine has one node of memory: there is no other to copy from",
                    "choose another kind, or a machine with several sockets", "kind");
    return far->id;
}

Result<void> bindToNode(const Buffer& buffer, int node)
{
    std::array<unsigned long, mostNumaNodes / wordBits> mask{};
    if (node < 0 || node >= mostNumaNodes)
        return fail("run.skipped", fmt::format("there is no node {}", node), "choose another kind", "kind");
    mask[std::size_t(node) / wordBits] |= 1UL << (std::size_t(node) % wordBits);
    // The kernel counts one bit less than it is told.
    if (::syscall(SYS_mbind, buffer.data(), buffer.bytes(), bindPolicy, mask.data(), mostNumaNodes + 1, 0) != 0)
        return fail(
            "run.skipped",
            fmt::format("memory of node {} cannot be asked for: {}", node, std::generic_category().message(errno)),
            "allow mbind() (a container may forbid it), or choose another kind", "kind");
    return {};
}

double shareOnNode(const Buffer& buffer, int node)
{
    const std::size_t pages = quotientUp(buffer.bytes(), numaPage);
    std::vector<void*> places;
    std::vector<int> found;
    std::size_t there = 0;
    for (std::size_t first = 0; first < pages; first += askedAtOnce) {
        places.clear();
        for (std::size_t page = first; page < std::min(pages, first + askedAtOnce); ++page)
            places.push_back(buffer.data() + page * numaPage);
        found.assign(places.size(), -1);
        if (::syscall(SYS_move_pages, 0, places.size(), places.data(), nullptr, found.data(), 0) != 0)
            return std::numeric_limits<double>::quiet_NaN();
        there += std::size_t(std::ranges::count(found, node));
    }
    return pages == 0 ? std::numeric_limits<double>::quiet_NaN() : double(there) / double(pages);
}

} // namespace memscape::host
