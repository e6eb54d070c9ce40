// SPDX-License-Identifier: Apache-2.0
// How far the host is ahead of the device: what was freed behind another stream's use stays in the allocator until the
// device has come past it. A stream takes about 1024 commands (kernels, and events that are recorded or waited for)
// that have not run; then the host waits. That is taken for the lead, as if the device were always the slower one.
//
// Sources: forums.developer.nvidia.com, topic 68937 (a loop of launches is slowed down after about a thousand, each
// stream has its own); Oneflow's pull request 890 (1024).
#pragma once

#include "core/trace/trace.h"

#include <algorithm>
#include <deque>

namespace memscape {

class HostLead
{
public:
    explicit HostLead(Trace& trace)
        : m_trace(trace)
    { }

    /// The host gives commands to the computation's stream.
    void launch(int commands)
    {
        m_launched += commands;
        pass(m_launched - queueLength);
    }
    /// The command that ran last used the block, in a stream that is not the block's own.
    void freeBehind(BlockId block)
    {
        m_trace.freeBehind(block);
        m_uses.push_back(m_launched);
    }
    /// An event behind all that was launched. Where more than `most` are still to come the host waits for the oldest.
    void record(std::size_t most)
    {
        if (m_events.size() > most)
            pass(m_events.front());
        m_events.push_back(m_launched);
    }
    /// The host waits for all.
    void wait() { pass(m_launched); }

private:
    static constexpr std::int64_t queueLength = 1024;

    void pass(std::int64_t launched)
    {
        while (!m_events.empty() && m_events.front() <= launched)
            m_events.pop_front();
        const auto waiting = std::find_if(m_uses.begin(), m_uses.end(), [&](auto use) { return use > launched; });
        if (waiting == m_uses.begin())
            return;
        m_uses.erase(m_uses.begin(), waiting);
        m_trace.passBehind(m_uses.size());
    }

    Trace& m_trace;
    std::int64_t m_launched = 0;
    std::deque<std::int64_t> m_uses;   ///< by block, in order: what had been launched when it was freed
    std::deque<std::int64_t> m_events; ///< the same of each event that may still be to come
};

} // namespace memscape
