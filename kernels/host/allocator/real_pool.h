// SPDX-License-Identifier: Apache-2.0
// Allocators of this process. A pool is the policy of the prediction (core/trace/memory_policy.h) over real addresses:
// one range is reserved without pages (PROT_NONE), and what the policy takes from its driver becomes writable by
// mprotect, as cudaMalloc makes a segment; what it returns loses its pages (MADV_DONTNEED) and its access again.
// malloc is glibc's, counted by mallinfo2().
//
// Huge pages are forbidden, so that a page fault is one page of 4 KiB.
#pragma once

#include "kernels/programs/allocator/allocator_run.h"

namespace memscape::host {

/// Where blocks are, and what holds them.
class HostAllocator : public RealAllocator
{
public:
    virtual std::byte* place(BlockId block) const = 0;
};

/// A range of addresses without pages. Move only.
class AddressRange
{
public:
    AddressRange() = default;
    AddressRange(AddressRange&& other) noexcept;
    AddressRange& operator=(AddressRange&& other) noexcept;
    ~AddressRange();
    /// Errors: run.memory.
    static Result<AddressRange> reserve(std::size_t bytes);

    std::byte* data() const { return m_data; }
    /// Whole pages around [offset, offset + bytes). False when the system refuses.
    bool open(std::size_t offset, std::size_t bytes, FirstTouch touch) const;
    void close(std::size_t offset, std::size_t bytes) const;

private:
    std::byte* m_data = nullptr;
    std::size_t m_bytes = 0;
};

/// Errors: run.memory, run.skipped (an allocator that a host has not).
Result<std::unique_ptr<HostAllocator>> openHostAllocator(const AllocatorCase& asked, bool checks);

} // namespace memscape::host
