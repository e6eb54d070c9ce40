// SPDX-License-Identifier: Apache-2.0
#include "core/checkpoint/slot_chain.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace memscape {

namespace {

void divide(std::int64_t& size, std::int64_t slot, SlotRounding rounding)
{
    size = size / slot + (rounding == SlotRounding::Up && size % slot != 0);
}

/// The least time of a stage that is saved.
double fastestOf(const Stage& stage)
{
    double least = std::numeric_limits<double>::infinity();
    for (const SaveOption& option : stage.options)
        least = std::min(least, option.forward + option.backward);
    return least;
}

std::int64_t commonDivisor(const Chain& chain)
{
    std::int64_t divisor = chain.lossOverhead;
    for (std::int64_t value : chain.values)
        divisor = std::gcd(divisor, value);
    for (const Stage& stage : chain.stages) {
        divisor = std::gcd(divisor, stage.forwardOverhead);
        for (const SaveOption& option : stage.options)
            divisor =
                std::gcd(divisor, std::gcd(option.saved, std::gcd(option.forwardOverhead, option.backwardOverhead)));
    }
    return std::max<std::int64_t>(1, divisor);
}

} // namespace

std::int64_t SlotChain::neededToSave(int s, int t, const SaveOption& option) const
{
    return option.saved
        + std::max(values[t + 1] + option.forwardOverhead, values[s] + values[s + 1] + option.backwardOverhead);
}

std::int64_t SlotChain::neededToPass(int s, int i) const
{
    return (i == s ? 0 : values[i]) + values[i + 1] + stages[i].forwardOverhead;
}

SlotNeed SlotChain::neededToSaveFastest(int s, int t, std::int64_t after) const
{
    SlotNeed least{std::numeric_limits<std::int64_t>::max(), 0};
    const std::vector<SaveOption>& options = stages[s].options;
    for (int k = 0; k < int(options.size()); ++k) {
        const std::int64_t needed = std::max(neededToSave(s, t, options[k]), options[k].saved + after);
        if (options[k].forward + options[k].backward == fastest[s] && needed < least.size)
            least = {needed, k};
    }
    return least;
}

bool SlotChain::hasWholeTimes() const
{
    const auto isWhole = [](double time) { return time == std::floor(time); };
    return std::ranges::all_of(stages, [&](const Stage& stage) {
        return isWhole(stage.forward) && std::ranges::all_of(stage.options, [&](const SaveOption& option) {
                   return isWhole(option.forward) && isWhole(option.backward);
               });
    });
}

bool dividesSizes(const Chain& chain, std::int64_t slot)
{
    return commonDivisor(chain) % slot == 0;
}

SlotChain discretise(const Chain& chain, std::int64_t slot, SlotRounding rounding)
{
    SlotChain slots;
    slots.end = chain.length();
    slots.slot = slot;
    slots.values = chain.values;
    slots.values.push_back(0);
    slots.stages = chain.stages;
    slots.stages.push_back(Stage{"loss", 0, 0, {SaveOption{"loss", 0, chain.lossTime, 0, 0, chain.lossOverhead}}});
    slots.passed.push_back(0);
    for (std::int64_t& value : slots.values)
        divide(value, slot, rounding);
    for (Stage& stage : slots.stages) {
        divide(stage.forwardOverhead, slot, rounding);
        for (SaveOption& option : stage.options) {
            divide(option.saved, slot, rounding);
            divide(option.forwardOverhead, slot, rounding);
            divide(option.backwardOverhead, slot, rounding);
        }
        slots.fastest.push_back(fastestOf(stage));
        slots.base += slots.fastest.back();
        slots.passed.push_back(slots.passed.back() + stage.forward);
    }
    return slots;
}

std::int64_t slotSize(const Chain& chain, std::int64_t limit, int slotCount)
{
    if (!chain.units.isBytes)
        return 1;
    const std::int64_t divisor = commonDivisor(chain);
    return limit / divisor <= slotCount ? divisor : limit / slotCount + (limit % slotCount != 0);
}

} // namespace memscape
