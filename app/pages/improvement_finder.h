// SPDX-License-Identifier: GPL-3.0-or-later
// Which parameter would change a page's answer most (core/experiment/answer.h), asked when nothing has
// moved for a moment, on a thread of its own: several predictions take longer than a frame may. The
// newest question wins; an older one is stopped.
#pragma once

#include "core/device/device.h"
#include "core/experiment/answer.h"

#include <QObject>
#include <QThreadPool>
#include <QTimer>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

namespace memscape {

class Experiment;

class ImprovementFinder : public QObject
{
    Q_OBJECT

public:
    explicit ImprovementFinder(const Experiment& experiment, QObject* parent = nullptr);
    ~ImprovementFinder() override;

    /// found() follows, unless a newer question or clear() comes before; not for the question of last time. What
    /// was found last stays until then.
    void request(const Device& device, const Parameters& parameters, const Figures& predicted, ByteStyle bytes);
    /// Forgets the answer, and what is under way.
    void clear();
    /// The device may have changed under its name: the next question is a new one.
    void forgetQuestion();
    const std::vector<Improvement>& improvements() const { return m_improvements; }
    bool isBusy() const { return m_wait.isActive() || m_stop != nullptr; }

signals:
    void found();

private:
    struct Question;
    void start();

    const Experiment& m_experiment;
    QThreadPool m_thread;
    QTimer m_wait;
    std::shared_ptr<const Question> m_question; ///< the newest
    std::shared_ptr<std::atomic<bool>> m_stop;  ///< of the one that runs; null while none does
    std::vector<Improvement> m_improvements;
};

} // namespace memscape
