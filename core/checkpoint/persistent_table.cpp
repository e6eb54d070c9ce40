// SPDX-License-Identifier: Apache-2.0
#include "core/checkpoint/persistent_table.h"

#include <algorithm>

#include <fmt/format.h>

namespace memscape::persistent {

double Table::extra(int s, int t, std::int64_t m) const
{
    const std::size_t segment = Segments(chain.end)(s, t);
    const Window window = windows[segment];
    if (m >= window.last)
        return window.last < top ? 0 : std::numeric_limits<double>::infinity();
    if (m < window.first)
        return std::numeric_limits<double>::infinity();
    return std::visit(
        [&]<typename Cost>(const CostTable<Cost>& table) {
            const Cost extra = table.cells[table.starts[segment] + std::size_t(m)];
            return extra < infeasible<Cost> ? double(extra)
                                            : std::numeric_limits<double>::infinity();
        },
        costs);
}

std::int64_t Table::firstFeasible() const
{
    const Window window = windows[Segments(chain.end)(0, chain.end)];
    std::int64_t m = window.first;
    while (m < top && extra(0, chain.end, m) == std::numeric_limits<double>::infinity())
        ++m;
    return m;
}

Result<std::int64_t> Table::slotsOf(std::int64_t budget) const
{
    const std::int64_t m = std::min(budget / chain.slot - chain.values[0], top - 1);
    if (budget > 0 && m >= first)
        return m;
    const std::int64_t minimum =
        std::min((first + chain.values[0]) * chain.slot, withoutRecomputation);
    return fail(
        "checkpoint.budget",
        fmt::format("no persistent schedule fits in {}: the least is {}{}", budget, minimum,
                    isBytes ? " B" : ""),
        chain.slot > 1 ? fmt::format(
            "sizes are rounded up to slots of {} B; more slots need a little less", chain.slot)
                       : "",
        "budget");
}

} // namespace memscape::persistent
