// SPDX-License-Identifier: Apache-2.0
// Memory next to time: what our own arrays take, to the byte, and what the whole process took at its
// worst. The first is exact because every array of a measurement is counted when it is made and when
// it goes; the second (VmHWM) adds the program, its libraries and the threads' stacks.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

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
    std::atomic<std::int64_t> m_used{0};
    std::atomic<std::int64_t> m_highWater{0};
};

/// VmHWM of /proc/self/status in bytes: the largest resident size so far.
std::optional<std::int64_t> processHighWater();
/// Starts VmHWM again from the current size (writes 5 to /proc/self/clear_refs); false where the
/// kernel forbids it, and then processHighWater() is of the whole life of the process.
bool resetProcessHighWater();
/// What this process may still take, in bytes: MemAvailable of /proc/meminfo, or less where a limit of
/// the address space (ulimit -v) or of a control group (a container, a batch job) comes first. `root`
/// is "/" except in tests.
std::optional<std::int64_t> availableMemory(const std::string& root = "/");
/// What is left of the address space where it is limited; none where it is not.
std::optional<std::int64_t> availableAddresses(const std::string& root = "/");

} // namespace memscape
