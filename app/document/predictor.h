// SPDX-License-Identifier: GPL-3.0-or-later
// Newest-wins prediction. A request runs on one thread of its own; request() waits for it for a
// frame's fraction (most predictions take under two milliseconds), so a light prediction is
// answered before request() returns and a heavy one never blocks the window. While one runs, only
// the newest request waits; what came in between is dropped, and answers come in the order of their
// requests (the record says which parameters it is for), so that a long drag over a heavy
// prediction still moves. Until a signal arrives, the caller keeps showing the old result.
//
// What runs is stopped when it is not worth waiting for: a refinement as soon as anything else is
// asked, everything else when something newer has waited for it for a second. What a page draws
// from a record is prepared on the same thread, and old records are freed on another: reading and
// freeing a long timeline takes longer than a frame may.
#pragma once

#include "core/experiment/experiment.h"
#include "core/experiment/record.h"

#include <QObject>
#include <QThreadPool>
#include <QTimer>

#include <chrono>
#include <functional>
#include <memory>

namespace memscape {

/// What a page makes of a record to draw it: plain values.
struct Prepared
{
    virtual ~Prepared() = default;
};

class Predictor : public QObject
{
    Q_OBJECT
public:
    using Preparation = std::function<std::shared_ptr<const Prepared>(const Record&)>;
    enum class Kind {
        Answer,
        Refinement ///< of an answer that is there already
    };

    /// `patience`: how long request() may wait for the answer.
    explicit Predictor(QObject* parent = nullptr, std::chrono::milliseconds patience = std::chrono::milliseconds(4));
    ~Predictor() override;

    /// Runs beside every prediction from now on, on its thread: a pure function of the record.
    void setPreparation(Preparation preparation) { m_preparation = std::move(preparation); }

    /// Exactly one of predicted(), failed() and cancelled() follows, here or later, unless a newer
    /// request takes its place.
    void request(const std::string& experiment, const Device& device, const Parameters& parameters,
                 Kind kind = Kind::Answer);
    /// What is under way is not wanted any more: cancelled() follows, if anything was.
    void cancel();
    /// What the preparation made of the record that predicted() reports; null without one.
    const std::shared_ptr<const Prepared>& prepared() const { return m_prepared; }
    /// An answer is on its way: for a quiet "calculating…" after a while.
    bool isBusy() const { return m_running != nullptr; }

signals:
    /// Of a refinement that runs: a part of what it will answer (core/base/found.h).
    void found(const memscape::Json& part);
    void predicted(std::shared_ptr<const memscape::Record> record);
    void failed(const memscape::Error& error);
    void cancelled();
    void busyChanged(bool busy);

private:
    struct Job;
    void start(std::shared_ptr<Job> job);
    void deliver(const std::shared_ptr<Job>& job);
    void tell(const std::weak_ptr<Job>& job, const Json& part);
    void stopRunning();

    QThreadPool m_thread;
    PredictionContext m_context; ///< the thread's: what one answer leaves for the next
    std::chrono::milliseconds m_patience;
    Preparation m_preparation;
    std::shared_ptr<Job> m_running, m_waiting;
    std::shared_ptr<const Prepared> m_prepared;
    QTimer m_overdue; ///< what runs has been waited for long enough
    bool m_toldBusy = false;
};

} // namespace memscape

Q_DECLARE_METATYPE(std::shared_ptr<const memscape::Record>)
