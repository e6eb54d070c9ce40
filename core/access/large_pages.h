// SPDX-License-Identifier: Apache-2.0
// Memory for tables that are read at random: from 2 MiB on it lies on large pages where the system
// has them, so that a lookup does not wait for the translation of its address as well.
//
// Left out: page sizes other than 2 MiB, systems other than Linux (the memory is plain there).
#pragma once

#include <cstddef>
#include <new>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace memscape {

template <typename T> struct LargePageAllocator
{
    using value_type = T;
    static constexpr std::size_t page = std::size_t(2) << 20;

    LargePageAllocator() = default;
    template <typename U> LargePageAllocator(const LargePageAllocator<U>&) { }

    T* allocate(std::size_t count)
    {
        void* const memory = ::operator new(count * sizeof(T), alignment(count));
#ifdef __linux__
        if (count * sizeof(T) >= page)
            ::madvise(memory, count * sizeof(T), MADV_HUGEPAGE); // a wish: refused is no error
#endif
        return static_cast<T*>(memory);
    }
    void deallocate(T* memory, std::size_t count)
    {
        ::operator delete(memory, alignment(count));
    }

    template <typename U> bool operator==(const LargePageAllocator<U>&) const
    {
        return true;
    }

private:
    static std::align_val_t alignment(std::size_t count)
    {
        return std::align_val_t(count * sizeof(T) >= page ? page : alignof(T));
    }
};

} // namespace memscape
