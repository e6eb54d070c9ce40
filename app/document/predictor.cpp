// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/document/predictor.h"

#include "core/base/cancellation.h"
#include "core/base/found.h"

#include <QSemaphore>

#include <atomic>
#include <exception>
#include <new>
#include <optional>
#include <utility>

namespace memscape {

struct Predictor::Job
{
    std::string experiment;
    Device device;
    Parameters parameters;
    Kind kind = Kind::Answer;
    Preparation preparation;
    FoundScope::Tell tell;
    Result<std::shared_ptr<const Record>> result = fail("predict.pending", "not computed yet");
    std::shared_ptr<const Prepared> prepared;
    std::atomic<bool> isCancelled = false;
    QSemaphore ready;
    bool delivered = false; // both request() and the posted call may come to deliver it

    void run(PredictionContext& context);
};

namespace {

constexpr int supersededTime = 1000; ///< ms that something newer waits before what runs is stopped

/// Freed beside the window's thread: a timeline of a hundred thousand values takes its time.
template <typename Value> std::shared_ptr<const Value> freedElsewhere(std::shared_ptr<const Value> value)
{
    const Value* raw = value.get();
    return {raw, [kept = std::move(value)](const Value*) mutable {
                QThreadPool::globalInstance()->start([last = std::move(kept)]() mutable { last.reset(); });
            }};
}

Result<Record> predictionOf(const std::string& id, const Device& device, const Parameters& parameters,
                            PredictionContext& context)
{
    MEMSCAPE_TRY(experiment, findExperiment(id));
    return predictRecord(*experiment, device, parameters, context);
}

} // namespace

void Predictor::Job::run(PredictionContext& context)
{
    const CancelScope scope(isCancelled);
    std::optional<FoundScope> telling;
    if (kind == Kind::Refinement)
        telling.emplace(tell);
    // A model throws only for our own bugs or for want of memory; neither may end the window.
    try {
        auto record = predictionOf(experiment, device, parameters, context);
        if (!record) {
            result = tl::unexpected(record.error());
            return;
        }
        result = freedElsewhere(std::make_shared<const Record>(std::move(*record)));
        if (preparation && !isCancelled)
            prepared = freedElsewhere(preparation(**result));
    } catch (const std::bad_alloc&) {
        result = fail("predict.failed", "the prediction stopped: the memory ran out", "smaller parameters may work");
    } catch (const std::exception&) {
        result = fail("predict.failed", "the prediction stopped at an internal error", "smaller parameters may work");
    }
}

Predictor::Predictor(QObject* parent, std::chrono::milliseconds patience)
    : QObject(parent)
    , m_patience(patience)
{
    m_thread.setMaxThreadCount(1);
    m_thread.setExpiryTimeout(-1);
    m_overdue.setSingleShot(true);
    m_overdue.setInterval(supersededTime);
    connect(&m_overdue, &QTimer::timeout, this, &Predictor::stopRunning);
}

Predictor::~Predictor()
{
    stopRunning();
    m_thread.waitForDone();
}

void Predictor::request(const std::string& experiment, const Device& device, const Parameters& parameters, Kind kind)
{
    auto job = std::make_shared<Job>();
    job->experiment = experiment;
    job->device = device;
    job->parameters = parameters;
    job->kind = kind;
    job->preparation = m_preparation;
    if (!m_running)
        return start(std::move(job));
    m_waiting = std::move(job);
    if (m_running->kind == Kind::Refinement)
        stopRunning();
    else if (!m_overdue.isActive())
        m_overdue.start();
}

void Predictor::cancel()
{
    m_waiting.reset();
    stopRunning();
}

void Predictor::stopRunning()
{
    if (m_running)
        m_running->isCancelled = true;
}

void Predictor::start(std::shared_ptr<Job> job)
{
    m_running = job;
    job->tell = [this, weak = std::weak_ptr(job)](const Json& part) {
        QMetaObject::invokeMethod(
            this, [this, weak, part] { tell(weak, part); }, Qt::QueuedConnection);
    };
    m_thread.start([this, job] {
        job->run(m_context);
        job->ready.release();
        QMetaObject::invokeMethod(
            this, [this, job] { deliver(job); }, Qt::QueuedConnection);
    });
    if (job->ready.tryAcquire(1, static_cast<int>(m_patience.count()))) {
        deliver(job);
    } else if (!std::exchange(m_toldBusy, true)) {
        emit busyChanged(true);
    }
}

void Predictor::tell(const std::weak_ptr<Job>& job, const Json& part)
{
    const std::shared_ptr<Job> running = job.lock();
    if (running && running == m_running && !running->delivered && !running->isCancelled)
        emit found(part);
}

void Predictor::deliver(const std::shared_ptr<Job>& job)
{
    if (std::exchange(job->delivered, true))
        return;
    m_overdue.stop();
    // m_running stays set meanwhile: a request from inside a slot waits its turn.
    if (job->isCancelled) {
        if (!m_waiting)
            emit cancelled();
    } else if (job->result) {
        m_prepared = std::move(job->prepared);
        emit predicted(std::move(*job->result));
    } else {
        emit failed(job->result.error());
    }
    m_running.reset();
    if (m_waiting)
        start(std::exchange(m_waiting, nullptr));
    else if (std::exchange(m_toldBusy, false))
        emit busyChanged(false);
}

} // namespace memscape
