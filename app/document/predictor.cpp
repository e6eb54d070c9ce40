// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/document/predictor.h"

#include <QSemaphore>

#include <exception>
#include <utility>

namespace memscape {

struct Predictor::Job
{
    std::string experiment;
    Device device;
    Parameters parameters;
    bool withClaims = false;
    std::optional<std::vector<Claim>> claims;
    Result<Record> result = fail("predict.pending", "not answered yet");
    QSemaphore ready;
    bool delivered = false; // both request() and the posted call may come to deliver it
};

namespace {

Result<Record> predictionOf(const std::string& id, const Device& device,
                            const Parameters& parameters)
{
    // A model throws only for our own bugs or for want of memory; neither may end the window.
    try {
        MEMSCAPE_TRY(experiment, findExperiment(id));
        return predictRecord(*experiment, device, parameters);
    } catch (const std::exception& problem) {
        return fail("predict.failed", std::string("the prediction stopped: ") + problem.what(),
                    "smaller parameters may work");
    }
}

std::vector<Claim> claimsOf(const std::string& id, const Device& device,
                            const Parameters& parameters)
{
    try {
        const auto experiment = findExperiment(id);
        return experiment ? (*experiment)->claims(device, parameters) : std::vector<Claim>();
    } catch (const std::exception&) {
        return {}; // the prediction itself was made: the page does without
    }
}

} // namespace

Predictor::Predictor(QObject* parent, std::chrono::milliseconds patience)
    : QObject(parent)
    , m_patience(patience)
{
    m_thread.setMaxThreadCount(1);
    m_thread.setExpiryTimeout(-1);
}

Predictor::~Predictor()
{
    m_thread.waitForDone();
}

void Predictor::request(const std::string& experiment, const Device& device,
                        const Parameters& parameters, bool withClaims)
{
    auto job = std::make_shared<Job>();
    job->experiment = experiment;
    job->device = device;
    job->parameters = parameters;
    job->withClaims = withClaims;
    if (m_running)
        m_waiting = std::move(job);
    else
        start(std::move(job));
}

void Predictor::start(std::shared_ptr<Job> job)
{
    m_running = job;
    m_thread.start([this, job] {
        job->result = predictionOf(job->experiment, job->device, job->parameters);
        if (job->withClaims && job->result)
            job->claims = claimsOf(job->experiment, job->device, job->parameters);
        job->ready.release();
        QMetaObject::invokeMethod(this, [this, job] { deliver(job); }, Qt::QueuedConnection);
    });
    if (job->ready.tryAcquire(1, static_cast<int>(m_patience.count()))) {
        deliver(job);
    } else if (!std::exchange(m_toldBusy, true)) {
        emit busyChanged(true);
    }
}

void Predictor::deliver(const std::shared_ptr<Job>& job)
{
    if (std::exchange(job->delivered, true))
        return;
    // m_running stays set meanwhile: a request from inside a slot waits its turn.
    m_claims = std::move(job->claims);
    if (job->result)
        emit predicted(std::make_shared<const Record>(std::move(*job->result)));
    else
        emit failed(job->result.error());
    m_running.reset();
    if (m_waiting)
        start(std::exchange(m_waiting, nullptr));
    else if (std::exchange(m_toldBusy, false))
        emit busyChanged(false);
}

} // namespace memscape
