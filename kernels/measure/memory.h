// SPDX-License-Identifier: Apache-2.0
// Memory next to time: what our own arrays take, to the byte, and what the whole process took at its
// worst. The first is exact because every array of a measurement is counted when it is made and when
// it goes; the second (VmHWM) adds the program, its libraries and the threads' stacks.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

namespace memscape {

/// Bytes alive and their high water. Thread-safe.
class MemoryMeter
{
public:
    void add(std::int64_t bytes);
    void remove(std::int64_t bytes) { m_used -= bytes; }
    /// From here on the high water is of what is alive now: after the warm-up, not before it.
    void resetHighWater() { m_highWater = m_used.load(); }

    std::int64_t used() const { return m_used; }
    std::int64_t highWater() const { return m_highWater; }

private:
    std::atomic<std::int64_t> m_used {0};
    std::atomic<std::int64_t> m_highWater {0};
};

/// VmHWM of /proc/self/status in bytes: the largest resident size so far.
std::optional<std::int64_t> processHighWater();
/// Starts VmHWM again from the current size (writes 5 to /proc/self/clear_refs); false where the
/// kernel forbids it, and then processHighWater() is of the whole life of the process.
bool resetProcessHighWater();
/// MemAvailable of /proc/meminfo in bytes.
std::optional<std::int64_t> availableMemory();

} // namespace memscape
