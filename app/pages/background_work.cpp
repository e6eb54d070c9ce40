// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/background_work.h"

#include "core/base/cancellation.h"

#include <atomic>
#include <new>
#include <utility>

namespace memscape {

struct BackgroundWork::Job
{
    Work work;
    Finish finish;
    std::atomic<bool> isCancelled = false;
    bool isOutOfMemory = false;

    void run()
    {
        const CancelScope scope(isCancelled);
        try {
            finish = work();
        } catch (const std::bad_alloc&) {
            isOutOfMemory = true;
        }
        work = nullptr; // what it held goes on this thread
    }
};

BackgroundWork::BackgroundWork(QObject* parent)
    : QObject(parent)
{
    m_thread.setMaxThreadCount(1);
}

BackgroundWork::~BackgroundWork()
{
    cancel();
    m_thread.waitForDone();
}

void BackgroundWork::start(Work work)
{
    if (!m_running)
        return run(std::move(work));
    m_running->isCancelled = true;
    m_waiting = std::move(work);
}

void BackgroundWork::cancel()
{
    m_waiting = nullptr;
    if (m_running)
        m_running->isCancelled = true;
}

void BackgroundWork::run(Work work)
{
    auto job = std::make_shared<Job>();
    job->work = std::move(work);
    const bool wasBusy = std::exchange(m_running, job) != nullptr;
    m_thread.start([this, job] {
        job->run();
        QMetaObject::invokeMethod(
            this, [this, job] { deliver(job); }, Qt::QueuedConnection);
    });
    if (!wasBusy)
        emit busyChanged(true);
}

void BackgroundWork::deliver(const std::shared_ptr<Job>& job)
{
    if (m_waiting)
        return run(std::exchange(m_waiting, nullptr)); // the place of this one is taken
    m_running.reset();
    if (!job->isCancelled && job->isOutOfMemory)
        emit failed({"work.memory", "the memory ran out", {}, "close other programs, or choose less at once"});
    else if (!job->isCancelled && job->finish)
        job->finish();
    if (!m_running)
        emit busyChanged(false);
}

} // namespace memscape
