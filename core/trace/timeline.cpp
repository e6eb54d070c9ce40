// SPDX-License-Identifier: Apache-2.0
#include "core/trace/timeline.h"

#include <algorithm>
#include <utility>

namespace memscape {

namespace {

/// Walks the events and knows the state after each.
class Walk
{
public:
    explicit Walk(const Trace& trace)
        : m_trace(trace)
        , m_repetition(trace.repetition())
        , m_end(m_repetition.first + m_repetition.times * m_repetition.length())
    { }
    /// The next event's moment; must not be called behind the last one.
    const Moment& next()
    {
        const Event& event = m_trace.events()[m_stored++];
        m_moment.event = m_next++;
        m_moment.bytes += event.change();
        m_moment.categories[std::size_t(event.category)] += event.change();
        m_moment.phase = event.phase;
        m_moment.microBatch = std::uint16_t(event.microBatch + (isInside(m_moment.event) ? m_time : 0));
        if (m_stored == m_repetition.last && m_next < m_end) {
            m_stored = m_repetition.first;
            ++m_time;
        }
        return m_moment;
    }
    /// The next event begins a time of the repetition.
    bool isAtTime() const { return m_repetition.times > 1 && m_stored == m_repetition.first && m_next < m_end; }
    /// Goes over all times that end before `end`; the last moment of them, or the one it is at.
    const Moment& skipTimes(std::size_t end)
    {
        const std::size_t length = m_repetition.length(), count = (std::min(end, m_end) - m_next) / length;
        if (count == 0)
            return m_moment;
        m_next += count * length;
        m_time += count;
        m_moment.event = m_next - 1;
        m_moment.microBatch = std::uint16_t(m_trace.events()[m_repetition.last - 1].microBatch + m_time - 1);
        if (m_next == m_end)
            m_stored = m_repetition.last;
        return m_moment;
    }

private:
    bool isInside(std::size_t moment) const { return moment >= m_repetition.first && moment < m_end; }

    const Trace& m_trace;
    Repetition m_repetition;
    std::size_t m_end; ///< the moment behind the repetition
    std::size_t m_stored = 0;
    std::size_t m_next = 0;
    std::size_t m_time = 0; ///< of the repetition, from 0
    Moment m_moment;
};

/// The lowest and the highest moment before `end`, the first of each; `moment` is the first and becomes the last. Of
/// the times of a repetition that lie inside one is enough: the others reach the same heights.
std::pair<Moment, Moment> extremes(Walk& walk, Moment& moment, std::size_t end)
{
    Moment lowest = moment, highest = moment;
    bool sawTime = false;
    while (moment.event + 1 < end) {
        if (walk.isAtTime()) {
            if (sawTime)
                moment = walk.skipTimes(end);
            sawTime = true;
            if (moment.event + 1 >= end)
                break;
        }
        moment = walk.next();
        if (moment.bytes < lowest.bytes)
            lowest = moment;
        if (moment.bytes > highest.bytes)
            highest = moment;
    }
    return {lowest, highest};
}

} // namespace

std::vector<Moment> timelineOf(const Trace& trace, std::size_t points)
{
    const std::size_t count = trace.eventCount();
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
        auto [lowest, highest] = extremes(walk, moment, end);
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
