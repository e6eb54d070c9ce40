// SPDX-License-Identifier: Apache-2.0
#include "kernels/programs/batch-size/batch_course.h"

#include "core/base/number.h"
#include "core/training/noisy_regression.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr std::uint64_t trainingExamples = 1ull << 32, probeExamples = 1ull << 40, noiseExamples = 1ull << 41;

double dot(const std::vector<float>& a, const std::vector<float>& b)
{
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
        sum += double(a[i]) * double(b[i]);
    return sum;
}

class Course
{
public:
    Course(const BatchDeviceFactory& makeDevice, const Clock& clock, const BatchCourseTask& task)
        : m_makeDevice(makeDevice)
        , m_clock(clock)
        , m_task(task)
    { }
    Result<BatchCourseResult> run();

private:
    Result<void> open();
    bool isLinear() const { return m_task.sizes.size() == 2; }
    /// The loss now; sets the rate of the steps until the next look.
    Result<double> look(double steps);
    Result<void> probe();
    Result<void> measureNoise(BatchCourseResult& result);

    const BatchDeviceFactory& m_makeDevice;
    const Clock& m_clock;
    const BatchCourseTask& m_task;
    std::unique_ptr<BatchTrainer> m_trainer, m_probe;
    std::optional<NoisyRegression> m_problem;
    std::uint64_t m_probed = 0;
    double m_rate = 0, m_loss = 0, m_nextLook = 0;
};

Result<void> Course::open()
{
    MEMSCAPE_SET(m_trainer, BatchTrainer::make(m_makeDevice, {m_task.sizes, m_task.batch, 1}));
    MEMSCAPE_SET(m_probe, BatchTrainer::make(m_makeDevice, {m_task.sizes, noiseBatch, 1}));
    if (isLinear())
        m_problem.emplace(m_task.sizes[0], m_task.sizes[1]);
    return {};
}

Result<void> Course::probe()
{
    MEMSCAPE_TRY(weights, m_trainer->parameters());
    MEMSCAPE_CHECK(m_probe->setParameters(weights));
    MEMSCAPE_CHECK(m_probe->load(probeExamples + m_probed++ * noiseBatch));
    MEMSCAPE_TRY(here, m_probe->gradients(true));
    m_loss = here.loss;
    MEMSCAPE_TRY(gradient, m_probe->lastGradients());
    const double squared = dot(gradient, gradient);
    const double step = 0.01 * std::sqrt(std::max(1e-12, dot(weights, weights)) / std::max(1e-30, squared));
    std::vector<float> moved = weights;
    for (std::size_t i = 0; i < moved.size(); ++i)
        moved[i] += float(step) * gradient[i];
    MEMSCAPE_CHECK(m_probe->setParameters(moved));
    MEMSCAPE_CHECK(m_probe->gradients(false));
    MEMSCAPE_TRY(movedGradient, m_probe->lastGradients());
    const double curvature = (dot(gradient, movedGradient) - squared) / step;
    const double noise = here.noise.signal > 0 ? here.noise.trace / here.noise.signal : double(noiseBatch);
    if (curvature > 0)
        m_rate = 0.5 * squared / curvature * stepProgress(double(m_task.batch), noise);
    return {};
}

Result<double> Course::look(double steps)
{
    if (isLinear()) {
        m_rate = m_problem->bestRate(double(m_task.batch));
        m_problem->step(double(m_task.batch));
        return m_trainer->risk();
    }
    if (steps >= m_nextLook) {
        MEMSCAPE_CHECK(probe());
        m_nextLook = steps + std::max(1.0, std::floor(steps / 20));
    }
    return m_loss;
}

Result<void> Course::measureNoise(BatchCourseResult& result)
{
    MEMSCAPE_TRY(weights, m_trainer->parameters());
    MEMSCAPE_CHECK(m_probe->setParameters(weights));
    for (int i = 0; i < noiseMeasurements; ++i) {
        MEMSCAPE_CHECK(m_probe->load(noiseExamples + std::uint64_t(i) * noiseBatch));
        MEMSCAPE_TRY(step, m_probe->gradients(true));
        result.noise.push_back(step.noise);
        MEMSCAPE_CHECK(m_probe->checkStopped());
    }
    return {};
}

Result<BatchCourseResult> Course::run()
{
    MEMSCAPE_CHECK(open());
    BatchCourseResult result;
    const double begin = m_clock.now();
    std::uint64_t example = trainingExamples;
    while (true) {
        MEMSCAPE_TRY(loss, look(result.steps));
        result.loss = loss;
        if (loss <= m_task.target) {
            result.isReached = true;
            break;
        }
        if (!std::isfinite(loss) || loss > 1e6) {
            result.stop = fmt::format("the loss grew to {} in {} steps", numberText(loss), result.steps);
            break;
        }
        const bool isLate = m_clock.now() - begin > m_task.mostSeconds;
        if (isLate || result.steps >= double(m_task.mostSteps)) {
            result.stop =
                fmt::format("stopped after {} steps at a loss of {}: {}", result.steps, quantityText(loss, Unit::One),
                            isLate ? fmt::format("{} s are the limit for a batch size", m_task.mostSeconds)
                                   : std::string("that many steps are the limit"));
            break;
        }
        MEMSCAPE_CHECK(m_trainer->load(example));
        example += std::uint64_t(m_task.batch);
        MEMSCAPE_CHECK(m_trainer->learn(m_rate));
        ++result.steps;
        MEMSCAPE_CHECK(m_trainer->checkStopped());
    }
    if (m_task.wantsNoise)
        MEMSCAPE_CHECK(measureNoise(result));
    return result;
}

} // namespace

Result<BatchCourseResult> trainTo(const BatchDeviceFactory& makeDevice, const Clock& clock, const BatchCourseTask& task)
{
    return Course(makeDevice, clock, task).run();
}

} // namespace memscape
