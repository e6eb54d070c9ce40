// SPDX-License-Identifier: Apache-2.0
// A team of pinned threads that start together. One thread per physical core (a second one on the same
// core shares its caches and its load ports and measures something else). Time runs from the first
// start to the last end, taken inside the threads: waking them up is not part of it.
//
// The caller sleeps while the team works and asks `poll` every few milliseconds whether to stop; the
// kernels look at stopping() between blocks. That is how a run stops within a second wherever it is.
#pragma once

#include "kernels/measure/clock.h"

#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace memscape::host {

/// One processor number of every physical core that this process may run on, in ascending order.
/// `root` is "/" except in tests; `allowed` empty means the affinity mask of this process.
std::vector<int> physicalCores(const std::string& root = "/", std::vector<int> allowed = {});

class ThreadTeam
{
public:
    using Poll = std::function<bool()>; ///< true: stop

    ThreadTeam(std::vector<int> processors, const Clock& clock, Poll poll = {});
    ~ThreadTeam();
    ThreadTeam(const ThreadTeam&) = delete;
    ThreadTeam& operator=(const ThreadTeam&) = delete;

    int size() const { return static_cast<int>(m_processors.size()); }
    const std::vector<int>& processors() const { return m_processors; }
    /// Every thread got the processor it asked for.
    bool pinned() const { return m_pinned; }

    /// body(thread) on the first `threads` of the team (0: all of them), started together.
    /// Seconds from the first start to the last end. What a body throws (the memory ran out) is thrown
    /// here once all have ended; of several one.
    double run(const std::function<void(int)>& body, int threads = 0);

    /// Set once poll has said stop; the bodies check it between blocks.
    bool stopping() const { return m_stopping.load(std::memory_order_relaxed); }
    /// Asks poll now, from the caller's thread.
    bool checkStop();

private:
    void loop(int thread);
    void work(int thread);

    const Clock* m_clock;
    Poll m_poll;
    std::vector<int> m_processors;
    std::vector<double> m_begin, m_end;

    std::mutex m_mutex;
    std::condition_variable m_wake, m_finished;
    const std::function<void(int)>* m_body = nullptr;
    std::uint64_t m_round = 0;
    int m_active = 0, m_done = 0;
    std::exception_ptr m_thrown;
    bool m_quit = false;
    std::atomic<int> m_ready{0};
    std::atomic<bool> m_stopping{false}, m_pinned{true};
    std::vector<std::thread> m_threads;
};

/// [begin, end) of `count` items that belong to `thread` of `threads`; whole multiples of `grain`.
struct Part
{
    std::size_t begin = 0, end = 0;
    std::size_t size() const { return end - begin; }
};
Part partOf(std::size_t count, int thread, int threads, std::size_t grain = 1);

} // namespace memscape::host
