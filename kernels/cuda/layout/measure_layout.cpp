// SPDX-License-Identifier: Apache-2.0
// `layout` on a GPU: reads through the view, the copy that contiguous() makes in the version asked for, and reads of
// the copy. Warm: the tensor was read before, and what of it L2 keeps is there, as a prediction takes it.
//
// All reads of a point are one pass times their number: passes of a kernel follow each other on a stream, and each
// is longer than the launch between them. Left out: the first read after a copy, which finds part of it in L2.
#include "kernels/cuda/common/errors.h"
#include "kernels/cuda/common/gpu_measurer.h"
#include "kernels/cuda/experiments.h"

#include "core/experiments/layout/layout.h"

#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape::cuda {

namespace {

Result<ViewNest> nestOf(const TensorWalk& walk)
{
    ViewNest nest;
    if (walk.loops.size() > std::size_t(viewLoops))
        return fail("run.skipped", "a walk of more than 8 loops", "use fewer dimensions", "shape");
    nest.rank = int(walk.loops.size());
    nest.offset = std::uint64_t(walk.offset);
    nest.elements = std::uint64_t(walk.elements);
    for (std::size_t i = 0; i < walk.loops.size(); ++i) {
        nest.count[i] = std::uint64_t(walk.loops[i].count);
        nest.stride[i] = std::uint64_t(walk.loops[i].stride);
    }
    return nest;
}

enum Part { View, Dense, Copied };

struct LayoutPoint
{
    Parameters parameters;
    std::array<PointSamples, 3> samples;
    bool copies = false;

    std::vector<SampledThing> sampled() const
    {
        std::vector<SampledThing> all{{"view_time", samples[View]}};
        if (copies) {
            all.push_back({"copy_time", samples[Copied]});
            all.push_back({"contiguous_time", samples[Dense]});
        }
        return all;
    }
};

class LayoutMeasurer final : public GpuMeasurer<LayoutPoint>
{
public:
    using GpuMeasurer::GpuMeasurer;

    Result<void> visit(std::size_t index, const Parameters& at, int pass) override
    {
        LayoutPoint& point = m_points[index];
        point.parameters = at;
        MEMSCAPE_TRY(asked, layoutCase(at));
        if (asked.view.isEmpty())
            return fail("run.skipped", "a tensor without elements takes no time to read", "use sizes above 0", "shape");
        const auto item = std::uint64_t(asked.itemBytes());
        MEMSCAPE_TRY(storage, m_session.allocate(std::uint64_t(asked.view.storage) * item));
        MEMSCAPE_CHECK(m_session.fill(storage.get(), std::uint64_t(asked.view.storage) * item));
        MEMSCAPE_CHECK(read(asked.walk(), storage.get(), "the read through the view", pass, point.samples[View]));
        point.copies = asked.needsCopy();
        if (!point.copies)
            return m_session.synchronize("freeing the tensor");
        MEMSCAPE_TRY(dense, m_session.allocate(std::uint64_t(asked.view.elements()) * item));
        MEMSCAPE_TRY(nest, nestOf(asked.copyWalk()));
        ViewLaunch launch{asked.version == 0 ? viewCopyVersions : asked.version,
                          int(item),
                          storage.get(),
                          dense.get(),
                          nest,
                          nullptr};
        MEMSCAPE_CHECK(sample(launch, "the copy", pass, point.samples[Copied]));
        MEMSCAPE_CHECK(read(asked.denseWalk(), dense.get(), "the read of the copy", pass, point.samples[Dense]));
        return m_session.synchronize("freeing the tensors");
    }

    Point point(std::size_t index) const override
    {
        const LayoutPoint& measured = m_points[index];
        Point point;
        point.detail = measured.samples[View].detail();
        if (!measured.samples[View].summary().empty())
            point.figures = figuresOf(measured);
        return point;
    }

    Json method() const override { return {{"reads", "one pass is timed; all reads are its multiple"}}; }

private:
    Result<void> read(const TensorWalk& walk, const char* storage, const char* name, int pass, PointSamples& samples)
    {
        MEMSCAPE_TRY(nest, nestOf(walk));
        return sample(ViewLaunch{0, int(walk.itemBytes), storage, nullptr, nest, nullptr}, name, pass, samples);
    }

    Result<void> sample(const ViewLaunch& launch, const char* name, int pass, PointSamples& samples)
    {
        const Work work{
            [this, launch](int) { return launchView(launch, m_session.multiprocessors(), m_session.stream()); }, name};
        MEMSCAPE_TRY(once, warmUp(m_session, work));
        samples.batch = std::max(samples.batch, batchFor(once));
        return samplePass(m_session, work, false, pass, StoppingOptions().perPass(sweepPasses), samples);
    }

    Figures figuresOf(const LayoutPoint& point) const
    {
        const auto answer = answerLayout(m_plan.device.device, point.parameters);
        if (!answer)
            return {};
        Figures figures = countedLayoutFigures(m_plan.device.device, *answer);
        for (Figure& figure : figures)
            figure.why.reset(); // the reasons are the prediction's
        const Summary view = point.samples[View].summary();
        const Summary dense = point.copies ? point.samples[Dense].summary() : view;
        const Summary copy = point.samples[Copied].summary();
        const double copySeconds = point.copies ? copy.median : 0;
        const auto reads = double(answer->asked.reads);
        const auto time = [&](const char* key, const char* label, double value, double low, double high) {
            figures.push_back({key, label, Unit::Second, value, low, high, {}});
        };
        time("view_time", "read through the view", view.median, view.minimum, view.q3);
        time("contiguous_time", "read after contiguous()", dense.median, dense.minimum, dense.q3);
        if (point.copies) {
            time("copy_time", "contiguous()", copy.median, copy.minimum, copy.q3);
            const double bytes = 2 * double(answer->asked.view.elements()) * double(answer->asked.itemBytes());
            figures.push_back({"copy_bandwidth",
                               "copy bandwidth",
                               Unit::BytePerSecond,
                               bytes / copy.median,
                               bytes / copy.q3,
                               bytes / copy.minimum,
                               {}});
        } else {
            figures.push_back({"copy_time", "contiguous()", Unit::Second, 0.0});
        }
        figures.push_back({"pays_after", "copy pays off after (reads)", Unit::One,
                           paysAfter(view.median, dense.median, copySeconds)});
        time("view_total", "all reads, through the view", reads * view.median, reads * view.minimum, reads * view.q3);
        const double least = point.copies ? copy.minimum : 0, most = point.copies ? copy.q3 : 0;
        time("contiguous_total", "all reads, copied first", copySeconds + reads * dense.median,
             least + reads * dense.minimum, most + reads * dense.q3);
        return figures;
    }
};

} // namespace

Result<MeasuredRun> measureLayout(GpuSession& session, const SweepPlan& plan, RunSink& sink)
{
    // Checked before they are timed: the read, and every version that may be asked for.
    MEMSCAPE_TRY(asked, layoutCase(plan.parameters));
    for (int version = 0; version <= viewCopyVersions; ++version)
        MEMSCAPE_CHECK(passedCheck(checkView(version, int(asked.itemBytes()), session.multiprocessors())));
    MEMSCAPE_TRY(runStart, beginRun(session, sink));
    LayoutMeasurer measurer(session, plan, runStart);
    return runSweep(session, runStart, plan, measurer, sink);
}

} // namespace memscape::cuda
