// SPDX-License-Identifier: Apache-2.0
#include "core/checkpoint/persistent_table.h"

#include <algorithm>

#include <fmt/format.h>

namespace memscape::persistent {

namespace {

constexpr double never = std::numeric_limits<double>::infinity();

template <typename Cost> double costAt(const CostTable<Cost>& table, std::size_t segment, std::int64_t m)
{
    const Cost extra = table.cells[table.starts[segment] + std::size_t(m)];
    return extra < infeasible<Cost> ? double(extra) : never;
}

} // namespace

double Table::extra(int s, int t, std::int64_t m) const
{
    const std::size_t segment = Segments(chain.end)(s, t);
    if (const auto* exact = std::get_if<ExactTable>(&costs))
        return exact->extra(segment, m);
    const Window window = windows[segment];
    if (m >= window.last)
        return window.last < top ? 0 : never;
    if (m < window.first)
        return never;
    const auto* whole = std::get_if<CostTable<std::int32_t>>(&costs);
    return whole ? costAt(*whole, segment, m) : costAt(std::get<CostTable<double>>(costs), segment, m);
}

std::int64_t Table::firstFeasible() const
{
    const std::size_t all = Segments(chain.end)(0, chain.end);
    if (const auto* exact = std::get_if<ExactTable>(&costs))
        return exact->steps(all).empty() ? top : exact->steps(all).front().memory;
    std::int64_t m = windows[all].first;
    while (m < top && extra(0, chain.end, m) == never)
        ++m;
    return m;
}

Result<std::int64_t> Table::slotsOf(std::int64_t budget) const
{
    const std::int64_t m = std::min(budget / chain.slot - chain.values[0], top - 1);
    if (budget > 0 && m >= first)
        return m;
    const std::int64_t minimum = std::min((first + chain.values[0]) * chain.slot, withoutRecomputation);
    return fail(
        "checkpoint.budget",
        fmt::format("no persistent schedule fits in {}: the least is {}{}", budget, minimum, isBytes ? " B" : ""),
        chain.slot > 1 ? fmt::format("sizes are rounded up to slots of {} B; more slots need a little less", chain.slot)
                       : "",
        "budget");
}

} // namespace memscape::persistent
