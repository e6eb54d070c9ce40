// SPDX-License-Identifier: Apache-2.0
// How long a token takes when a draft model proposes γ tokens, one after the other, and the model itself checks all of
// them in one pass, which gives a token more:
//
//     tokens of a round = (1 − α^(γ+1)) / (1 − α)
//     time per token    = (γ × a token of the draft + a pass of γ + 1 tokens) / tokens of a round
//
// α is the share of proposals that are accepted (Leviathan, Kalman, Matias 2023, arXiv:2211.17192, formula 1 and
// theorem 3.8). The pass reads weights and cache once, like a single token, and multiplies γ + 1 times as much.
//
// Left out: sampling, rounds of sequences that differ, trees of proposals, α that changes with the position.
#pragma once

#include "core/experiments/inference-memory/inference_time.h"

namespace memscape {

struct SpeculativeTime
{
    std::int64_t proposed = 0; ///< γ
    double acceptance = 0;     ///< α
    ServingTime draft, check;  ///< a token, and a pass of γ + 1

    double tokens() const; ///< of a round, of each sequence
    /// s
    double perToken() const { return (double(proposed) * draft.decode() + check.decode()) / tokens(); }
    double perTokenLow() const { return (double(proposed) * draft.decodeLow() + check.decodeLow()) / tokens(); }
    double perTokenHigh() const { return (double(proposed) * draft.decodeHigh() + check.decodeHigh()) / tokens(); }
};

/// round_tokens and speculative_token_time, with their whys; `plain` is a token without a draft.
Figures speculativeFigures(const SpeculativeTime& time, const ServingTime& plain);

} // namespace memscape
