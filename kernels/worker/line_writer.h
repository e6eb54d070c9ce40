// SPDX-License-Identifier: Apache-2.0
// Whole lines to a file descriptor, from any thread.
#pragma once

#include "core/protocol/message.h"

#include <atomic>
#include <mutex>

namespace memscape {

class LineWriter
{
public:
    explicit LineWriter(int descriptor)
        : m_descriptor(descriptor)
    { }

    /// One event as one line; lines of several threads never mix. After the reader has gone nothing
    /// more is written.
    void write(const protocol::Event& event);
    bool broken() const { return m_broken; }

private:
    int m_descriptor;
    std::mutex m_mutex;
    std::atomic<bool> m_broken{false};
};

} // namespace memscape
