// SPDX-License-Identifier: Apache-2.0
#include "core/checkpoint/chain.h"

#include "core/base/number.h"

#include <cmath>

#include <fmt/format.h>

namespace memscape {

namespace {

tl::unexpected<Error> outOfRange(std::string place, std::string_view found)
{
    return fail("chain.range", fmt::format("{} is not a size or a time", found),
                fmt::format("times are finite and not negative, sizes whole numbers from 0 to {}", chainSizeLimit),
                std::move(place));
}

Result<void> checkTime(double time, std::string_view array, int i)
{
    if (!std::isfinite(time) || time < 0 || time > 1e300)
        return outOfRange(fmt::format("{}[{}]", array, i), numberText(time));
    return {};
}

Result<void> checkSize(std::int64_t size, std::string_view array, int i)
{
    if (size < 0 || size > chainSizeLimit)
        return outOfRange(fmt::format("{}[{}]", array, i), fmt::format("{}", size));
    return {};
}

Result<void> checkOption(const Chain& chain, const SaveOption& option, int i)
{
    MEMSCAPE_CHECK(checkTime(option.forward, "forward", i));
    MEMSCAPE_CHECK(checkTime(option.backward, "backward", i));
    MEMSCAPE_CHECK(checkSize(option.saved, "saved", i + 1));
    MEMSCAPE_CHECK(checkSize(option.forwardOverhead, "forward_overhead", i));
    MEMSCAPE_CHECK(checkSize(option.backwardOverhead, "backward_overhead", i));
    if (option.saved < chain.values[i + 1])
        return fail(
            "chain.range",
            fmt::format("what stage {} saves ({}) is less than its result ({})", i, option.saved, chain.values[i + 1]),
            "saved[i] counts everything that stage i − 1 saves, its result values[i] included",
            fmt::format("saved[{}]", i + 1));
    return {};
}

} // namespace

double Chain::timeWithoutRecomputation() const
{
    double sum = lossTime;
    for (const Stage& stage : stages)
        sum += stage.options.front().forward + stage.options.front().backward;
    return sum;
}

Result<void> checkChain(const Chain& chain)
{
    const int length = chain.length();
    if (length < 1)
        return fail("chain.length", "a chain has at least one stage", "give forward one element per stage", "forward");
    if (length > chainLengthLimit)
        return fail("chain.length", fmt::format("{} stages are more than {}", length, chainLengthLimit),
                    "join neighbouring stages into one", "forward");
    if (int(chain.values.size()) != length + 1)
        return fail("chain.length", fmt::format("{} values for {} stages", chain.values.size(), length),
                    fmt::format("values has one element more than forward: {}", length + 1), "values");
    for (int i = 0; i <= length; ++i)
        MEMSCAPE_CHECK(checkSize(chain.values[i], "values", i));
    MEMSCAPE_CHECK(checkTime(chain.lossTime, "backward", length));
    MEMSCAPE_CHECK(checkSize(chain.lossOverhead, "backward_overhead", length));
    for (int i = 0; i < length; ++i) {
        const Stage& stage = chain.stages[i];
        MEMSCAPE_CHECK(checkTime(stage.forward, "forward", i));
        MEMSCAPE_CHECK(checkSize(stage.forwardOverhead, "forward_overhead", i));
        if (stage.options.empty() || stage.options.size() > saveOptionLimit)
            return fail("chain.option", fmt::format("stage {} has {} ways to be saved", i, stage.options.size()),
                        fmt::format("give 1 to {}", saveOptionLimit), fmt::format("options[{}]", i));
        for (const SaveOption& option : stage.options)
            MEMSCAPE_CHECK(checkOption(chain, option, i));
    }
    return {};
}

Chain uniformChain(int length, std::int64_t value, std::int64_t saved, double forward, double backward)
{
    Chain chain;
    chain.name = fmt::format("uniform:{}", length);
    chain.units = {false, false};
    chain.values.assign(std::size_t(length) + 1, value);
    chain.stages.assign(std::size_t(length),
                        Stage{{}, forward, 0, {SaveOption{"all", forward, backward, saved, 0, 0}}});
    return chain;
}

} // namespace memscape
