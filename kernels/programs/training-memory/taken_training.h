// SPDX-License-Identifier: Apache-2.0
// The steps that a training took in FP32 and in a format, and what is derived from them: figures, losses over the
// steps, shares of gradients that a loss scale loses, grades. Our own programs (amp_training.h) and PyTorch's
// (kernels/pytorch/measure_precision.cpp) answer through this.
#pragma once

#include "kernels/measure/quality.h"
#include "kernels/measure/sweep_run.h"
#include "kernels/programs/training-memory/amp_trainer.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace memscape {

/// One network's way through the steps.
struct AmpCourse
{
    std::string key; ///< "fp32", "fp16", "fp16_unscaled"
    std::string label;
    std::vector<TrainedStep> steps;
    double peak = 0; ///< B; NaN where it is not known

    /// Of steps from the second on, those that were counted left out where there are others.
    Summary seconds() const;
    /// Mean over the last tenth, at least one step; NaN when one of them is.
    double finalLoss() const;
};

struct TakenTraining
{
    std::vector<AmpCourse> courses; ///< FP32 first, then the format, then FP16 without a scaler
    GradientCounter gradients;      ///< of the FP32 course
    Json method = Json::object();
    Quality quality;
    bool isComplete = true;
};

/// The grade of the format's steps; `seen`: what disturbed so many samples.
Quality qualityOf(const TakenTraining& taken, const std::function<RunConditions(std::size_t samples)>& seen);

/// What trains, during one run.
class TrainingSource
{
public:
    virtual ~TrainingSource() = default;
    virtual const Device& device() const = 0;
    /// A run of steps at a point. Errors: run.skipped, run.memory, check.failed; run.cancelled before the second step.
    virtual Result<TakenTraining> train(const PrecisionCase& asked, const Parameters& at) = 0;
    /// What its own conversion makes of a value; nothing where it has none.
    virtual std::optional<Figure> stored(Format format, double value) = 0;
};

/// Whether the parameters' format is trained in. Errors: run.skipped.
Result<void> checkTrained(const Parameters& parameters);

/// A run of steps for every point; experiment and parameters must outlive it. Errors of visits: those of the source,
/// and run.cancelled, where the steps from the second on are kept.
std::unique_ptr<PointMeasurer> makeTrainingMeasurer(std::unique_ptr<TrainingSource> source,
                                                    const Experiment& experiment, const Parameters& parameters);

} // namespace memscape
