// SPDX-License-Identifier: Apache-2.0
// Small chains of whole numbers, drawn: some with overheads far above everything else, where
// solvers differ.
#pragma once

#include "core/checkpoint/chain.h"

#include <random>

namespace memscape::test {

inline Chain randomChain(std::mt19937& random, int length, bool hasSpikes, int options = 1)
{
    const auto draw = [&](int most) { return int(random() % unsigned(most + 1)); };
    const auto overhead = [&] {
        return std::int64_t(hasSpikes && draw(3) == 0 ? draw(25) : draw(2));
    };
    Chain chain;
    chain.units = {false, false};
    for (int i = 0; i <= length; ++i)
        chain.values.push_back(1 + draw(4));
    for (int i = 0; i < length; ++i) {
        const double forward = 1 + draw(19);
        Stage stage{{}, forward, overhead(), {}};
        for (int k = 0; k < options; ++k)
            stage.options.push_back({"way", forward + draw(2), double(2 + draw(30)),
                                     chain.values[std::size_t(i + 1)] + draw(10), overhead(),
                                     overhead()});
        chain.stages.push_back(std::move(stage));
    }
    chain.lossTime = draw(3);
    chain.lossOverhead = overhead();
    return chain;
}

} // namespace memscape::test
