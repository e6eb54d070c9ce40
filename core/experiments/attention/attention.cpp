// SPDX-License-Identifier: Apache-2.0
// attention: standard or flash?
//
// Both compute softmax(Q Kᵀ / √d) V. Standard attention writes the queries × keys matrix to memory
// and reads it again; flash attention takes it tile by tile and keeps a maximum and a sum per row.
// Bytes of arrays are those that the programs of kernels/ really take
// (core/timing/attention_memory.h), bytes moved and time are counted per pass
// (core/timing/attention_time.h). Left out: dropout, other masks, the speed of Hopper's own
// kernels.
#include "core/experiments/attention/attention.h"

#include "core/device/recorded_kernels.h"
#include "core/experiments/common/answers.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace memscape {

namespace {

Result<AttentionAnswer> answerOf(const Device& device, const AttentionPlan& plan)
{
    MEMSCAPE_TRY(memory,
                 attentionMemory(plan.version, plan.problem.shape, plan.problem.dtype, plan.problem.pass,
                                 std::max(device.units, 1)));
    MEMSCAPE_TRY(cost, attentionCost(device, plan.version, plan.problem));
    return AttentionAnswer{plan.problem, plan.version, memory, std::move(cost)};
}

/// Errors: attention.*, predict.device.
Result<AttentionAnswers> answerAttention(const Device& device, const Parameters& parameters)
{
    MEMSCAPE_TRY(plans, attentionPlans(device, parameters));
    AttentionAnswers answers;
    answers.shape = plans.front().problem.shape;
    answers.dtype = plans.front().problem.dtype;
    answers.pass = plans.front().problem.pass;
    for (const AttentionPlan& plan : plans) {
        MEMSCAPE_TRY(answer, answerOf(device, plan));
        (plan.problem.kind == AttentionKind::Standard ? answers.standard : answers.flash) = std::move(answer);
    }
    return answers;
}

class Attention final : public Experiment
{
public:
    std::string id() const override { return "attention"; }
    std::string title() const override { return "Attention"; }
    std::string question() const override
    {
        return "Why does standard attention write a matrix that flash attention never does?";
    }
    std::string group() const override { return "kernels"; }
    std::string help() const override
    {
        return "Standard attention and FlashAttention: the same results, different memory use. Extra memory is what a "
               "program allocates besides inputs and outputs, to the byte; what is saved for the backward is counted "
               "apart; memory traffic is counted pass by pass; time comes from the device's rates and from published "
               "or measured rates of such kernels. Left out: dropout, masks other "
               "than causal, sequences of different length, and the speed of kernels made for Hopper "
               "alone, of which version 8 is one.";
    }
    bool isMeasuredInPytorch() const override { return true; }
    const Schema& schema() const override { return m_schema; }
    std::vector<std::string> headlines() const override
    {
        return {"standard_time", "flash_time", "standard_extra_peak", "flash_extra_peak"};
    }
    ShortAnswer shortAnswer(const Device&, const Parameters&, const Figures& figures) const override
    {
        return attentionAnswer(figures);
    }
    std::vector<SeriesSpec> series() const override
    {
        return {{"standard_time", "standard"},
                {"flash_time", "flash"},
                {"standard_extra_peak", "standard"},
                {"flash_extra_peak", "flash"},
                {"standard_saved_for_backward", "standard, saved"},
                {"flash_saved_for_backward", "flash, saved"},
                {"sqrt_sparse_saved", "sparse, n √n"},
                {"log_sparse_saved", "sparse, n log₂ n"},
                {"linear_saved", "linear, n"}};
    }
    Sweep axis(const Device& device, const Parameters& parameters) const override;
    Result<Figures> predictPoint(const Device& device, const Parameters& parameters) const override
    {
        MEMSCAPE_TRY(answers, answerAttention(device, parameters));
        return attentionFigures(device, answers);
    }
    Json predictDetail(const Device& device, const Parameters& parameters) const override
    {
        const auto answers = answerAttention(device, own(parameters));
        return answers ? attentionDetail(device, *answers) : Json::object();
    }
    std::vector<Claim> claims(const Device& device, const Parameters& parameters,
                              const Measurement& measured) const override
    {
        const auto answers = answerAttention(device, own(parameters));
        return answers ? attentionClaims(device, *answers, measured) : std::vector<Claim>();
    }

private:
    /// Without a sweep: of its first point.
    static Parameters own(Parameters parameters)
    {
        parameters.setSweep({});
        return parameters;
    }

    Schema m_schema = attentionSchema();
};

/// A GPU's curve is that of the papers, 512 to 16k; a host's ends where a measurement stays short.
Sweep Attention::axis(const Device& device, const Parameters& parameters) const
{
    Sweep sweep{"sequence", {}};
    const double own = parameters.number("sequence");
    const double first = device.isGpu() ? 512 : 128;
    const double last = std::max(device.isGpu() ? 16384.0 : 2048.0, own);
    for (double sequence = first; sequence <= last; sequence *= 2)
        sweep.values.emplace_back(sequence);
    return sweep;
}

/// The version of flash attention that a device names as its fastest in this pass; the forward's where it
/// names none for another pass.
int fastestRecorded(const Device& device, AttentionPass pass)
{
    const int own = recordedVersion(device, fmt::format("attention.{}", attentionPassText(pass)));
    return own != 0 ? own : recordedVersion(device, "attention.forward");
}

} // namespace

double attentionCapability(const Device& device)
{
    double value = 0;
    const std::string& text = device.computeCapability;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

Result<AttentionShape> attentionShape(const Parameters& parameters)
{
    AttentionShape shape;
    shape.batch = parameters.integer("batch");
    shape.heads = parameters.integer("heads");
    shape.kvHeads = parameters.integer("kv_heads");
    if (shape.kvHeads == 0)
        shape.kvHeads = shape.heads;
    shape.queries = shape.keys = parameters.integer("sequence");
    shape.headDim = parameters.integer("head_dim");
    shape.causal = parameters.flag("causal");
    MEMSCAPE_CHECK(checkShape(shape));
    return shape;
}

Result<std::vector<AttentionPlan>> attentionPlans(const Device& device, const Parameters& parameters)
{
    MEMSCAPE_TRY(shape, attentionShape(parameters));
    const std::string& implementation = parameters.choice("implementation");
    const int version = int(parameters.integer("version"));
    std::vector<AttentionPlan> plans;
    for (const AttentionKind kind : {AttentionKind::Standard, AttentionKind::Flash}) {
        if (implementation != "both" && implementation != attentionKindText(kind))
            continue;
        const AttentionProblem problem{shape, attentionDType(parameters), kind, attentionPass(parameters)};
        const bool isMeant = kind == AttentionKind::Flash || implementation == "standard";
        MEMSCAPE_TRY(found,
                     attentionVersion(isMeant ? version : 0, problem, device.isGpu(), attentionCapability(device),
                                      kind == AttentionKind::Flash ? fastestRecorded(device, problem.pass) : 0));
        plans.push_back({problem, std::move(found)});
    }
    return plans;
}

std::int64_t attentionCrossover(const Device& device, const AttentionAnswers& answers)
{
    if (!answers.standard || !answers.flash)
        return 0;
    std::int64_t found = 0;
    for (std::int64_t sequence = 1 << 17; sequence >= 16; sequence /= 2) {
        double seconds[2] = {};
        int i = 0;
        for (const AttentionAnswer* answer : {&*answers.standard, &*answers.flash}) {
            AttentionProblem problem = answer->problem;
            problem.shape.queries = problem.shape.keys = sequence;
            const auto cost = attentionCost(device, answer->version, problem);
            if (!cost)
                return found;
            seconds[i++] = cost->seconds;
        }
        if (seconds[1] >= seconds[0])
            return found;
        found = sequence;
    }
    return found;
}

const Experiment& attentionExperiment()
{
    static const Attention experiment;
    return experiment;
}

} // namespace memscape
