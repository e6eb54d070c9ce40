// SPDX-License-Identifier: Apache-2.0
#include "core/experiments/inference-memory/speculative_time.h"

#include <cmath>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr const char* leviathan = "Leviathan, Kalman, Matias 2023, arXiv:2211.17192, formula 1";

} // namespace

double SpeculativeTime::tokens() const
{
    const double most = double(proposed) + 1;
    return acceptance < 1 ? (1 - std::pow(acceptance, most)) / (1 - acceptance) : most;
}

Figures speculativeFigures(const SpeculativeTime& time, const ServingTime& plain)
{
    const auto& missing = time.draft.missing ? time.draft.missing : time.check.missing;
    Figure round{"round_tokens", "tokens of a round", Unit::One, time.tokens()};
    round.why = Why{"(1 − α^(γ+1)) / (1 − α)",
                    fmt::format("= {} with α = {}, γ = {}", quantityText(time.tokens(), Unit::One),
                                quantityText(time.acceptance, Unit::One), time.proposed),
                    {},
                    leviathan,
                    {"acceptance that changes with the position"}};
    Figure token{"speculative_token_time", "time per token with the draft", Unit::Second, time.perToken()};
    token.why = Why{
        "(γ × time per token of the draft + time of a pass of γ + 1 tokens) / tokens of a round",
        missing ? missing->text()
                : fmt::format("= ({} × {} + {}) / {}, {} times as fast as without", time.proposed,
                              secondsText(time.draft.decode()), secondsText(time.check.decode()),
                              quantityText(time.tokens(), Unit::One),
                              quantityText(plain.decode() / time.perToken(), Unit::One, ByteStyle::Binary, 3)),
        {{"draft", time.draft.decode(), Unit::Second, "a token of the draft model", "its weights, cache and launches"},
         {"check", time.check.decode(), Unit::Second, "a pass that reads weights and cache once",
          "as the time per token"}},
        leviathan,
        {"sampling", "sequences of a batch whose rounds differ"}};
    if (std::isfinite(time.perTokenLow()) && std::isfinite(time.perTokenHigh())) {
        token.low = time.perTokenLow();
        token.high = time.perTokenHigh();
    }
    return {std::move(round), std::move(token)};
}

} // namespace memscape
