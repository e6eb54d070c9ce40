// SPDX-License-Identifier: Apache-2.0
#include "core/training/batch_schedule.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace memscape {

namespace {

class RegressionCourse final : public TrainingCourse
{
public:
    RegressionCourse(std::int64_t inputs, std::int64_t outputs, double target)
        : m_problem(inputs, outputs)
        , m_begin(m_problem.loss())
        , m_target(target)
    { }
    double loss() const override { return m_problem.loss(); }
    double noiseScale() const override { return m_problem.simpleNoise(); }
    double remaining() const override { return (loss() - m_target) / std::max(1e-300, m_begin - m_target); }
    double advance(double batch) override
    {
        m_problem.step(batch);
        return 1;
    }

private:
    NoisyRegression m_problem;
    double m_begin, m_target;
};

class LanguageCourse final : public TrainingCourse
{
public:
    LanguageCourse(const LanguageLaw& law, double sequence, double target)
        : m_law(law)
        , m_sequence(sequence)
        , m_end(law.toLoss(target).value_or(BatchHyperbola{1e300, 0}).fewestSteps)
    { }
    double loss() const override { return m_law.loss(m_done); }
    double noiseScale() const override { return m_law.noiseTokens(loss()) / m_sequence; }
    double remaining() const override { return 1 - (m_done - begin) / std::max(1e-300, m_end - begin); }
    double advance(double batch) override
    {
        const double share = stepProgress(batch, noiseScale());
        const double progress = std::min(0.01 * m_done, m_end - m_done); // the law hardly changes
        const double steps = std::max(1.0, std::ceil(progress / share));
        m_done += steps * share;
        return steps;
    }

private:
    static constexpr double begin = 1; ///< the law has no step 0
    LanguageLaw m_law;
    double m_sequence, m_end, m_done = begin;
};

class SteadyCourse final : public TrainingCourse
{
public:
    SteadyCourse(double noiseScale, double fewestSteps)
        : m_noise(noiseScale)
        , m_all(fewestSteps)
    { }
    double loss() const override { return std::numeric_limits<double>::quiet_NaN(); }
    double noiseScale() const override { return m_noise; }
    double remaining() const override { return 1 - m_done / m_all; }
    double advance(double batch) override
    {
        const double share = stepProgress(batch, m_noise);
        const double steps = std::max(1.0, std::ceil(std::min(m_all / 400, m_all - m_done) / share));
        m_done += steps * share;
        return steps;
    }

private:
    double m_noise, m_all, m_done = 0;
};

/// Keeps every so many moments, and twice as far apart when there are too many.
void thin(std::vector<ScheduleMoment>& moments)
{
    std::size_t kept = 0;
    for (std::size_t i = 0; i < moments.size(); i += 2)
        moments[kept++] = moments[i];
    moments.resize(kept);
}

} // namespace

std::unique_ptr<TrainingCourse> regressionCourse(std::int64_t inputs, std::int64_t outputs, double target)
{
    return std::make_unique<RegressionCourse>(inputs, outputs, target);
}

std::unique_ptr<TrainingCourse> languageCourse(const LanguageLaw& law, double sequence, double target)
{
    return std::make_unique<LanguageCourse>(law, sequence, target);
}

std::unique_ptr<TrainingCourse> steadyCourse(double noiseScale, double fewestSteps)
{
    return std::make_unique<SteadyCourse>(noiseScale, fewestSteps);
}

double BatchSchedule::next(double batch, double taken, double steps, double noiseScale) const
{
    if (kind == ScheduleKind::Linear)
        batch = first * (1 + growth * taken);
    else if (kind == ScheduleKind::Adaptive) // s applied `steps` times
        batch = noiseScale + (batch - noiseScale) * std::pow(1 - smoothing, steps);
    return std::clamp(batch, least, std::max(least, most));
}

ScheduleRun runSchedule(TrainingCourse& course, const BatchSchedule& schedule, double stepLimit)
{
    ScheduleRun run;
    double batch = std::clamp(schedule.first, schedule.least, std::max(schedule.least, schedule.most));
    double nextKept = 0, apart = 1;
    while (course.remaining() > 0 && run.steps < stepLimit) {
        if (run.steps >= nextKept) {
            run.moments.push_back({run.steps, batch, course.noiseScale(), course.loss(), run.examples});
            if (run.moments.size() >= 2 * mostMoments) {
                thin(run.moments);
                apart *= 2;
            }
            nextKept = run.steps + apart;
        }
        const double steps = course.advance(batch);
        run.steps += steps;
        run.examples += steps * batch;
        batch = schedule.next(batch, run.steps, steps, course.noiseScale());
    }
    if (run.moments.size() > mostMoments)
        thin(run.moments);
    run.moments.push_back({run.steps, batch, course.noiseScale(), course.loss(), run.examples});
    run.isReached = course.remaining() <= 0;
    return run;
}

std::vector<StepsToTarget> regressionSteps(std::int64_t inputs, std::int64_t outputs, double target,
                                           const std::vector<double>& batches, double limit)
{
    std::vector<StepsToTarget> found;
    for (const double batch : batches)
        found.push_back({batch, std::numeric_limits<double>::quiet_NaN()});
    std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.batch > b.batch; });
    std::vector<StepsToTarget> counted; // largest batch first
    const auto countAt = [&](double batch) {
        NoisyRegression problem(inputs, outputs);
        double steps = 0, before = problem.loss();
        while (problem.loss() > target && steps <= limit) {
            before = problem.loss();
            problem.step(batch);
            ++steps;
        }
        // Between two steps, where the expected loss passes the target: no jumps of whole steps.
        const double passed = before - problem.loss();
        if (steps > 0 && steps <= limit && passed > 0)
            steps -= (target - problem.loss()) / passed;
        return steps;
    };
    for (StepsToTarget& point : found) {
        double steps = 0;
        if (counted.empty() || counted.back().steps <= limit / 2)
            steps = countAt(point.batch);
        else
            steps = limit + 1;
        if (steps <= limit) {
            counted.push_back({point.batch, steps});
            point.steps = steps;
            continue;
        }
        if (counted.size() < 2) { // all that were asked for are small
            counted = {{0x1p40, countAt(0x1p40)}};
            for (double batch = 256; counted.size() < 2 && batch < 0x1p30; batch *= 8) {
                if (const double near = countAt(batch); near <= limit)
                    counted.push_back({batch, near});
            }
            if (counted.size() < 2 || counted.front().steps > limit)
                break; // so near to the floor that even large batches need more
        }
        const StepsToTarget &far = counted[counted.size() - 2], &near = counted.back();
        const double examples = (near.steps - far.steps) / (1 / near.batch - 1 / far.batch);
        point.steps = near.steps + examples * (1 / point.batch - 1 / near.batch);
    }
    std::reverse(found.begin(), found.end());
    return found;
}

} // namespace memscape
