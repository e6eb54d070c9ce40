// SPDX-License-Identifier: Apache-2.0
// Where a measured run comes from: what the machine says of itself, when and how it was measured, how far the numbers
// can be trusted and the samples that they were made of. Every backend fills this one struct, and it becomes JSON in
// one place, so that records of all machines read alike.
#pragma once

#include "core/base/json.h"
#include "kernels/measure/quality.h"

#include <optional>
#include <string>

namespace memscape {

struct Provenance
{
    /// What only this machine says: backend, driver, versions, clocks, libraries; a recorded run's whole provenance.
    /// An object.
    Json machine = Json::object();
    std::string time;             ///< the end of the run, as utcNow() writes it; empty when unknown
    std::optional<bool> isForced; ///< also what was predicted not to fit was tried
    std::optional<int> passes;    ///< over all points
    std::optional<double> budget; ///< s, after which no later pass began
    std::optional<Quality> quality;
    Json method;  ///< kernels and their checks, caches, threads: an object, or null
    Json samples; ///< those that are kept, keptSamples(): an array, or null
};

/// {…machine, "time", "forced", "passes", "budget_s", "grade", "reason", "method", "samples", "complete"}; a member
/// that is not known is left out.
Json provenanceToJson(const Provenance& provenance, bool isComplete);

} // namespace memscape
