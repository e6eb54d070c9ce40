// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/common/threads.h"

#include "core/base/rounding.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <set>
#include <utility>

#include <sched.h>

namespace memscape::host {

namespace {

std::vector<int> affinity()
{
    std::vector<int> processors;
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof(set), &set) == 0) {
        for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
            if (CPU_ISSET(cpu, &set))
                processors.push_back(cpu);
        }
    }
    if (processors.empty())
        processors.push_back(0);
    return processors;
}

bool pinTo(int processor)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    return sched_setaffinity(0, sizeof(set), &set) == 0;
}

} // namespace

std::vector<int> physicalCores(const std::string& root, std::vector<int> allowed)
{
    if (allowed.empty())
        allowed = affinity();
    std::vector<int> cores;
    std::set<std::string> seen;
    for (const int cpu : allowed) {
        std::ifstream file(root + "/sys/devices/system/cpu/cpu" + std::to_string(cpu)
                           + "/topology/thread_siblings_list");
        std::string siblings;
        std::getline(file, siblings);
        // Without topology every processor counts as a core.
        if (siblings.empty() || seen.insert(siblings).second)
            cores.push_back(cpu);
    }
    return cores;
}

ThreadTeam::ThreadTeam(std::vector<int> processors, const Clock& clock, Poll poll)
    : m_clock(&clock)
    , m_poll(std::move(poll))
    , m_processors(std::move(processors))
    , m_begin(m_processors.size())
    , m_end(m_processors.size())
{
    for (int i = 0; i < size(); ++i)
        m_threads.emplace_back([this, i] { loop(i); });
}

ThreadTeam::~ThreadTeam()
{
    {
        const std::lock_guard lock(m_mutex);
        m_quit = true;
    }
    m_wake.notify_all();
    for (std::thread& thread : m_threads)
        thread.join();
}

bool ThreadTeam::checkStop()
{
    if (m_poll && m_poll())
        m_stopping.store(true, std::memory_order_relaxed);
    return stopping();
}

double ThreadTeam::run(const std::function<void(int)>& body, int threads)
{
    std::unique_lock lock(m_mutex);
    m_active = threads <= 0 ? size() : std::min(threads, size());
    m_body = &body;
    m_done = 0;
    m_ready = 0;
    ++m_round;
    m_wake.notify_all();
    while (!m_finished.wait_for(lock, std::chrono::milliseconds(20), [this] { return m_done == m_active; })) {
        lock.unlock();
        checkStop();
        lock.lock();
    }
    m_body = nullptr;
    if (m_thrown)
        std::rethrow_exception(std::exchange(m_thrown, nullptr));
    const auto active = static_cast<std::size_t>(m_active);
    const double begin = *std::min_element(m_begin.begin(), m_begin.begin() + active);
    const double end = *std::max_element(m_end.begin(), m_end.begin() + active);
    return end - begin;
}

void ThreadTeam::loop(int thread)
{
    if (!pinTo(m_processors[static_cast<std::size_t>(thread)]))
        m_pinned = false;
    std::uint64_t round = 0;
    std::unique_lock lock(m_mutex);
    while (true) {
        m_wake.wait(lock, [&] { return m_quit || m_round != round; });
        if (m_quit)
            return;
        round = m_round;
        if (thread >= m_active)
            continue;
        lock.unlock();
        std::exception_ptr thrown;
        try {
            work(thread);
        } catch (...) {
            thrown = std::current_exception();
        }
        lock.lock();
        if (thrown)
            m_thrown = thrown;
        if (++m_done == m_active)
            m_finished.notify_one();
    }
}

void ThreadTeam::work(int thread)
{
    // Meet before starting. Yield after a while: on a busy machine the others may not be running.
    m_ready.fetch_add(1);
    for (int spins = 0; m_ready.load(std::memory_order_acquire) < m_active; ++spins) {
        if (spins > 2000)
            std::this_thread::yield();
    }
    const auto index = static_cast<std::size_t>(thread);
    m_begin[index] = m_clock->now();
    (*m_body)(thread);
    m_end[index] = m_clock->now();
}

Part partOf(std::size_t count, int thread, int threads, std::size_t grain)
{
    const std::size_t grains = quotientUp(count, grain);
    const auto t = static_cast<std::size_t>(thread);
    const auto n = static_cast<std::size_t>(std::max(threads, 1));
    const auto edge = [&](std::size_t i) {
        // grains × i / n without overflow.
        const std::size_t whole = grains / n * i + grains % n * i / n;
        return std::min(count, whole * grain);
    };
    return {edge(t), edge(t + 1)};
}

} // namespace memscape::host
