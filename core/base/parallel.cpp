// SPDX-License-Identifier: Apache-2.0
#include "core/base/parallel.h"

#include "core/base/cancellation.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

namespace memscape {

namespace {

/// The parts of one call, taken one after the other by every thread.
class Parts
{
public:
    Parts(std::size_t count, const std::function<void(std::size_t)>& work)
        : m_count(count)
        , m_work(work)
        , m_flag(CancelScope::current())
    { }

    void takeAll()
    {
        std::optional<CancelScope> scope;
        if (m_flag)
            scope.emplace(*m_flag);
        try {
            for (std::size_t i = m_next++; i < m_count; i = m_next++)
                m_work(i);
        } catch (...) {
            m_next = m_count;
            const std::lock_guard lock(m_mutex);
            m_failure = std::current_exception();
        }
    }

    void throwFailure() const
    {
        if (m_failure)
            std::rethrow_exception(m_failure);
    }

private:
    const std::size_t m_count;
    const std::function<void(std::size_t)>& m_work;
    const std::atomic<bool>* const m_flag;
    std::atomic<std::size_t> m_next = 0;
    std::mutex m_mutex;
    std::exception_ptr m_failure;
};

} // namespace

void inParallel(std::size_t count, std::size_t threads, const std::function<void(std::size_t)>& work)
{
    Parts parts(count, work);
    std::vector<std::jthread> others;
    try {
        others.reserve(threads);
        while (others.size() + 1 < std::min(threads, count))
            others.emplace_back([&parts] { parts.takeAll(); });
    } catch (const std::system_error&) { // no further thread: those that there are do it
    }
    parts.takeAll();
    others.clear(); // joins
    parts.throwFailure();
}

std::size_t coreCount()
{
    return std::max(1U, std::thread::hardware_concurrency());
}

} // namespace memscape
