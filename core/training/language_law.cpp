// SPDX-License-Identifier: Apache-2.0
#include "core/training/language_law.h"

#include "core/base/number.h"

#include <cmath>

#include <fmt/format.h>

namespace memscape {

double LanguageLaw::leastLoss() const
{
    return std::pow(parametersScale / parameters, parametersExponent);
}

double LanguageLaw::loss(double fewestSteps) const
{
    return leastLoss() + std::pow(stepsScale / fewestSteps, stepsExponent);
}

double LanguageLaw::criticalTokens(double loss) const
{
    return batchScale / std::pow(loss, 1 / batchExponent);
}

double LanguageLaw::noiseTokens(double loss) const
{
    return criticalTokens(loss) * (1 + stepsExponent / batchExponent * (loss - leastLoss()) / loss);
}

Result<BatchHyperbola> LanguageLaw::toLoss(double loss) const
{
    const double left = loss - leastLoss();
    if (!(left > 0))
        return fail("batch.target",
                    fmt::format("a loss of {} is never reached: the law's least for {} parameters is {}",
                                numberText(loss), quantityText(parameters, Unit::One),
                                quantityText(leastLoss(), Unit::One)),
                    fmt::format("choose a target above {}, or a larger model",
                                quantityText(leastLoss(), Unit::One, ByteStyle::Binary, 4)),
                    "target_loss");
    const double steps = stepsScale / std::pow(left, 1 / stepsExponent);
    return BatchHyperbola{steps, steps * criticalTokens(loss)};
}

} // namespace memscape
