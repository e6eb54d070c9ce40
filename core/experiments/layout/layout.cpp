// SPDX-License-Identifier: Apache-2.0
// layout: what is a view, and when must it be copied?
//
// A view changes sizes, strides and an offset, and no memory (core/access/views). Its cost appears when it is read:
// neighbours in the walk may be far apart in memory. The model resolves the walk's requests, simulates its cache
// misses, and compares reading through the view with contiguous() and reading that (core/timing/layout_time.h):
//     copy pays after  reads = copy / (view − contiguous)
// Left out: see the omits of each figure.
#include "core/experiments/layout/layout.h"

#include "core/experiments/common/answers.h"
#include <algorithm>
#include <cmath>
#include <limits>

namespace memscape {

namespace {

class LayoutExperiment final : public Experiment
{
public:
    std::string id() const override { return "layout"; }
    std::string title() const override { return "Layout"; }
    std::string question() const override { return "What is a view, and when must it be copied?"; }
    std::string group() const override { return "tensors"; }
    std::string help() const override
    {
        return "A tensor is a storage with sizes, strides and an offset. A view changes these and moves nothing; its "
               "cost appears when it is read in another order than that of its storage. The operations follow "
               "PyTorch's rules, refusals included. The model counts the sectors, lines and pages that a walk over "
               "the result touches, simulates its cache misses, and says after how many reads contiguous() pays off. "
               "Left out: other programs, page walks, hashed cache sets.";
    }
    bool isMeasuredInPytorch() const override { return true; }
    const Schema& schema() const override { return m_schema; }
    std::vector<std::string> headlines() const override
    {
        return {"view_time", "contiguous_time", "copy_time", "pays_after"};
    }
    ShortAnswer shortAnswer(const Device&, const Parameters&, const Figures& figures) const override
    {
        return layoutAnswer(figures);
    }
    std::vector<SeriesSpec> series() const override
    {
        return {{"view_total", "through the view"}, {"contiguous_total", "copy, then contiguous"}};
    }
    Sweep axis(const Device&, const Parameters&) const override { return {"reads", {1.0, 2.0, 4.0, 8.0, 16.0}}; }
    Result<Figures> predictPoint(const Device& device, const Parameters& parameters) const override
    {
        MEMSCAPE_TRY(answer, answerLayout(device, parameters));
        return figuresOf(device, answer);
    }
    Result<Prediction> predict(const Device& device, const Parameters& parameters,
                               PredictionContext& context) const override;
    std::vector<Claim> claims(const Device& device, const Parameters& parameters,
                              const Measurement& measured) const override
    {
        Parameters own = parameters;
        own.setSweep({});
        const auto answer = answerLayout(device, own);
        return answer ? layoutClaims(device, *answer, measured) : std::vector<Claim>();
    }

private:
    static Figures figuresOf(const Device& device, const LayoutAnswer& answer)
    {
        Figures figures = countedLayoutFigures(device, answer);
        for (Figure& figure : missedLayoutFigures(answer))
            figures.push_back(std::move(figure));
        for (Figure& figure : timedLayoutFigures(device, answer))
            figures.push_back(std::move(figure));
        return figures;
    }

    Schema m_schema = layoutSchema();
};

/// One walk answers every number of reads: the sweep over them is not asked point by point.
Result<Prediction> LayoutExperiment::predict(const Device& device, const Parameters& parameters,
                                             PredictionContext& context) const
{
    Parameters own = parameters;
    own.setSweep({});
    MEMSCAPE_TRY(answer, answerLayout(device, own));
    Json detail = layoutDetail(device, answer);
    Prediction prediction;
    const Sweep sweep = sweepOf(*this, device, parameters);
    if (sweep.key == "reads") {
        const SeriesAxis axis = axisOf(*this, sweep);
        std::vector<Point> points;
        for (std::size_t i = 0; i < sweep.values.size(); ++i) {
            LayoutAnswer one = answer;
            one.asked.reads = std::int64_t(std::get<double>(sweep.values[i]));
            points.push_back({axis.values[i], valueText(sweep.values[i]), timedLayoutFigures(device, one), {}});
        }
        prediction.series = seriesFromPoints(series(), axis, points);
        prediction.figures = figuresOf(device, answer);
    } else {
        MEMSCAPE_TRY(swept, Experiment::predict(device, parameters, context));
        prediction = std::move(swept);
    }
    detail.update(prediction.detail.is_object() ? prediction.detail : Json::object());
    const std::vector<Claim> claimed = layoutClaims(device, answer, {});
    if (!claimed.empty())
        detail["claims"] = claimsJson(claimed);
    prediction.detail = std::move(detail);
    return prediction;
}

} // namespace

TensorView LayoutCase::dense() const
{
    if (!needsCopy())
        return view;
    const Sizes stride = stridesOf(view.size, MemoryFormat::Contiguous);
    TensorView copy{view.size, stride, 0, 0};
    copy.storage = copy.extent();
    return copy;
}

std::int64_t LayoutCase::copiedBytes() const
{
    std::int64_t elements = 0;
    for (const ViewStep& step : steps)
        elements += step.written;
    return elements * itemBytes();
}

Result<LayoutCase> layoutCase(const Parameters& parameters)
{
    LayoutCase asked;
    MEMSCAPE_TRY(shape, parseShape(parameters.text("shape")));
    auto base = freshTensor(shape, storedOrder(parameters, shape.size()));
    if (!base) {
        Error error = std::move(base).error();
        error.place = error.code == "layout.format" ? "order" : "shape";
        return fail(std::move(error));
    }
    asked.base = std::move(*base);
    asked.dtype = layoutDType(parameters);
    MEMSCAPE_TRY(operations, parseViews(parameters.text("views")));
    MEMSCAPE_SET(asked.steps, applyAll(asked.base, operations, asked.itemBytes()));
    asked.view = asked.steps.empty() ? asked.base : asked.steps.back().view;
    asked.order = walkOrder(parameters);
    asked.reads = parameters.integer("reads");
    asked.version = int(parameters.integer("version"));
    return asked;
}

Result<LayoutAnswer> answerLayout(const Device& device, const Parameters& parameters)
{
    MEMSCAPE_TRY(asked, layoutCase(parameters));
    LayoutAnswer answer;
    const TensorWalk walk = asked.walk();
    const auto line = std::uint64_t(device.lineBytes);
    // Hosts have no sectors; 32 bytes are counted all the same, to compare with a GPU.
    MEMSCAPE_SET(answer.requests, walkRequests(walk, {std::uint64_t(device.isGpu() ? device.sectorBytes : 32), line}));
    answer.lines = distinctGranules(walk, line);
    answer.pages = distinctGranules(walk, 4096);
    MEMSCAPE_SET(answer.view, walkTime(device, walk));
    answer.dense = answer.view;
    if (asked.needsCopy()) {
        MEMSCAPE_SET(answer.dense, walkTime(device, asked.denseWalk()));
        MEMSCAPE_SET(answer.copy, copyTime(device, asked.copyWalk(), asked.version));
    }
    answer.asked = std::move(asked);
    return answer;
}

double paysAfter(double viewSeconds, double denseSeconds, double copySeconds)
{
    if (copySeconds == 0)
        return 0;
    if (!(viewSeconds > denseSeconds))
        return std::numeric_limits<double>::infinity();
    return std::max(1.0, std::ceil(copySeconds / (viewSeconds - denseSeconds)));
}

const Experiment& layoutExperiment()
{
    static const LayoutExperiment experiment;
    return experiment;
}

} // namespace memscape
