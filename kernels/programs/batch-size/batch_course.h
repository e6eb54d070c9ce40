// SPDX-License-Identifier: Apache-2.0
// Training to a target loss with one batch size, and the noise of the gradients where it ends.
//
// One layer takes its rates from the closed form and its loss from its weights, exactly. A deeper chain asks a probe
// of fresh examples every so many steps: for the loss, for the noise scale (per-example gradients), and for the
// curvature along the gradient by a difference of gradients, which give the paper's rate
// ε = |G|²/(GᵀHG) / (1 + B_noise/B), halved.
#pragma once

#include "kernels/measure/clock.h"
#include "kernels/programs/batch-size/batch_trainer.h"

namespace memscape {

struct BatchCourseTask
{
    std::vector<std::int64_t> sizes;
    std::int64_t batch = 1; ///< examples of an update
    double target = 0;
    std::int64_t mostSteps = 200000;
    double mostSeconds = 8;
    bool wantsNoise = false; ///< at the end
};

struct BatchCourseResult
{
    double steps = 0;
    double loss = 0;
    bool isReached = false;
    std::string stop;                 ///< why it ended before the target
    std::vector<GradientNoise> noise; ///< measurements on fresh examples, when wanted
};

inline constexpr std::int64_t noiseBatch = 512;
inline constexpr int noiseMeasurements = 24;

/// Errors: run.memory, run.cancelled, those of the device.
Result<BatchCourseResult> trainTo(const BatchDeviceFactory& makeDevice, const Clock& clock,
                                  const BatchCourseTask& task);

} // namespace memscape
