// SPDX-License-Identifier: Apache-2.0
// `layout` in PyTorch: the probe gets the operations as the line of Python that the page shows, and what sizes, strides
// and offset our rules say that they make; it refuses to time another tensor.
#include "core/access/views/view_code.h"
#include "core/experiments/layout/layout.h"
#include "kernels/programs/layout/layout_figures.h"
#include "kernels/pytorch/sampled_run.h"

#include <nlohmann/json.hpp>

namespace memscape {

namespace {

class LayoutInPytorch final : public ProbedMeasurement
{
public:
    using ProbedMeasurement::ProbedMeasurement;

    Result<Figures> figures(const Parameters& point, const MergedSamples& samples) override
    {
        MEMSCAPE_TRY(answer, answerLayout(device(), point));
        Figures figures = countedLayoutFigures(device(), answer);
        for (Figure& figure : figures)
            figure.why.reset(); // the reasons are the prediction's
        for (Figure& figure : sampledLayoutFigures(answer.asked, samples))
            figures.push_back(std::move(figure));
        return figures;
    }

protected:
    Result<void> add(Json& words, const Parameters& point) const override
    {
        MEMSCAPE_TRY(asked, layoutCase(point));
        if (asked.view.isEmpty())
            return fail("run.skipped", "a tensor without elements takes no time to read", "use sizes above 0", "shape");
        words["tensor"] = {
            {"base", {{"size", asked.base.size}, {"stride", asked.base.stride}, {"storage", asked.base.storage}}},
            {"code", pytorchCode(asked.steps)},
            {"size", asked.view.size},
            {"stride", asked.view.stride},
            {"offset", asked.view.offset},
            {"copies", asked.needsCopy()}};
        return {};
    }
    Result<void> take(const Parameters&, const JsonReader&) override { return {}; }
};

} // namespace

Result<MeasuredRun> measureLayoutInPytorch(PytorchProbe& probe, const Experiment& experiment,
                                           const Parameters& parameters)
{
    return runSampled<LayoutInPytorch>(probe, experiment, parameters);
}

} // namespace memscape
