// SPDX-License-Identifier: Apache-2.0
// Claims judged: each case of each entry is predicted (the same question once, on all cores), our number and the
// verdict are formed from the answers. What a device lacks or an experiment refuses is a verdict, "cannot be tested
// here: …"; a figure that an experiment does not have is an error of the table.
#pragma once

#include "core/claims/claim_cases.h"

namespace memscape {

struct JudgedClaim
{
    const ClaimEntry* entry = nullptr; ///< of the table that was judged
    std::string ours, verdict, right;
    std::vector<std::string> devices; ///< id of each case's device
};

enum class ClaimVerdict { Holds, HoldsWhen, Fails, Untested };

/// Of the words of a verdict: "holds", "holds when …", "does not hold …", anything else.
ClaimVerdict verdictKind(std::string_view verdict);

/// In the order of `entries`. `asked` is the device of every case that names none; a claim about the other kind of
/// device is not tested, and what is right is said of a device of that kind (an H200, an EPYC 9654). Errors:
/// claims.figure, claims.device, expression.*, device.* of a case's own, each with source and id as place;
/// run.cancelled.
Result<std::vector<JudgedClaim>> judgeClaims(const std::vector<const ClaimEntry*>& entries, const Device& asked,
                                             const ClaimProgress& progress = {});

/// {"id", "source", "title", "place", "line", "quote", "topic", "ours", "verdict", "right", "experiment", "parameters",
/// "device", "cases"}: parameters and device are those of the first case (assignments as text).
Json judgedJson(const JudgedClaim& claim);

} // namespace memscape
