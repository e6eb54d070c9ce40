// SPDX-License-Identifier: Apache-2.0
// Steps of `sharding` as its tests ask for them.
#pragma once

#include "core/device/catalogue.h"
#include "core/experiments/sharding/sharding.h"

#include <cmath>
#include <string>
#include <vector>

namespace memscape::test {

using ShardTexts = std::vector<std::string>;

inline const Device& shardGpu()
{
    static const Device device = *findDevice("nvidia-h100-sxm");
    return device;
}

inline Result<Figures> shardFigures(const ShardTexts& texts, const Device& device = shardGpu(),
                                    const char* experiment = "sharding")
{
    const Experiment& asked = **findExperiment(experiment);
    MEMSCAPE_TRY(parameters, resolve(asked.schema(), texts));
    return asked.predictPoint(device, parameters);
}

inline double shardFigure(const char* key, const ShardTexts& texts, const Device& device = shardGpu())
{
    const auto figures = shardFigures(texts, device);
    return figures && findFigure(*figures, key) ? findFigure(*figures, key)->number() : memscape::nan;
}

inline ShardingAnswer shardAnswer(const ShardTexts& texts, const Device& device = shardGpu())
{
    PredictionContext once;
    return *answerSharding(device, *resolve(shardingSchema(), texts), once);
}

inline Error shardError(const ShardTexts& texts, const Device& device = shardGpu())
{
    const auto figures = shardFigures(texts, device);
    return figures ? Error{} : figures.error();
}

inline bool shardsNear(double found, double expected, double relative = 1e-9)
{
    return std::abs(found - expected) <= relative * std::abs(expected);
}

inline const char* const shardModel = "model=from-scratch:hidden=256,layers=4,heads=4,ffn=1024,vocab=4096";

} // namespace memscape::test
