// SPDX-License-Identifier: Apache-2.0
#include "core/training/step.h"

#include "core/training/optimizer_step.h"
#include "core/training/sharding.h"

#include <algorithm>

namespace memscape {

Result<Trace> simulateStep(const Graph& graph, const StepSettings& settings)
{
    const Plan& plan = settings.plan;
    MEMSCAPE_CHECK(checkPlan(plan));
    Trace trace;
    trace.reserve(graph.operators.size() * 6 * std::size_t(std::max(plan.accumulation, 1)));
    const std::vector<ParameterTensor> parameters = parameterTensors(graph, trace);
    Autograd autograd(graph, settings.checkpointing, settings.rules, trace,
                      placementOf(parameters, plan));
    autograd.setBlasWorkspace(settings.blasWorkspace);
    OptimizerBlocks optimizer = allocateOptimizer(trace, parameters, plan);
    trace.allocate(reduceBufferBytes(parameters, plan), Category::Communication,
                   trace.name("reduce bucket"));

    const bool isTraining = plan.phase == StepPhase::Training;
    for (int i = 0; i < (isTraining ? plan.accumulation : 1); ++i) {
        trace.enter(Phase::Forward, std::uint16_t(i));
        autograd.forward();
        if (!isTraining)
            continue;
        trace.enter(Phase::Backward, std::uint16_t(i));
        autograd.backward();
    }
    if (isTraining) {
        trace.enter(Phase::Optimizer);
        clipGradients(trace, parameters, plan);
        updateParameters(trace, plan, optimizer);
        std::vector<BlockId> gradients = autograd.gradients();
        zeroGradients(trace, plan, gradients);
        if (plan.setsGradientsToNone)
            autograd.forgetGradients();
    }
    MEMSCAPE_CHECK(trace.check());
    return trace;
}

} // namespace memscape
