// SPDX-License-Identifier: Apache-2.0
// A process that copies and nothing else, and the memory that it shares with this one. It is forked: no lock or
// allocation of this process is touched in it. It is killed when its object goes, and by the kernel when the thread
// that made it dies (PR_SET_PDEATHSIG), also after kill -9. Shared memory has no name, so none is left behind.
#pragma once

#include "core/base/result.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <system_error>

#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace memscape::host {

/// A child that runs `body` and nothing else; killed and waited for when it goes.
class ForkedChild
{
public:
    ForkedChild() = default;
    ForkedChild(const ForkedChild&) = delete;
    ForkedChild& operator=(const ForkedChild&) = delete;
    ~ForkedChild()
    {
        if (m_process <= 0)
            return;
        ::kill(m_process, SIGKILL);
        while (::waitpid(m_process, nullptr, 0) < 0 && errno == EINTR) { }
    }

    /// `kept`: the only files that stay open, ascending. `processor` below 0: any.
    template <typename Body> Result<void> start(const std::array<int, 2>& kept, int processor, Body&& body)
    {
        const pid_t parent = ::getpid();
        m_process = ::fork();
        if (m_process < 0)
            return fail("run.failed", "a second process cannot be started: " + std::generic_category().message(errno),
                        "close other programs, or raise the limit of processes (ulimit -u)");
        if (m_process > 0)
            return {};
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != parent) // it died before that
            ::_exit(1);
        closeOthers(kept);
        if (processor >= 0) {
            cpu_set_t set;
            CPU_ZERO(&set);
            CPU_SET(processor, &set);
            ::sched_setaffinity(0, sizeof(set), &set);
        }
        body();
        ::_exit(0);
    }
    pid_t process() const { return m_process; } ///< 0 before start()
    bool isAlive() const
    {
        siginfo_t info{};
        return ::waitid(P_PID, id_t(m_process), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0;
    }

private:
    static void closeOthers(const std::array<int, 2>& kept)
    {
        unsigned from = 0;
        for (const int file : kept) {
            if (file < 0)
                continue;
            if (unsigned(file) > from)
                ::syscall(SYS_close_range, from, unsigned(file) - 1, 0);
            from = unsigned(file) + 1;
        }
        ::syscall(SYS_close_range, from, ~0U, 0);
    }

    pid_t m_process = 0;
};

/// Memory that this process and its child see.
class SharedMapping
{
public:
    explicit SharedMapping(std::size_t bytes)
        : m_bytes(bytes)
        , m_data(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))
    { }
    SharedMapping(const SharedMapping&) = delete;
    SharedMapping& operator=(const SharedMapping&) = delete;
    ~SharedMapping()
    {
        if (isThere())
            ::munmap(m_data, m_bytes);
    }
    bool isThere() const { return m_data != MAP_FAILED; }
    void* data() const { return m_data; }

private:
    std::size_t m_bytes;
    void* m_data;
};

} // namespace memscape::host
