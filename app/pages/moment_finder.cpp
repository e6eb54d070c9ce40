// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/moment_finder.h"

#include "core/experiments/memory/memory_detail.h"
#include "core/experiments/training-memory/training_memory.h"

#include <algorithm>
#include <exception>
#include <utility>

namespace memscape {

struct MomentFinder::Question
{
    Device device;
    Parameters parameters;
    std::size_t event = 0;
};

struct MomentFinder::Cache
{
    std::string device;
    Parameters parameters;
    std::optional<TrainingAnswer> answer;
    std::shared_ptr<const StepBlocks> step;
};

struct MomentFinder::Answer
{
    MemoryMoment moment;
    std::shared_ptr<const StepBlocks> step;
};

namespace {

/// The state after that event.
Moment momentAt(const Trace& trace, std::size_t event)
{
    Moment moment;
    moment.event = std::min(event, trace.events().size() - 1);
    for (const BlockId block : liveAt(trace, moment.event)) {
        const Event& made = trace.allocation(block);
        moment.bytes += made.bytes;
        moment.categories[std::size_t(made.category)] += made.bytes;
    }
    moment.phase = trace.events()[moment.event].phase;
    moment.microBatch = trace.events()[moment.event].microBatch;
    return moment;
}

} // namespace

MomentFinder::MomentFinder(QObject* parent)
    : QObject(parent)
    , m_cache(std::make_shared<Cache>())
{
    m_thread.setMaxThreadCount(1);
    m_thread.setExpiryTimeout(-1);
}

MomentFinder::~MomentFinder()
{
    m_thread.waitForDone();
}

void MomentFinder::request(const Device& device, const Parameters& parameters, std::size_t event)
{
    auto question = std::make_shared<const Question>(Question{device, parameters, event});
    if (m_running)
        m_waiting = std::move(question);
    else
        start(std::move(question));
}

void MomentFinder::start(std::shared_ptr<const Question> question)
{
    m_running = true;
    m_thread.start([this, question, cache = m_cache] {
        std::shared_ptr<Answer> answer;
        try { // as for predictions: want of memory must not end the window
            if (!cache->answer || cache->device != question->device.id
                || !(cache->parameters == question->parameters)) {
                cache->answer.reset();
                if (auto simulated = answerTraining(question->device, question->parameters)) {
                    cache->device = question->device.id;
                    cache->parameters = question->parameters;
                    cache->answer = std::move(*simulated);
                    cache->step = std::make_shared<const StepBlocks>(stepBlocks(cache->answer->simulation.trace));
                }
            }
            if (cache->answer && !cache->answer->simulation.trace.events().empty()) {
                const Trace& trace = cache->answer->simulation.trace;
                const Moment moment = momentAt(trace, question->event);
                answer = std::make_shared<Answer>(Answer{readMoment(momentJson(trace, moment)), cache->step});
            }
        } catch (const std::exception&) {
            cache->answer.reset();
        }
        QMetaObject::invokeMethod(
            this,
            [this, answer] {
                m_running = false;
                if (m_waiting)
                    start(std::exchange(m_waiting, nullptr));
                if (answer)
                    emit found(answer->moment, answer->step);
            },
            Qt::QueuedConnection);
    });
}

} // namespace memscape
