// SPDX-License-Identifier: Apache-2.0
#include "core/snapshot/snapshot_device.h"

#include "core/base/text.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace memscape {

namespace {

/// "1200", "25%", "0.25": an event of `events`, or `fallback` of an empty text.
Result<std::size_t> boundary(std::string_view text, std::size_t events, std::size_t fallback)
{
    text = trimmed(text);
    if (text.empty())
        return fallback;
    const bool isPercent = text.ends_with('%');
    if (isPercent)
        text.remove_suffix(1);
    const bool isShare = isPercent || text.find('.') != text.npos;
    const auto number = parseNumber(text);
    const double value = number ? (isPercent ? *number / 100 : *number) : -1;
    if (value < 0 || (isShare && value > 1) || (!isShare && value != std::floor(value)))
        return fail("snapshot.range",
                    fmt::format("\"{}\" is no event and no share of the trace", quotedForMessage(text)),
                    "a range is FIRST:LAST, in events (1200:2400) or in shares (25%:75%)");
    if (isShare)
        return std::size_t(std::llround(value * double(events)));
    if (value > double(events))
        return fail("snapshot.range", fmt::format("event {:.0f}: the trace has {}", value, events),
                    "a range is FIRST:LAST, in events (1200:2400) or in shares (25%:75%)");
    return std::size_t(value);
}

} // namespace

std::uint32_t busiestDevice(const Snapshot& snapshot)
{
    const std::vector<std::uint32_t> devices = snapshot.devices();
    const auto eventsOf = [&](std::uint32_t device) {
        return device < snapshot.traces.size() ? snapshot.traces[device].size() : 0;
    };
    const auto most = std::ranges::max_element(devices, {}, eventsOf);
    return most == devices.end() ? 0 : *most;
}

Result<std::shared_ptr<const SnapshotDevice>> SnapshotDevice::analyse(std::shared_ptr<const Snapshot> snapshot,
                                                                      std::uint32_t device, Pace::Tell progress)
{
    const auto devices = snapshot->devices();
    if (std::ranges::find(devices, device) == devices.end() && !(devices.empty() && device == 0))
        return fail("snapshot.device", fmt::format("the snapshot has nothing of device {}", device),
                    devices.empty() ? "" : fmt::format("it has device {}", fmt::join(devices, ", ")));
    auto made = std::make_shared<SnapshotDevice>();
    made->m_snapshot = std::move(snapshot);
    made->m_device = device;
    Pace pace(std::move(progress));
    MEMSCAPE_TRY(lifetimes, Lifetimes::rebuild(*made->m_snapshot, device, pace));
    made->m_lifetimes = std::make_unique<Lifetimes>(std::move(lifetimes));
    pace.begin(0.7);
    auto meanings = stackMeanings(*made->m_snapshot);
    made->m_steps = std::make_unique<SnapshotSteps>(findSteps(*made->m_snapshot, *made->m_lifetimes, meanings));
    MEMSCAPE_CHECK(checkWanted());
    pace.begin(0.8);
    made->m_categories = std::make_unique<SnapshotCategories>(*made->m_snapshot, *made->m_lifetimes, *made->m_steps,
                                                              std::move(meanings));
    MEMSCAPE_CHECK(checkWanted());
    pace.begin(1);
    made->m_timeline = std::make_unique<SnapshotTimeline>(*made->m_lifetimes, *made->m_categories, pace);
    MEMSCAPE_CHECK(checkWanted());
    pace.begin(1);
    return std::shared_ptr<const SnapshotDevice>(std::move(made));
}

std::vector<SnapshotGroup> SnapshotDevice::groups(std::span<const LifetimeId> blocks, SnapshotGrouping grouping) const
{
    return groupLifetimes(*m_snapshot, *m_lifetimes, *m_steps, *m_categories, blocks, grouping);
}

std::vector<LifetimeId> SnapshotDevice::allocatedAt(std::size_t moment) const
{
    auto blocks = m_lifetimes->aliveAt(moment);
    std::erase_if(blocks, [&](LifetimeId id) { return (*m_lifetimes)[id].freed <= moment; });
    return blocks;
}

std::string SnapshotDevice::describe(LifetimeId lifetime) const
{
    const LifetimeId one[] = {lifetime};
    std::vector<std::string> parts;
    for (const auto grouping : {SnapshotGrouping::Module, SnapshotGrouping::Operator, SnapshotGrouping::Line}) {
        std::string label = groups(one, grouping).front().label;
        if (label != "(unknown)")
            parts.push_back(std::move(label));
    }
    if (const LabelId label = (*m_lifetimes)[lifetime].label; label != noLabel) {
        const SnapshotLabel& told = m_snapshot->run->labels[label];
        for (const TextId text : {told.name, told.region}) {
            if (text != 0)
                parts.emplace_back(m_snapshot->texts[text]);
        }
    }
    parts.emplace_back(categoryText(m_categories->of(lifetime)));
    parts.push_back(bytesText(double((*m_lifetimes)[lifetime].requested)));
    return join(parts, ", ");
}

Result<EventRange> parseEventRange(std::string_view text, std::size_t events)
{
    EventRange range{0, events};
    if (trimmed(text).empty())
        return range;
    const std::size_t colon = text.find(':');
    if (colon == text.npos || text.find(':', colon + 1) != text.npos)
        return fail("snapshot.range", fmt::format("\"{}\" is no range", quotedForMessage(text)),
                    "a range is FIRST:LAST, in events (1200:2400) or in shares (25%:75%)");
    MEMSCAPE_TRY(first, boundary(text.substr(0, colon), events, 0));
    MEMSCAPE_TRY(last, boundary(text.substr(colon + 1), events, events));
    if (first > last || (first == last && events > 0))
        return fail("snapshot.range", fmt::format("the range {}:{} has no event", first, last),
                    "a range is FIRST:LAST, and LAST is not in it");
    return EventRange{first, last};
}

} // namespace memscape
