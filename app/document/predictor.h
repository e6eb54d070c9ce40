// SPDX-License-Identifier: GPL-3.0-or-later
// Newest-wins prediction. A request runs on one thread of its own; request() waits for it for a
// frame's fraction (most predictions take under two milliseconds), so a light prediction is
// answered before request() returns and a heavy one never blocks the window. While one runs, only
// the newest request waits; what came in between is dropped, and answers come in the order of their
// requests (the record says which parameters it is for), so that a long drag over a heavy
// prediction still moves. Until a signal arrives, the caller keeps showing the old result.
#pragma once

#include "core/experiment/experiment.h"
#include "core/experiment/record.h"

#include <QObject>
#include <QThreadPool>

#include <chrono>
#include <memory>
#include <optional>

namespace memscape {

class Predictor : public QObject
{
    Q_OBJECT
public:
    /// `patience`: how long request() may wait for the answer.
    explicit Predictor(QObject* parent = nullptr,
                       std::chrono::milliseconds patience = std::chrono::milliseconds(4));
    ~Predictor() override;

    /// Exactly one of predicted() and failed() follows, here or later, unless a newer request takes
    /// its place in the queue.
    /// `withClaims`: what textbooks claim comes along; it may take as long as the prediction.
    void request(const std::string& experiment, const Device& device, const Parameters& parameters,
                 bool withClaims = false);
    /// Of the answer that predicted() tells of; nothing when they were not asked for.
    const std::optional<std::vector<Claim>>& claims() const { return m_claims; }
    /// An answer is on its way: for a quiet "calculating…" after a while.
    bool isBusy() const { return m_running != nullptr; }

signals:
    void predicted(std::shared_ptr<const memscape::Record> record);
    void failed(const memscape::Error& error);
    void busyChanged(bool busy);

private:
    struct Job;
    void start(std::shared_ptr<Job> job);
    void deliver(const std::shared_ptr<Job>& job);

    QThreadPool m_thread;
    std::chrono::milliseconds m_patience;
    std::shared_ptr<Job> m_running, m_waiting;
    std::optional<std::vector<Claim>> m_claims;
    bool m_toldBusy = false;
};

} // namespace memscape

Q_DECLARE_METATYPE(std::shared_ptr<const memscape::Record>)
