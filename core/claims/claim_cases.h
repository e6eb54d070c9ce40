// SPDX-License-Identifier: Apache-2.0
// The cases of claims and questions asked of their experiments, and what a name in a sentence stands for then: a figure
// of a case, a value of its prediction's detail, a parameter, a part of its device.
#pragma once

#include "core/claims/claim_table.h"

#include <functional>
#include <map>

namespace memscape {

/// Bytes as the notes write them.
inline const FillStyle claimStyle{ByteStyle::Decimal};

/// How many predictions of all are there; from any thread, not in order.
using ClaimProgress = std::function<void(std::size_t done, std::size_t all)>;

/// What is asked of an experiment, and its answer.
struct CaseQuestion
{
    const Experiment* experiment = nullptr;
    const Device* device = nullptr;
    const Parameters* parameters = nullptr;
    bool wantsDetail = false, wantsJudgement = false;

    Result<Prediction> answer = fail(Error{"claims.unasked", "not asked"});
    std::vector<Claim> judgements = {};
};

struct AskedCase
{
    const ClaimCase* given = nullptr;
    const Device* device = nullptr;
    CaseQuestion* question = nullptr;
};

/// Devices that cases name, and the questions: the same one is asked once. Cases and `asked` must outlive it.
class CaseAsking
{
public:
    explicit CaseAsking(const Device& asked)
        : m_asked(asked)
    { }

    /// `standIn`: the device of a case that names none; empty: the one that is asked. Errors: device.* of an id.
    Result<AskedCase> add(const Experiment& experiment, const ClaimCase& one, const std::string& standIn = {});
    /// All questions, on all cores. Errors: run.cancelled.
    Result<void> askAll(const ClaimProgress& progress = {});

private:
    const Device& m_asked;
    std::map<std::string, Device> m_devices;
    std::map<std::string, CaseQuestion> m_questions;
};

/// "one.peak", or "peak" of the first case. The cases must outlive it. Errors: claims.figure, claims.device.
ExpressionScope scopeOf(const std::vector<AskedCase>& cases);

/// A claim about the kind of device that this one is not.
bool isElsewhere(const std::string& on, const Device& device);
/// Of the kind that is meant, so that numbers are said of some device all the same: an H200, an EPYC 9654.
const char* standInFor(const std::string& on);

/// The first of these names whose number is not known; empty where all are.
Result<std::string> unknownName(const std::vector<std::string>& names, const ExpressionScope& scope);
/// "device.L3.capacity" as a person says it: "the capacity of L3" without its article.
std::string nameInWords(std::string name);

} // namespace memscape
