// SPDX-License-Identifier: Apache-2.0
// Memory whose pages we choose. An array that is walked at random over 256 MiB of 4 KiB pages spends as much time on
// address translation as on memory, so the page size is a parameter of the measurement and not luck: mmap gives whole
// pages, madvise asks for 2 MiB pages or forbids them, and smaps says afterwards whether the request was granted. Pages
// are not touched here: the thread that writes them first decides on which NUMA node they live.
//
// Left out: 1 GiB pages and hugetlbfs, which need an administrator.
#pragma once

#include "core/base/result.h"
#include "kernels/measure/memory.h"

#include <cstddef>
#include <span>

namespace memscape::host {

enum class Pages { Small, Huge };

/// One mapping; freed and uncounted when it goes. Move only.
class Buffer
{
public:
    Buffer() = default;
    ~Buffer();
    Buffer(Buffer&& other) noexcept;
    Buffer& operator=(Buffer&& other) noexcept;

    std::byte* data() const { return m_data; }
    std::size_t bytes() const { return m_bytes; }
    std::span<std::byte> span() const { return {m_data, m_bytes}; }
    template <typename T> T* as() const { return reinterpret_cast<T*>(m_data); }

    /// Share of the bytes that lie on huge pages now (AnonHugePages in /proc/self/smaps).
    double hugeShare() const;

private:
    friend Result<Buffer> allocate(std::size_t bytes, Pages pages, MemoryMeter& meter);
    void release();

    std::byte* m_data = nullptr; ///< aligned to 2 MiB
    std::size_t m_bytes = 0;
    void* m_mapping = nullptr;
    std::size_t m_mappedBytes = 0;
    MemoryMeter* m_meter = nullptr;
};

/// Zeroed on first touch. `meter` must outlive the buffer. Errors: run.memory.
Result<Buffer> allocate(std::size_t bytes, Pages pages, MemoryMeter& meter);

/// run.memory with a remedy when `bytes` exceed 80 % of what the machine has available.
Result<void> checkFits(double bytes);
/// The same against a given number of available bytes.
Result<void> checkFits(double bytes, double available);

} // namespace memscape::host
