// SPDX-License-Identifier: Apache-2.0
// What every operator of a recorded network takes on a device, forward and backward: on a GPU what its shapes reach or
// the roofline's floor, on a processor its calls and loops, by the options of operator_time.h. A clock books runs into
// a step's sums.
//
// Left out: what operator_time.h and operator_cost.h leave out.
#pragma once

#include "core/timing/operator_time.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace memscape {

/// On a processor. `rates` are those of the plan's formats; other formats than FP32 run as much faster.
TimeParts hostParts(const HostOperations& host, const DeviceRates& rates, const OperatorCost& cost, double efficiency);

/// One operator, forward or backward.
struct OperatorRun
{
    TimeParts parts;    ///< s; on a GPU all of it under what holds it
    double flops = 0;   ///< of a product
    double kernels = 0; ///< dispatched
    double calls = 0;   ///< of eager PyTorch's host (eager_calls.h)
    bool isAttention = false;

    /// Where it runs for a part of its calls.
    void scale(double share)
    {
        parts = {share * parts.calls, share * parts.memory, share * parts.arithmetic, share * parts.turned};
        flops *= share;
        kernels *= share;
    }
};

/// Measures runs, and books them into a step.
class OperatorClock
{
public:
    OperatorClock(const DeviceRates& rates, const StepTimeOptions& options, StepTime& time);
    OperatorRun measured(const OperatorCost& cost) const;
    /// A pass over memory besides.
    void addPass(OperatorRun& run, double bytes, double kernels) const;
    /// Gradients of so many bytes, each added to one that is there.
    void addSums(OperatorRun& run, double bytes, double count) const;
    /// Books it as run so often, under what holds it; the seconds.
    double book(const OperatorRun& run, double times);

private:
    TimeParts deviceParts(const OperatorCost& cost) const;

    const DeviceRates& m_rates;
    double m_efficiency;
    const HostOperations* m_host;
    const PytorchOperations* m_pytorch;
    const DeviceKernels* m_kernels;
    StepTime& m_time;
};

/// What every operator takes; a copy (Graph::copies) takes what it was copied from takes.
class OperatorRuns
{
public:
    OperatorRuns(const Graph& graph, const Plan& plan, const OperatorClock& clock, const StepTimeOptions& options);
    std::size_t size() const { return m_index.size(); }
    const OperatorRun& forward(std::size_t op) const { return m_runs[m_index[op]].first; }
    const OperatorRun& backward(std::size_t op) const { return m_runs[m_index[op]].second; }

private:
    void addSums(const Graph& graph, const Operator& op, const OperatorClock& clock, std::vector<bool>& used);

    std::vector<std::uint32_t> m_index;
    std::vector<std::pair<OperatorRun, OperatorRun>> m_runs;
};

} // namespace memscape
