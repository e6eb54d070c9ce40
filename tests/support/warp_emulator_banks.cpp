// SPDX-License-Identifier: Apache-2.0
// How many turns the banks of shared memory take for what a warp asks of them.
#include "tests/support/warp_emulator_block.h"

#include <algorithm>
#include <map>
#include <span>

namespace memscape::emulated {

namespace {

/// Turns that the banks take for addresses that move together: the most different 4-byte words that
/// fall into one bank. At most 32 addresses, each of fewer words than there are banks.
int turnsOf(std::span<const std::uint32_t> at, std::uint32_t bytes)
{
    std::uint32_t words[32][32]; // of a bank, the first counts[bank]
    std::array<int, 32> counts{};
    for (const std::uint32_t address : at) {
        for (std::uint32_t word = address / 4; word <= (address + bytes - 1) / 4; ++word) {
            std::uint32_t* const known = words[word % 32];
            int& count = counts[word % 32];
            if (std::find(known, known + count, word) == known + count)
                known[count++] = word;
        }
    }
    return *std::ranges::max_element(counts);
}

} // namespace

void addTurns(BankCount& count, const std::vector<std::uint32_t>& at, std::uint32_t bytes)
{
    const std::size_t together = bytes == 16 ? 8 : bytes == 8 ? 16 : 32;
    for (std::size_t first = 0; first < at.size(); first += together) {
        count.turns +=
            std::uint64_t(turnsOf(std::span(at).subspan(first, std::min(together, at.size() - first)), bytes));
        ++count.fewest;
    }
}

/// The lanes' n-th accesses since they last met are one instruction, if they are of one kind.
void Block::countAccesses(int warp)
{
    std::size_t most = 0;
    for (int lane = 0; lane < lanes; ++lane)
        most = std::max(most, m_threads[std::size_t(warp * lanes + lane)].accesses.size());
    for (std::size_t n = 0; n < most; ++n) {
        std::map<std::pair<int, std::uint32_t>, std::vector<std::uint32_t>> together;
        for (int lane = 0; lane < lanes; ++lane) {
            const auto& accesses = m_threads[std::size_t(warp * lanes + lane)].accesses;
            if (n < accesses.size())
                together[{accesses[n].kind, accesses[n].bytes}].push_back(accesses[n].at);
        }
        for (const auto& [kind, at] : together) {
            BankCount& count = kind.first == Access::Load ? m_count.loads
                : kind.first == Access::Store             ? m_count.stores
                                                          : m_count.copies;
            addTurns(count, at, kind.second);
        }
    }
    for (int lane = 0; lane < lanes; ++lane)
        m_threads[std::size_t(warp * lanes + lane)].accesses.clear();
}

} // namespace memscape::emulated
