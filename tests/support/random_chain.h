// SPDX-License-Identifier: Apache-2.0
// Chains that are drawn: small ones of whole numbers, some with overheads far above everything else,
// where solvers differ; and long ones in bytes.
#pragma once

#include "core/checkpoint/chain.h"

#include <random>

namespace memscape::test {

inline Chain randomChain(std::mt19937& random, int length, bool hasSpikes, int options = 1)
{
    const auto draw = [&](int most) { return int(random() % unsigned(most + 1)); };
    const auto overhead = [&] { return std::int64_t(hasSpikes && draw(3) == 0 ? draw(25) : draw(2)); };
    Chain chain;
    chain.units = {false, false};
    for (int i = 0; i <= length; ++i)
        chain.values.push_back(1 + draw(4));
    for (int i = 0; i < length; ++i) {
        const double forward = 1 + draw(19);
        Stage stage{{}, forward, overhead(), {}};
        for (int k = 0; k < options; ++k)
            stage.options.push_back({"way", forward + draw(2), double(2 + draw(30)),
                                     chain.values[std::size_t(i + 1)] + draw(10), overhead(), overhead()});
        chain.stages.push_back(std::move(stage));
    }
    chain.lossTime = draw(3);
    chain.lossOverhead = overhead();
    return chain;
}

/// In bytes and seconds, no two sizes alike: too much for the exact solver from some tens of stages on.
inline Chain irregularChain(int length, unsigned seed)
{
    std::mt19937 random(seed);
    const auto draw = [&](unsigned most) { return std::int64_t(random() % most); };
    Chain chain;
    chain.name = "irregular";
    for (int i = 0; i <= length; ++i)
        chain.values.push_back(1'000'003 + draw(4'000'000));
    for (int i = 0; i < length; ++i) {
        const double forward = 1e-6 * double(100 + draw(900));
        const std::int64_t saved = chain.values[std::size_t(i + 1)] + draw(9'000'000);
        chain.stages.push_back({{}, forward, 4097, {SaveOption{"all", forward, 2.1 * forward, saved, 4097, 70'001}}});
    }
    return chain;
}

} // namespace memscape::test
