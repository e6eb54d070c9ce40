// SPDX-License-Identifier: GPL-3.0-or-later
// Work beside the window's thread, newest wins: what is asked while something runs stops it and takes its place. The
// work runs under a CancelScope (core/base/cancellation.h), so that long computations of the engine end soon.
#pragma once

#include "core/base/result.h"

#include <QObject>
#include <QThreadPool>

#include <functional>
#include <memory>

namespace memscape {

class BackgroundWork : public QObject
{
    Q_OBJECT

public:
    /// Runs on the window's thread when the work is done, unless it was stopped.
    using Finish = std::function<void()>;
    /// Runs on a thread of its own.
    using Work = std::function<Finish()>;

    explicit BackgroundWork(QObject* parent = nullptr);
    /// Stops what runs and waits for its end.
    ~BackgroundWork() override;

    void start(Work work);
    void cancel();
    bool isBusy() const { return m_running != nullptr || m_waiting; }

signals:
    void busyChanged(bool busy);
    void failed(const memscape::Error& error); ///< the memory ran out

private:
    struct Job;
    void run(Work work);
    void deliver(const std::shared_ptr<Job>& job);

    QThreadPool m_thread;
    std::shared_ptr<Job> m_running;
    Work m_waiting;
};

} // namespace memscape
