// SPDX-License-Identifier: Apache-2.0
// Predictions of `training-memory` in tests.
#pragma once

#include "core/experiment/experiment.h"
#include "core/experiments/training-memory/training_memory.h"

#include <QtGlobal>

#include <string>
#include <vector>

namespace memscape::test {

inline const Experiment& trainingMemory()
{
    return **findExperiment("training-memory");
}

inline Parameters trainingWith(const std::vector<std::string>& assignments)
{
    auto parameters = resolve(trainingMemory().schema(), assignments);
    if (!parameters)
        qFatal("%s", parameters.error().text().c_str());
    return *parameters;
}

/// A training that is predicted at once.
inline const std::vector<std::string> tiny{"model=gpt2", "batch=8", "sequence=256", "precision=fp32"};

inline double predictedValue(const Prediction& prediction, std::string_view key)
{
    const Figure* figure = findFigure(prediction.figures, key);
    return figure ? figure->number() : -1;
}

/// B that are alive when backward begins.
inline std::int64_t liveAtBackward(const TrainingAnswer& answer)
{
    std::int64_t live = 0;
    for (const Event& event : answer.simulation.trace.events()) {
        if (event.phase == Phase::Backward)
            break;
        live += event.change();
    }
    return live;
}

} // namespace memscape::test
