// SPDX-License-Identifier: Apache-2.0
// A process that may have only so much more memory than it has: the next large array is refused by
// the system itself, as it is in a container with little memory.
#pragma once

#include "tests/support/sanitized.h"

#include <fstream>

#include <sys/resource.h>
#include <unistd.h>

namespace memscape::test {

class MemoryLimit
{
public:
    /// Room for `bytes` more of address space, until this goes.
    explicit MemoryLimit(rlim_t bytes)
    {
        rlim_t pages = 0;
        std::ifstream("/proc/self/statm") >> pages;
        getrlimit(RLIMIT_AS, &m_before);
        rlimit limit = m_before;
        limit.rlim_cur = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + bytes;
        m_set = setrlimit(RLIMIT_AS, &limit) == 0;
    }
    ~MemoryLimit() { setrlimit(RLIMIT_AS, &m_before); }
    MemoryLimit(const MemoryLimit&) = delete;
    MemoryLimit& operator=(const MemoryLimit&) = delete;

    /// False where it could not be set, or where a sanitizer has taken the address space already.
    bool holds() const
    {
#ifdef MEMSCAPE_ADDRESS_SANITIZER
        return false;
#else
        return m_set;
#endif
    }

private:
    rlimit m_before{};
    bool m_set = false;
};

} // namespace memscape::test
