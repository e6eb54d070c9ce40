// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/claims/claims_judge.h"

#include "core/device/device.h"

#include <algorithm>

namespace memscape {

namespace {

Result<ClaimsResult> resultFor(const Device& device, const ClaimProgress& progress)
{
    auto made = std::make_shared<ClaimsOfDevice>();
    made->device = device;
    MEMSCAPE_SET(made->table, sharedClaimTable());
    MEMSCAPE_TRY(questions, readQuestions(questionsFile()));
    made->questions = std::make_shared<const std::vector<DeepQuestion>>(std::move(questions));
    std::vector<const ClaimEntry*> entries;
    for (const ClaimEntry& entry : *made->table)
        entries.push_back(&entry);
    std::vector<const DeepQuestion*> asked;
    for (const DeepQuestion& question : *made->questions)
        asked.push_back(&question);
    MEMSCAPE_SET(made->claims, judgeClaims(entries, device, progress));
    MEMSCAPE_SET(made->answers, answerQuestions(asked, device));
    return ClaimsResult(std::move(made));
}

} // namespace

const JudgedClaim* ClaimsOfDevice::claim(const std::string& id) const
{
    const auto found = std::ranges::find_if(claims, [&](const JudgedClaim& one) { return one.entry->id == id; });
    return found == claims.end() ? nullptr : &*found;
}

const AnsweredQuestion* ClaimsOfDevice::answer(const std::string& id) const
{
    const auto found =
        std::ranges::find_if(answers, [&](const AnsweredQuestion& one) { return one.question->id == id; });
    return found == answers.end() ? nullptr : &*found;
}

ClaimsJudge::ClaimsJudge(QObject* parent)
    : QObject(parent)
{
    connect(&m_work, &BackgroundWork::failed, this, &ClaimsJudge::failed);
}

void ClaimsJudge::judge(const Device& device)
{
    const std::string key = jsonLine(deviceToJson(device));
    if (const auto known = m_known.find(key); known != m_known.end()) {
        m_work.cancel();
        m_asked.clear();
        emit judged(known->second);
        return;
    }
    if (m_work.isBusy() && key == m_asked)
        return;
    m_asked = key;
    const auto tell = [this, key](std::size_t done, std::size_t all) {
        const auto onWindowsThread = [this, key, done, all] {
            if (m_work.isBusy() && key == m_asked)
                emit progress(int(done), int(all));
        };
        QMetaObject::invokeMethod(this, onWindowsThread, Qt::QueuedConnection);
    };
    m_work.start([this, key, device, tell]() -> BackgroundWork::Finish {
        auto result = resultFor(device, tell);
        return [this, key, result = std::move(result)] {
            if (!result) {
                emit failed(result.error());
                return;
            }
            m_known[key] = *result;
            emit judged(*result);
        };
    });
}

void ClaimsJudge::stop()
{
    if (!m_work.isBusy())
        return;
    m_work.cancel();
    m_asked.clear();
    emit stopped();
}

} // namespace memscape
