// SPDX-License-Identifier: GPL-3.0-or-later
// The tensors alive at a moment of a training step, and all of its blocks. The step is simulated once for its
// parameters and kept; looking into it runs on a thread of its own and the newest question wins, so that a dragged
// cursor never blocks the window.
#pragma once

#include "app/pictures/training-memory/memory_state.h"
#include "app/pictures/training-memory/step_blocks.h"
#include "core/device/device.h"
#include "core/experiment/parameter.h"

#include <QObject>
#include <QThreadPool>

#include <memory>
#include <optional>

namespace memscape {

class MomentFinder : public QObject
{
    Q_OBJECT

public:
    explicit MomentFinder(QObject* parent = nullptr);
    ~MomentFinder() override;

    /// found() follows, unless a newer question takes its place or the step cannot be simulated.
    void request(const Device& device, const Parameters& parameters, std::size_t event);
    bool isBusy() const { return m_running; }

signals:
    /// The same blocks again while it is the same step.
    void found(const memscape::MemoryMoment& moment, std::shared_ptr<const memscape::StepBlocks> step);

private:
    struct Question;
    struct Cache;
    struct Answer;
    void start(std::shared_ptr<const Question> question);

    QThreadPool m_thread;
    std::shared_ptr<Cache> m_cache; ///< touched by the thread alone
    std::shared_ptr<const Question> m_waiting;
    bool m_running = false;
};

} // namespace memscape
