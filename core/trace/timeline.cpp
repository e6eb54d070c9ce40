// SPDX-License-Identifier: Apache-2.0
#include "core/trace/timeline.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace memscape {

namespace {

/// The state after each stored event, found from the nearest of many that are kept.
class States
{
public:
    explicit States(const Trace& trace)
        : m_trace(trace)
    {
        Moment state;
        for (std::size_t i = 0; i < trace.events().size(); ++i) {
            if (i % blockLength == 0)
                m_blocks.push_back({state, {}});
            advance(state, i);
            m_blocks.back().extremes.take(i, state.bytes);
        }
    }

    /// The first lowest and the first highest of some events, stored ones or moments.
    struct Extremes
    {
        struct At
        {
            std::size_t place = 0;
            std::int64_t bytes = 0;
        };
        std::optional<At> lowest, highest;

        void take(std::size_t place, std::int64_t bytes)
        {
            if (!lowest || bytes < lowest->bytes)
                lowest = {place, bytes};
            if (!highest || bytes > highest->bytes)
                highest = {place, bytes};
        }
    };

    /// Of the stored events from `begin` on and before `end`, at least one.
    Extremes extremes(std::size_t begin, std::size_t end) const
    {
        Extremes found;
        while (begin < end) {
            const Block& block = m_blocks[begin / blockLength];
            const std::size_t blockEnd = (begin / blockLength + 1) * blockLength;
            if (begin % blockLength == 0 && blockEnd <= end) {
                found.take(block.extremes.lowest->place, block.extremes.lowest->bytes);
                found.take(block.extremes.highest->place, block.extremes.highest->bytes);
            } else {
                std::int64_t bytes = after(begin).bytes;
                found.take(begin, bytes);
                for (std::size_t i = begin + 1; i < std::min(end, blockEnd); ++i)
                    found.take(i, bytes += m_trace.events()[i].change());
            }
            begin = blockEnd;
        }
        return found;
    }

    /// The state after a stored event.
    Moment after(std::size_t stored) const
    {
        Moment state = m_blocks[stored / blockLength].before;
        for (std::size_t i = stored - stored % blockLength; i <= stored; ++i)
            advance(state, i);
        return state;
    }

private:
    static constexpr std::size_t blockLength = 32; ///< a stretch of a timeline may be as short
    struct Block
    {
        Moment before;
        Extremes extremes;
    };

    void advance(Moment& state, std::size_t stored) const
    {
        const Event& event = m_trace.events()[stored];
        state.event = stored;
        state.bytes += event.change();
        state.categories[std::size_t(event.category)] += event.change();
        state.phase = event.phase;
        state.microBatch = event.microBatch;
    }

    const Trace& m_trace;
    std::vector<Block> m_blocks;
};

/// The moments of a trace: stored events, those of a repetition many times. Its memory is the same after each time.
class Moments
{
public:
    explicit Moments(const Trace& trace)
        : m_trace(trace)
        , m_states(trace)
        , m_repetition(trace.repetition())
        , m_end(m_repetition.first + m_repetition.times * m_repetition.length())
    { }

    Moment at(std::size_t moment) const
    {
        Moment state = m_states.after(m_trace.storedAt(moment));
        state.event = moment;
        if (isRepeated(moment))
            state.microBatch = std::uint16_t(state.microBatch + timeOf(moment));
        return state;
    }

    /// The first lowest and the first highest moment from `begin` on and before `end`. Of the times of a repetition
    /// that lie inside one is enough: the others reach the same heights.
    std::pair<Moment, Moment> extremes(std::size_t begin, std::size_t end) const
    {
        States::Extremes found;
        bool sawTime = false;
        while (begin < end) {
            std::size_t next = end;
            if (m_repetition.times > 1 && begin < m_repetition.first) {
                next = std::min(end, m_repetition.first);
            } else if (isRepeated(begin)) {
                const std::size_t timeBegin = m_repetition.first + timeOf(begin) * m_repetition.length();
                next = std::min(end, timeBegin + m_repetition.length());
                if (sawTime && begin == timeBegin && next == timeBegin + m_repetition.length()) {
                    const std::size_t last = std::min(end, m_end) - m_repetition.first;
                    begin = m_repetition.first + last / m_repetition.length() * m_repetition.length();
                    continue;
                }
                sawTime = sawTime || (begin == timeBegin && next == timeBegin + m_repetition.length());
            }
            const std::size_t stored = m_trace.storedAt(begin), moved = begin - stored;
            const States::Extremes here = m_states.extremes(stored, stored + (next - begin));
            found.take(here.lowest->place + moved, here.lowest->bytes);
            found.take(here.highest->place + moved, here.highest->bytes);
            begin = next;
        }
        return {at(found.lowest->place), at(found.highest->place)};
    }

private:
    bool isRepeated(std::size_t moment) const
    {
        return m_repetition.times > 1 && moment >= m_repetition.first && moment < m_end;
    }
    std::size_t timeOf(std::size_t moment) const { return (moment - m_repetition.first) / m_repetition.length(); }

    const Trace& m_trace;
    States m_states;
    Repetition m_repetition;
    std::size_t m_end; ///< the moment behind the repetition
};

} // namespace

std::vector<Moment> timelineOf(const Trace& trace, std::size_t points)
{
    const std::size_t count = trace.eventCount();
    if (count == 0)
        return {};
    points = std::max<std::size_t>(points, 4);
    const Moments moments(trace);
    const std::size_t first = std::max<std::size_t>(trace.setupEvents(), 1);
    std::vector<Moment> line{moments.at(first - 1)};
    const std::size_t left = count - first;
    const std::size_t stretches = left <= points - 1 ? left : (points - 2) / 2;
    for (std::size_t stretch = 0; stretch < stretches; ++stretch) {
        auto [lowest, highest] =
            moments.extremes(first + stretch * left / stretches, first + (stretch + 1) * left / stretches);
        if (lowest.event > highest.event)
            std::swap(lowest, highest);
        line.push_back(lowest);
        if (highest.event != lowest.event)
            line.push_back(highest);
    }
    if (line.back().event != count - 1)
        line.push_back(moments.at(count - 1));
    return line;
}

} // namespace memscape
