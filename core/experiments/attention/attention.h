// SPDX-License-Identifier: Apache-2.0
// What `attention` answers beyond its figures: the problem of a set of parameters, and for each
// kind of attention its version, bytes and time, for the backends, the page and the claims.
#pragma once

#include "core/experiment/experiment.h"
#include "core/timing/attention_time.h"

#include <optional>

namespace memscape {

/// One kind of attention at a point.
struct AttentionAnswer
{
    AttentionProblem problem;
    AttentionVersion version;
    AttentionMemory memory;
    AttentionCost cost;
};

struct AttentionAnswers
{
    AttentionShape shape;
    DType dtype = DType::BFloat16;
    AttentionPass pass = AttentionPass::Both;
    std::optional<AttentionAnswer> standard, flash; ///< those that `implementation` names

    const AttentionAnswer& any() const { return flash ? *flash : *standard; }
};

/// The shape of a set of parameters. Errors: those of checkShape().
Result<AttentionShape> attentionShape(const Parameters& parameters);
/// Of a GPU, 9.0 for an H200; 0 where it is not known.
double attentionCapability(const Device& device);
DType attentionDType(const Parameters& parameters);
AttentionPass attentionPass(const Parameters& parameters);

/// The problem and version of each kind that is asked for, on this device: what a backend runs.
/// `version` is that of the implementation named; with both, of flash. Errors: attention.*.
struct AttentionPlan
{
    AttentionProblem problem;
    AttentionVersion version;
};
Result<std::vector<AttentionPlan>> attentionPlans(const Device& device, const Parameters& parameters);

/// The parameters of `attention`.
Schema attentionSchema();

// The parts of the prediction, one file each.
Figures attentionFigures(const Device& device, const AttentionAnswers& answers);
Json attentionDetail(const Device& device, const AttentionAnswers& answers);
std::vector<Claim> attentionClaims(const Device& device, const AttentionAnswers& answers, const Measurement& measured);

/// The shortest power of two from which flash is faster than standard and stays so, by the model; 0
/// when it is not up to the limit. Other parameters as they are.
std::int64_t attentionCrossover(const Device& device, const AttentionAnswers& answers);

} // namespace memscape
