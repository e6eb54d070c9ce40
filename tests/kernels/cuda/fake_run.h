// SPDX-License-Identifier: Apache-2.0
// One measurement of the whole backend on the fake GPU (fake_gpu.h), with the prediction beside it.
#pragma once

#include "core/experiment/experiment.h"
#include "tests/kernels/cuda/fake_backend.h"
#include "tests/support/listener.h"

#include <memory>
#include <string>
#include <vector>

namespace memscape {

struct FakeRun
{
    Result<MeasuredRun> run;
    Prediction predicted; ///< empty when there is none
};

/// `given`: KEY=VALUE. What is wrong with them is the run's error.
inline FakeRun runOnFake(const char* experimentId, const std::vector<std::string>& given, RunSink& sink)
{
    const std::unique_ptr<Backend> gpu = backend();
    const auto experiment = findExperiment(experimentId);
    const auto parameters = resolve((*experiment)->schema(), given);
    if (!parameters)
        return {fail(parameters.error()), {}};
    const BackendDevice device = gpu->devices().front();
    const auto predicted = (*experiment)->predict(device.device, *parameters);
    return {gpu->measure(**experiment, device, *parameters, sink), predicted ? *predicted : Prediction()};
}

/// A run that is listened to, and its figures; NaN for one that is not there.
struct ListenedRun
{
    test::Listener listener;
    FakeRun ran;

    ListenedRun(const char* experimentId, const std::vector<std::string>& given)
        : ran(runOnFake(experimentId, given, listener))
    { }
    std::string error() const { return ran.run ? std::string() : ran.run.error().text(); }
    double measured(const char* key) const { return ran.run ? numberOf(ran.run->measurement.figures, key) : nan; }
    double predicted(const char* key) const { return numberOf(ran.predicted.figures, key); }

private:
    static double numberOf(const Figures& figures, const char* key)
    {
        const Figure* const figure = findFigure(figures, key);
        return figure ? figure->number() : nan;
    }
};

} // namespace memscape
