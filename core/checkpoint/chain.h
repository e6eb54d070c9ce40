// SPDX-License-Identifier: Apache-2.0
// A sequential chain of stages, as checkpointing sees a network.
//
//     x_0 ─stage 0─▶ x_1 ─stage 1─▶ … ─stage L-1─▶ x_L ─▶ loss
//     y_0 ◀─stage 0─ y_1 ◀─ …                       y_L ◀─ loss          y_i: the gradient of x_i
//
// x̄_{i+1} is everything that stage i saves for its backward, x_{i+1} included. The model is that
// of Beaumont, Eyraud-Dubois, Herrmann, Joly and Shilova (arXiv 1911.13214): the array names of
// their solver are given beside ours. A stage may have further ways to be saved (Zhao et al.,
// Rockmate: several options per block), e.g. only part of its tensors, with a backward that
// computes the rest again.
//
// Left out: parameters, their gradients and the optimizer's state (they are there all the time and
// move the budget, not the schedule); networks that are not a sequence.
#pragma once

#include "core/base/json.h"

#include <cstdint>
#include <string>
#include <vector>

namespace memscape {

/// A way to run a stage so that its backward can follow.
struct SaveOption
{
    std::string name = "all";
    double forward = 0;                ///< time of the stage's forward in this way
    double backward = 0;               ///< time of its backward
    std::int64_t saved = 0;            ///< x̄_{i+1}, x_{i+1} included
    std::int64_t forwardOverhead = 0;  ///< transient memory beside input and x̄_{i+1}
    std::int64_t backwardOverhead = 0; ///< transient memory beside y_{i+1}, x̄_{i+1}, x_i and y_i
    bool operator==(const SaveOption&) const = default;
};

struct Stage
{
    std::string name;
    double forward = 0;               ///< fw[i]: time when nothing is saved
    std::int64_t forwardOverhead = 0; ///< ftmp[i]: transient memory when nothing is saved
    /// At least one; the first saves everything (fw[i], bw[i], cbw[i+1], ftmp[i], btmp[i]).
    std::vector<SaveOption> options;
    bool operator==(const Stage&) const = default;
};

/// What the numbers of a chain are.
struct ChainUnits
{
    bool isBytes = true;   ///< memory in B; else abstract units, one slot each
    bool isSeconds = true; ///< time in s; else abstract units
    bool operator==(const ChainUnits&) const = default;
};

struct Chain
{
    std::string name;
    ChainUnits units;
    std::vector<Stage> stages;
    std::vector<std::int64_t> values; ///< cw[i], i = 0 … L: size of x_i and of y_i
    double lossTime = 0;              ///< bw[L]
    std::int64_t lossOverhead = 0;    ///< btmp[L]

    int length() const { return int(stages.size()); } ///< L
    /// Σ forward + Σ backward of the first options + the loss: what a step takes when all is kept.
    double timeWithoutRecomputation() const;
    bool operator==(const Chain&) const = default;
};

/// Longer chains are refused: nothing that is drawn or solved here would help them.
inline constexpr int chainLengthLimit = 100'000;
/// At most this many ways to save a stage.
inline constexpr std::size_t saveOptionLimit = 64;
/// No size or overhead above this (16 TiB), so that no sum over a chain passes 2^63: arithmetic
/// stays exact.
inline constexpr std::int64_t chainSizeLimit = std::int64_t(1) << 44;

/// Lengths agree, at least one stage, an option each, nothing negative or not finite, saved ≥
/// value. Errors: chain.length, chain.option, chain.range; the place is the array's element
/// ("saved[3]").
Result<void> checkChain(const Chain& chain);

/// L equal stages in abstract units. The reference's homogeneous chain: forward 1, backward 2, no
/// overheads.
Chain uniformChain(int length, std::int64_t value = 1, std::int64_t saved = 1, double forward = 1, double backward = 2);

/// A chain document (format "memscape-chain", version 1): arrays forward[L] backward[L+1]
/// values[L+1] saved[L+1] forward_overhead[L] backward_overhead[L+1]; the last backward is the loss
/// and may be missing, overheads may be missing whole (0). `units` is "B" (then times are seconds),
/// or {"memory": "B", "time": "s"}; anything else, or nothing, is abstract. Optional: `name`,
/// `names` of the stages; `options`, per stage a list of further ways {"name", "forward",
/// "backward", "saved", "forward_overhead", "backward_overhead"} (only `saved` must be given; the
/// rest is as in the first way); `saving_forward[L]` and `saving_forward_overhead[L]` where the
/// first way differs from a forward that saves nothing. Unknown keys are passed over. Errors name
/// the place: chain.length, chain.range, document.*, json.*.
Result<Chain> chainFromJson(const JsonReader& reader);
Json chainToJson(const Chain& chain);

} // namespace memscape
