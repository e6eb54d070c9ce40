// SPDX-License-Identifier: Apache-2.0
#include "core/training/lora.h"

namespace memscape {

PrecisionRule precisionRule(const ParameterTensor& parameter, const Plan& plan)
{
    const PrecisionRule usual = precisionRule(plan.precision);
    const PrecisionRule rule = parameter.isTrained ? plan.kept() : usual;
    if (parameter.storedBytes == 0 || parameter.elements == 0)
        return rule;
    const std::int64_t bytes = parameter.storedBytes / parameter.elements;
    return bytes == usual.weight ? rule : PrecisionRule{bytes, bytes, 0, 0};
}

std::int64_t gradientBytes(const ParameterTensor& parameter, const Plan& plan)
{
    const PrecisionRule rule = precisionRule(parameter, plan);
    return rule.master || rule.weight == plan.kept().weight ? plan.gradientBytes() : rule.gradient;
}

} // namespace memscape
