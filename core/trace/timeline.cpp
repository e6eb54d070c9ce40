// SPDX-License-Identifier: Apache-2.0
#include "core/trace/timeline.h"

#include <algorithm>

namespace memscape {

namespace {

/// Walks the events and knows the state after each.
class Walk
{
public:
    explicit Walk(const Trace& trace)
        : m_events(trace.events())
    {
    }
    /// The next event's moment; must not be called behind the last one.
    const Moment& next()
    {
        const Event& event = m_events[m_next];
        m_moment.event = m_next++;
        m_moment.bytes += event.change();
        m_moment.categories[std::size_t(event.category)] += event.change();
        m_moment.phase = event.phase;
        m_moment.microBatch = event.microBatch;
        return m_moment;
    }

private:
    const std::vector<Event>& m_events;
    std::size_t m_next = 0;
    Moment m_moment;
};

} // namespace

std::vector<Moment> timelineOf(const Trace& trace, std::size_t points)
{
    const std::size_t count = trace.events().size();
    if (count == 0)
        return {};
    points = std::max<std::size_t>(points, 4);
    Walk walk(trace);
    Moment moment = walk.next();
    while (moment.event + 1 < trace.setupEvents())
        moment = walk.next();

    std::vector<Moment> line{moment};
    const std::size_t first = moment.event + 1;
    const std::size_t left = count - first;
    const std::size_t stretches = left <= points - 1 ? left : (points - 2) / 2;
    for (std::size_t stretch = 0; stretch < stretches; ++stretch) {
        const std::size_t end = first + (stretch + 1) * left / stretches;
        moment = walk.next();
        Moment lowest = moment, highest = moment;
        while (moment.event + 1 < end) {
            moment = walk.next();
            if (moment.bytes < lowest.bytes)
                lowest = moment;
            if (moment.bytes > highest.bytes)
                highest = moment;
        }
        if (lowest.event > highest.event)
            std::swap(lowest, highest);
        line.push_back(lowest);
        if (highest.event != lowest.event)
            line.push_back(highest);
    }
    if (line.back().event != moment.event)
        line.push_back(moment);
    return line;
}

} // namespace memscape
