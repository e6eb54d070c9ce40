// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/table_claims.h"

#include "core/claims/claim_verdicts.h"

#include <algorithm>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr int rest = 150; ///< ms without a change

bool isShown(const ClaimEntry& entry, const Experiment& experiment, const Device& device, const Parameters& parameters)
{
    const bool judgesItself = !entry.judge.empty() && entry.judge == entry.id;
    if (entry.experiment != &experiment || judgesItself || isElsewhere(entry.on, device))
        return false;
    return std::ranges::any_of(entry.cases, [&](const ClaimCase& one) {
        return (one.device.empty() || one.device == device.id) && one.parameters == parameters;
    });
}

/// A table that cannot be read is said on the page Claims; here it has no entries.
std::vector<Claim> shownClaims(const Experiment& experiment, const Device& device, const Parameters& parameters)
{
    std::vector<Claim> claims;
    const auto table = sharedClaimTable();
    if (!table)
        return claims;
    std::vector<const ClaimEntry*> shown;
    for (const ClaimEntry& entry : **table) {
        if (isShown(entry, experiment, device, parameters))
            shown.push_back(&entry);
    }
    const auto judged = judgeClaims(shown, device);
    if (!judged)
        return claims;
    for (const JudgedClaim& claim : *judged) {
        const ClaimEntry& entry = *claim.entry;
        claims.push_back({entry.quote, fmt::format("course notes, {}, line {}", entry.title, entry.line), claim.verdict,
                          claim.ours, entry.id});
    }
    return claims;
}

} // namespace

TableClaims::TableClaims(const Experiment& experiment, QObject* parent)
    : QObject(parent)
    , m_experiment(experiment)
{
    m_rest.setSingleShot(true);
    m_rest.setInterval(rest);
    connect(&m_rest, &QTimer::timeout, this, &TableClaims::start);
}

void TableClaims::request(const Device& device, const Parameters& parameters)
{
    if (m_device.id != device.id || m_parameters != parameters)
        m_claims.clear();
    m_work.cancel();
    m_device = device;
    m_parameters = parameters;
    m_rest.start();
}

void TableClaims::start()
{
    m_work.start(
        [this, &experiment = m_experiment, device = m_device, parameters = m_parameters]() -> BackgroundWork::Finish {
            return [this, claims = shownClaims(experiment, device, parameters)] {
                const bool isEmpty = m_claims.empty() && claims.empty();
                m_claims = claims;
                if (!isEmpty)
                    emit found();
            };
        });
}

std::vector<Claim> TableClaims::beside(std::vector<Claim> own, bool isMeasured) const
{
    for (const Claim& claim : m_claims) {
        const auto same = std::ranges::find(own, claim.id, &Claim::id);
        if (same == own.end())
            own.push_back(claim);
        else if (!isMeasured)
            *same = claim;
    }
    return own;
}

} // namespace memscape
