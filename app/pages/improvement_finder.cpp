// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/improvement_finder.h"

#include "core/base/cancellation.h"
#include "core/experiment/experiment.h"

#include <exception>

namespace memscape {

struct ImprovementFinder::Question
{
    Device device;
    Parameters parameters;
    Figures predicted;
    ByteStyle bytes = ByteStyle::Binary;
};

ImprovementFinder::ImprovementFinder(const Experiment& experiment, QObject* parent)
    : QObject(parent)
    , m_experiment(experiment)
{
    m_thread.setMaxThreadCount(1);
    m_wait.setSingleShot(true);
    m_wait.setInterval(200);
    connect(&m_wait, &QTimer::timeout, this, &ImprovementFinder::start);
}

ImprovementFinder::~ImprovementFinder()
{
    clear();
    m_thread.waitForDone();
}

void ImprovementFinder::clear()
{
    forgetQuestion();
    m_improvements.clear();
}

void ImprovementFinder::forgetQuestion()
{
    m_wait.stop();
    if (m_stop)
        *m_stop = true;
    m_stop.reset();
    m_question.reset();
}

void ImprovementFinder::request(const Device& device, const Parameters& parameters, const Figures& predicted,
                                ByteStyle bytes)
{
    if (m_question && m_question->device.id == device.id && m_question->parameters == parameters
        && m_question->bytes == bytes)
        return;
    forgetQuestion();
    m_question = std::make_shared<const Question>(Question{device, parameters, predicted, bytes});
    m_wait.start();
}

void ImprovementFinder::start()
{
    m_stop = std::make_shared<std::atomic<bool>>(false);
    m_thread.start([this, question = m_question, stop = m_stop] {
        const CancelScope scope(*stop);
        std::vector<Improvement> best;
        try { // as for predictions: want of memory must not end the window
            best = memscape::improvements(m_experiment, question->device, question->parameters, question->predicted,
                                          question->bytes);
        } catch (const std::exception&) {
            best.clear();
        }
        QMetaObject::invokeMethod(
            this,
            [this, stop, best = std::move(best)]() mutable {
                if (*stop)
                    return; // another question is being asked
                m_stop.reset();
                m_improvements = std::move(best);
                emit found();
            },
            Qt::QueuedConnection);
    });
}

} // namespace memscape
