// SPDX-License-Identifier: Apache-2.0
#include "core/timing/attention_problem.h"

#include "core/base/text.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

namespace memscape {

namespace {

Result<void> inRange(std::string_view place, std::int64_t value, std::int64_t most)
{
    if (value >= 1 && value <= most)
        return {};
    return fail("attention.range", fmt::format("{} is {}", place, value), fmt::format("choose 1 to {}", most),
                std::string(place));
}

/// The value of `all` nearest to `wanted`, the smaller of two as near.
std::int64_t nearestOf(const std::vector<std::int64_t>& all, std::int64_t wanted)
{
    return *std::min_element(all.begin(), all.end(), [&](std::int64_t a, std::int64_t b) {
        return std::abs(a - wanted) < std::abs(b - wanted);
    });
}

std::int64_t nearestDivisor(std::int64_t number, std::int64_t wanted)
{
    std::vector<std::int64_t> divisors;
    for (std::int64_t i = 1; i <= number; ++i) {
        if (number % i == 0)
            divisors.push_back(i);
    }
    return nearestOf(divisors, wanted);
}

std::string nameOf(const AttentionVersion& version)
{
    return fmt::format("{} v{} ({})", attentionKindText(version.kind), version.number, version.name);
}

/// "; v1 and v2 do" when other versions of the kind have no such limit.
template <typename Test> std::string othersThat(const AttentionVersion& version, bool gpu, const Test& test)
{
    std::vector<std::string> names;
    for (const AttentionVersion& other : attentionVersions(version.kind, gpu)) {
        if (other.number != version.number && test(other))
            names.push_back(fmt::format("version={}", other.number));
    }
    return names.empty() ? std::string() : ", or " + join(names, " or ");
}

bool takes(const AttentionVersion& version, DType dtype)
{
    return std::find(version.dtypes.begin(), version.dtypes.end(), dtype) != version.dtypes.end();
}

bool takes(const AttentionVersion& version, std::int64_t headDim)
{
    return version.headDims.empty() || std::binary_search(version.headDims.begin(), version.headDims.end(), headDim);
}

} // namespace

std::string_view attentionKindText(AttentionKind kind)
{
    return kind == AttentionKind::Standard ? "standard" : "flash";
}

std::string_view attentionPassText(AttentionPass pass)
{
    switch (pass) {
    case AttentionPass::Forward: return "forward";
    case AttentionPass::Backward: return "backward";
    case AttentionPass::Both: return "both";
    }
    return {};
}

double AttentionShape::visibleScores() const
{
    const double all = double(queryRows()) * double(keys);
    if (!causal)
        return all;
    // Query i sees i + 1 + keys − queries of the keys.
    return all - double(batch * heads) * double(queries) * double(queries - 1) / 2;
}

Result<void> checkShape(const AttentionShape& shape)
{
    MEMSCAPE_CHECK(inRange("batch", shape.batch, attentionBatchLimit));
    MEMSCAPE_CHECK(inRange("heads", shape.heads, attentionHeadLimit));
    MEMSCAPE_CHECK(inRange("kv_heads", shape.kvHeads, attentionHeadLimit));
    MEMSCAPE_CHECK(inRange("sequence", shape.queries, attentionSequenceLimit));
    MEMSCAPE_CHECK(inRange("sequence", shape.keys, attentionSequenceLimit));
    MEMSCAPE_CHECK(inRange("head_dim", shape.headDim, attentionHeadDimLimit));
    if (shape.heads % shape.kvHeads != 0)
        return fail("attention.heads",
                    fmt::format("{} query heads cannot share {} kv heads evenly", shape.heads, shape.kvHeads),
                    fmt::format("choose kv_heads={}", nearestDivisor(shape.heads, shape.kvHeads)), "kv_heads");
    if (shape.causal && shape.keys < shape.queries)
        return fail("attention.causal",
                    fmt::format("{} queries over {} keys: the first would see no key", shape.queries, shape.keys),
                    "choose at least as many keys as queries, or causal=false", "causal");
    return {};
}

double attentionFlops(const AttentionShape& shape, AttentionPass pass)
{
    const double forward = 4 * shape.visibleScores() * double(shape.headDim);
    switch (pass) {
    case AttentionPass::Forward: return forward;
    case AttentionPass::Backward: return 2.5 * forward;
    case AttentionPass::Both: return 3.5 * forward;
    }
    return 0;
}

namespace {

AttentionTileRule ruleOf(const std::vector<AttentionTileRule>& tiles, std::int64_t headDim)
{
    const auto found = std::find_if(tiles.begin(), tiles.end(),
                                    [&](const AttentionTileRule& rule) { return headDim <= rule.headDim; });
    return found == tiles.end() ? AttentionTileRule() : *found;
}

} // namespace

AttentionTile AttentionVersion::tile(std::int64_t headDim, AttentionPass pass) const
{
    const AttentionTileRule rule = ruleOf(tiles, headDim);
    return pass == AttentionPass::Forward ? rule.forward : rule.backward;
}

double AttentionVersion::backwardClocks(std::int64_t headDim) const
{
    const AttentionTileRule rule = ruleOf(tiles, headDim);
    return rule.headDim == headDim ? rule.backwardClocks : 0;
}

bool AttentionVersion::runsOn(double capability) const
{
    if (capability <= 0)
        return true;
    return onlyThatCapability ? capability == computeCapability : capability >= computeCapability;
}

Result<void> supports(const AttentionVersion& version, const AttentionProblem& problem, bool gpu,
                      double computeCapability)
{
    const std::int64_t headDim = problem.shape.headDim;
    if (!takes(version, headDim))
        return fail("attention.unsupported", fmt::format("{} has no head dimension {}", nameOf(version), headDim),
                    fmt::format("choose head_dim={}{}", nearestOf(version.headDims, headDim),
                                othersThat(version, gpu, [&](const auto& other) { return takes(other, headDim); })),
                    "head_dim");
    if (!takes(version, problem.dtype)) {
        std::vector<std::string> names;
        for (const DType dtype : version.dtypes)
            names.emplace_back(dtypeText(dtype));
        return fail(
            "attention.unsupported",
            fmt::format("{} does not compute in {}", nameOf(version), dtypeText(problem.dtype)),
            fmt::format("choose dtype={}{}", join(names, " or dtype="),
                        othersThat(version, gpu, [&](const auto& other) { return takes(other, problem.dtype); })),
            "dtype");
    }
    if (!version.hasBackward && problem.pass != AttentionPass::Forward)
        return fail("attention.unsupported", fmt::format("{} has no backward", nameOf(version)),
                    "choose pass=forward"
                        + othersThat(version, gpu, [](const auto& other) { return other.hasBackward; }),
                    "pass");
    if (gpu && !version.runsOn(computeCapability))
        return fail("attention.unsupported",
                    fmt::format("{} needs compute capability {:.1f}{}, this GPU has {:.1f}", nameOf(version),
                                version.computeCapability, version.onlyThatCapability ? " and no other" : "",
                                computeCapability),
                    "choose an earlier version"
                        + othersThat(version, gpu, [&](const auto& other) { return other.runsOn(computeCapability); }),
                    "version");
    return {};
}

namespace {

/// Where no version answers: what could be asked instead, the pass alone, another format, or both.
std::optional<Error> nearestQuestion(const AttentionProblem& problem, bool gpu, double computeCapability)
{
    const auto& all = attentionVersions(problem.kind, gpu);
    const auto answers = [&](DType dtype, AttentionPass pass) {
        AttentionProblem other = problem;
        other.dtype = dtype;
        other.pass = pass;
        return std::any_of(all.begin(), all.end(), [&](const AttentionVersion& version) {
            return supports(version, other, gpu, computeCapability).has_value();
        });
    };
    Error error{
        "attention.unsupported",
        fmt::format("no version of {} attention does {} in {} on this {}", attentionKindText(problem.kind),
                    problem.pass == AttentionPass::Both ? "forward and backward" : attentionPassText(problem.pass),
                    dtypeText(problem.dtype), gpu ? "GPU" : "host")};
    for (const AttentionPass pass : {problem.pass, AttentionPass::Forward}) {
        for (const DType dtype : {problem.dtype, DType::Float16, DType::BFloat16, DType::Float32}) {
            if (!answers(dtype, pass))
                continue;
            std::vector<std::string> changes;
            if (dtype != problem.dtype)
                changes.push_back(fmt::format("dtype={}", dtypeText(dtype)));
            if (pass != problem.pass)
                changes.push_back("pass=forward");
            error.hint = "choose " + join(changes, " and ");
            error.place = dtype != problem.dtype ? "dtype" : "pass";
            return error;
        }
    }
    const auto oldest = std::min_element(
        all.begin(), all.end(), [](const auto& a, const auto& b) { return a.computeCapability < b.computeCapability; });
    if (!gpu || computeCapability <= 0 || computeCapability >= oldest->computeCapability)
        return std::nullopt; // it is not the format or the pass
    error.message = fmt::format("{} attention needs compute capability {}, this GPU has {}",
                                attentionKindText(problem.kind), oldest->computeCapability, computeCapability);
    error.hint = "choose a newer GPU";
    return error;
}

} // namespace

Result<AttentionVersion> attentionVersion(int number, const AttentionProblem& problem, bool gpu,
                                          double computeCapability, int recorded)
{
    const auto& all = attentionVersions(problem.kind, gpu);
    if (number != 0) {
        for (const AttentionVersion& version : all) {
            if (version.number != number)
                continue;
            MEMSCAPE_CHECK(supports(version, problem, gpu, computeCapability));
            return version;
        }
        return fail("attention.version",
                    fmt::format("there is no version {} of {} attention on {}", number, attentionKindText(problem.kind),
                                gpu ? "a GPU" : "a host"),
                    fmt::format("choose 1 to {}, or 0 for the best", all.size()), "version");
    }
    const auto solves = [&](const AttentionVersion& version) {
        return supports(version, problem, gpu, computeCapability).has_value();
    };
    for (const AttentionVersion& version : all) {
        if (version.number == recorded && solves(version))
            return version;
    }
    for (auto version = all.rbegin(); version != all.rend(); ++version) {
        if (!version->needsRecord && solves(*version))
            return *version;
    }
    if (auto error = nearestQuestion(problem, gpu, computeCapability))
        return fail(std::move(*error));
    const auto last =
        std::find_if(all.rbegin(), all.rend(), [](const AttentionVersion& version) { return !version.needsRecord; });
    MEMSCAPE_CHECK(supports(*last, problem, gpu, computeCapability)); // its reason
    return *last;
}

std::optional<AttentionVersion> olderAttentionVersion(const AttentionVersion& failed, const AttentionProblem& problem,
                                                      bool gpu, double computeCapability)
{
    const auto& all = attentionVersions(problem.kind, gpu);
    for (auto version = all.rbegin(); version != all.rend(); ++version) {
        if (version->number < failed.number && !version->needsRecord
            && supports(*version, problem, gpu, computeCapability))
            return *version;
    }
    return std::nullopt;
}

} // namespace memscape
