// SPDX-License-Identifier: Apache-2.0
#include "kernels/worker/stream_sink.h"

#include <algorithm>

namespace memscape {

using namespace protocol;

namespace {

constexpr double interval = 1.0 / 30;

} // namespace

StreamSink::StreamSink(std::int64_t run, LineWriter& out, const std::atomic<bool>& cancelled, const Clock* clock,
                       bool isForced)
    : m_run(run)
    , m_out(out)
    , m_cancelled(cancelled)
    , m_clock(clock ? clock : &m_steady)
    , m_isForced(isForced)
{ }

void StreamSink::progress(int done, int total, const std::string& label)
{
    const double now = m_clock->now();
    if (!m_held.empty() && now >= m_nextPoint)
        sendOldest();
    if (now < m_nextProgress)
        return;
    m_nextProgress = now + interval;
    m_out.write(protocol::Event{Progress{m_run, done, total, label}});
}

void StreamSink::point(const std::string& sweepKey, const Point& point)
{
    const auto same = std::ranges::find_if(m_held, [&](const auto& held) {
        return held.first == sweepKey && held.second.x == point.x && held.second.name == point.name;
    });
    if (same != m_held.end())
        same->second = point;
    else
        m_held.emplace_back(sweepKey, point);
    if (m_clock->now() >= m_nextPoint)
        sendOldest();
}

void StreamSink::note(const std::string& level, const std::string& code, const std::string& text)
{
    m_out.write(protocol::Event{Note{m_run, level, code, text}});
}

void StreamSink::flush()
{
    while (!m_held.empty())
        sendOldest();
}

void StreamSink::sendOldest()
{
    m_nextPoint = m_clock->now() + interval;
    m_out.write(protocol::Event{Sample{m_run, m_held.front().first, m_held.front().second}});
    m_held.erase(m_held.begin());
}

} // namespace memscape
