// SPDX-License-Identifier: GPL-3.0-or-later
// Judges the table of claims and answers the deep questions for a device, beside the window's thread. What was judged
// is kept by device (its whole description: a calibration makes another one of it); the newest question wins.
#pragma once

#include "app/pages/background_work.h"
#include "core/claims/claim_verdicts.h"
#include "core/claims/question_answers.h"

#include <map>
#include <memory>
#include <string>

namespace memscape {

/// All claims and questions with the numbers of one device.
struct ClaimsOfDevice
{
    Device device;
    std::shared_ptr<const std::vector<ClaimEntry>> table;
    std::shared_ptr<const std::vector<DeepQuestion>> questions;
    std::vector<JudgedClaim> claims;       ///< in the order of the table
    std::vector<AnsweredQuestion> answers; ///< in the order of the questions

    const JudgedClaim* claim(const std::string& id) const; ///< null when there is none
    const AnsweredQuestion* answer(const std::string& id) const;
};

using ClaimsResult = std::shared_ptr<const ClaimsOfDevice>;

class ClaimsJudge : public QObject
{
    Q_OBJECT

public:
    explicit ClaimsJudge(QObject* parent = nullptr);

    /// judged() follows, at once where the device was judged before; or failed().
    void judge(const Device& device);
    /// Ends what runs; stopped() is emitted when something did.
    void stop();
    bool isBusy() const { return m_work.isBusy(); }

signals:
    void progress(int done, int all); ///< predictions
    void judged(const memscape::ClaimsResult& result);
    void failed(const memscape::Error& error); ///< of the table, or the memory ran out
    void stopped();

private:
    std::map<std::string, ClaimsResult> m_known; ///< by the device's description
    std::string m_asked;                         ///< that runs
    BackgroundWork m_work;                       ///< last: it ends before what it writes to goes
};

} // namespace memscape
