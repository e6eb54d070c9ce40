// SPDX-License-Identifier: Apache-2.0
// `in-place` on a GPU: y = f(x), then x = f(x), each warm: passes follow each other, and what of the arrays L2 keeps is
// there. Where autograd keeps a copy of the input, a copy runs before each pass in place. What a repetition does, so
// that x stays near where it began: core/experiments/in-place/in_place_functions.h. The peak of each way is of its own
// arrays alone.
#include "kernels/cuda/common/errors.h"
#include "kernels/cuda/common/gpu_measurer.h"
#include "kernels/cuda/experiments.h"
#include "kernels/cuda/in-place/in_place.h"

#include "core/experiments/in-place/in_place.h"

#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape::cuda {

namespace {

enum Way { Out, In };

float* floatsOf(const Buffer& buffer)
{
    return reinterpret_cast<float*>(buffer.get());
}

struct InPlacePoint
{
    InPlaceCase asked;
    std::array<PointSamples, 2> samples;

    std::vector<SampledThing> sampled() const { return {{"out_time", samples[Out]}, {"in_time", samples[In]}}; }
};

class InPlaceMeasurer final : public GpuMeasurer<InPlacePoint>
{
public:
    using GpuMeasurer::GpuMeasurer;

    Result<void> visit(std::size_t index, const Parameters& at, int pass) override
    {
        InPlacePoint& point = m_points[index];
        point.asked = inPlaceCase(at);
        for (const Way way : {Out, In})
            MEMSCAPE_CHECK(sample(point.asked, way, pass, point.samples[way]));
        return {};
    }

    Point point(std::size_t index) const override
    {
        const InPlacePoint& measured = m_points[index];
        Point point;
        point.detail = measured.samples[Out].detail();
        const Summary out = measured.samples[Out].summary(), in = measured.samples[In].summary();
        if (!out.empty() && !in.empty())
            point.figures =
                inPlaceFigures(m_plan.device.device, measured.asked,
                               {timeOf(out), timeOf(in), measured.samples[Out].peak, measured.samples[In].peak});
        return point;
    }

    Json method() const override
    {
        return {{"kernel", fmt::format("in-place v{}", inPlaceVersions)},
                {"caches", "steady state: passes follow each other"}};
    }

private:
    static InPlaceTime timeOf(const Summary& summary) { return {summary.median, summary.minimum, summary.q3}; }

    Result<void> sample(const InPlaceCase& asked, Way way, int pass, PointSamples& samples)
    {
        m_session.resetPeak();
        Buffer y, other, copy;
        MEMSCAPE_TRY(x, m_session.allocate(asked.bytes));
        const auto take = [&](Buffer& buffer, bool isWanted) -> Result<void> {
            if (!isWanted)
                return {};
            MEMSCAPE_SET(buffer, m_session.allocate(asked.bytes));
            return {};
        };
        MEMSCAPE_CHECK(take(y, way == Out));
        MEMSCAPE_CHECK(take(other, asked.hasOther()));
        MEMSCAPE_CHECK(take(copy, way == In && overwriting(asked).copies));
        MEMSCAPE_CHECK(
            cudaResult(launchUniform(floatsOf(x), asked.elements(), 1, 1, m_session.stream()), "filling the input"));
        if (other)
            MEMSCAPE_CHECK(
                cudaResult(launchSigns(floatsOf(other), asked.elements(), m_session.stream()), "filling the factor"));
        InPlaceLaunch launch;
        launch.operation = asked.operation;
        launch.x = floatsOf(x);
        launch.other = floatsOf(other);
        launch.y = y ? floatsOf(y) : floatsOf(x);
        launch.count = asked.elements();
        StreamLaunch copying;
        copying.operation = Operation::Copy;
        copying.first = x.get();
        copying.target = copy.get();
        copying.bytes = asked.bytes;
        unsigned turn = 0; // of all launches: additions and products are undone by the next
        const Work work{
            [&, launch](int) mutable {
                if (copy) {
                    const auto error = launchStream(copying, m_session.multiprocessors(), m_session.stream());
                    if (error != cudaSuccess)
                        return error;
                }
                launch.step = inPlaceStep(asked.operation, turn++);
                return launchInPlace(launch, m_session.multiprocessors(), m_session.stream());
            },
            way == Out ? "the operation out of place" : "the operation in place", std::size_t(copy ? 2 : 1)};
        MEMSCAPE_TRY(once, warmUp(m_session, work));
        samples.batch = std::max(samples.batch, batchFor(once, work.launches));
        MEMSCAPE_CHECK(samplePass(m_session, work, false, pass, StoppingOptions().perPass(sweepPasses), samples));
        samples.peak = std::max(samples.peak, m_session.peakBytes());
        return m_session.synchronize("freeing the arrays");
    }
};

} // namespace

Checks checksOfInPlace(int multiprocessors)
{
    Checks checks;
    for (int version = 1; version <= inPlaceVersions; ++version) {
        for (int operation = 0; operation <= int(InPlaceOperation::Gelu); ++operation) {
            for (const bool isInPlace : {false, true})
                checks.push_back(
                    [=] { return checkInPlace(version, InPlaceOperation(operation), isInPlace, multiprocessors); });
        }
    }
    return checks;
}

Result<MeasuredRun> measureInPlace(GpuSession& session, const SweepPlan& plan, RunSink& sink)
{
    // Checked before they are timed, both ways.
    const InPlaceCase asked = inPlaceCase(plan.parameters);
    for (const bool isInPlace : {false, true})
        MEMSCAPE_CHECK(
            passedCheck(checkInPlace(inPlaceVersions, asked.operation, isInPlace, session.multiprocessors())));
    MEMSCAPE_CHECK(passedCheck(checkStream(streamVersions, 16, Operation::Copy, session.multiprocessors())));
    MEMSCAPE_TRY(runStart, beginRun(session, sink));
    InPlaceMeasurer measurer(session, plan, runStart);
    return runSweep(session, runStart, plan, measurer, sink);
}

} // namespace memscape::cuda
