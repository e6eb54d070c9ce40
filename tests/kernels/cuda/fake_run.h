// SPDX-License-Identifier: Apache-2.0
// One measurement of the whole backend on the fake GPU (fake_gpu.h), with the prediction beside it.
#pragma once

#include "core/experiment/experiment.h"
#include "kernels/cuda/module.h"
#include "tests/kernels/cuda/fake_gpu.h"

#include <memory>
#include <string>
#include <vector>

extern "C" const memscape::cuda::Module* memscape_cuda_module();

namespace memscape {

struct FakeRun
{
    Result<MeasuredRun> run;
    Prediction predicted; ///< empty when there is none
};

/// `given`: KEY=VALUE. What is wrong with them is the run's error.
inline FakeRun runOnFake(const char* experimentId, const std::vector<std::string>& given, RunSink& sink)
{
    const std::unique_ptr<Backend> backend(memscape_cuda_module()->makeBackend());
    const auto experiment = findExperiment(experimentId);
    const auto parameters = resolve((*experiment)->schema(), given);
    if (!parameters)
        return {fail(parameters.error()), {}};
    const BackendDevice device = backend->devices().front();
    const auto predicted = (*experiment)->predict(device.device, *parameters);
    return {backend->measure(**experiment, device, *parameters, sink), predicted ? *predicted : Prediction()};
}

} // namespace memscape
