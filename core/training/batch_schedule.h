// SPDX-License-Identifier: Apache-2.0
// A batch that grows while training: what it saves in steps, and what it costs in examples.
//
//   constant   B(t) = B_0
//   linear     B(t) = B_0 (1 + α t)
//   adaptive   B(t + 1) = clip(s B_noise(t) + (1 − s) B(t), B_min, B_max): towards the noise scale of the
//              moment. Devarakonda, Naumov, Garland 2017 (AdaBatch, arXiv:1712.02029) double the batch every so
//              many epochs; following the noise scale is McCandlish et al. 2018, appendix D.
//
// A step at batch B makes 1 / (1 + B_noise/B) of a noiseless step's progress (noise_scale.h). Left out: the rate's
// own schedule (it follows the batch), the time that growing takes.
#pragma once

#include "core/training/language_law.h"
#include "core/training/noisy_regression.h"

#include <memory>
#include <vector>

namespace memscape {

/// A way from the first step to the target loss.
class TrainingCourse
{
public:
    virtual ~TrainingCourse() = default;
    virtual double loss() const = 0;       ///< NaN where no law says it
    virtual double noiseScale() const = 0; ///< examples
    virtual double remaining() const = 0;  ///< 1 at the start, 0 or less at the target
    /// Takes steps at this batch and says how many: one, or so many that little changes.
    virtual double advance(double batch) = 0;
};

/// To `target`, exactly: see noisy_regression.h.
std::unique_ptr<TrainingCourse> regressionCourse(std::int64_t inputs, std::int64_t outputs, double target);
/// By the law; examples are sequences of so many tokens.
std::unique_ptr<TrainingCourse> languageCourse(const LanguageLaw& law, double sequence, double target);
/// One noise scale all along, and so many noiseless steps.
std::unique_ptr<TrainingCourse> steadyCourse(double noiseScale, double fewestSteps);

enum class ScheduleKind { Constant, Linear, Adaptive };

struct BatchSchedule
{
    ScheduleKind kind = ScheduleKind::Constant;
    double first = 1;              ///< B_0, examples
    double growth = 0;             ///< α per step, of Linear
    double smoothing = 1;          ///< s in (0, 1], of Adaptive
    double least = 1, most = 1e12; ///< clip, also of Linear

    /// The batch after `steps` more steps at `batch`, `taken` in all.
    double next(double batch, double taken, double steps, double noiseScale) const;
};

struct ScheduleMoment
{
    double step = 0, batch = 0, noiseScale = 0, loss = 0, examples = 0;
};

struct ScheduleRun
{
    std::vector<ScheduleMoment> moments; ///< from step 0; at most `mostMoments` and the last
    double steps = 0, examples = 0;
    bool isReached = false; ///< else the step limit came first
};

inline constexpr std::size_t mostMoments = 240;

ScheduleRun runSchedule(TrainingCourse& course, const BatchSchedule& schedule, double stepLimit);

/// Steps to the target of a regression at each batch. Batches that need more than `limit` steps are
/// extrapolated along S = S_min + E_min/B from the two smallest that need fewer.
std::vector<StepsToTarget> regressionSteps(std::int64_t inputs, std::int64_t outputs, double target,
                                           const std::vector<double>& batches, double limit = 1500);

} // namespace memscape
