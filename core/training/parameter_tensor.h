// SPDX-License-Identifier: Apache-2.0
// A parameter as optimizers, sharding and adapters see it: a name, a shape, whether it is trained.
#pragma once

#include "core/base/few.h"
#include "core/network/graph.h"
#include "core/trace/trace.h"

#include <cstdint>
#include <string>
#include <vector>

namespace memscape {

struct ParameterTensor
{
    std::string name; ///< "layers.3.attn.q_proj.weight"
    using Sizes = Few<std::int64_t, maxRank>;
    Sizes shape;
    std::int64_t elements = 0; ///< the product of the shape
    bool isTrained = true;
    bool isEmbedding = false; ///< an embedding or the output head: Muon and LoRA leave these alone
    ModuleId module = 0;      ///< of the trace
    /// B where it is stored in a form of its own: beside adapters. 0: in the precision of the plan.
    std::int64_t storedBytes = 0;
    bool isExpert = false; ///< one of those that ranks can share

    bool isMatrix() const { return shape.size() == 2; }
};

/// The parameters of a recorded network, in its order, with module ids of `trace`. An output head
/// is recognised as the last product whose matrix has as many rows as the largest embedding.
std::vector<ParameterTensor> parameterTensors(const Graph& graph, Trace& trace);

/// Elements of all, and of those that are trained. Sums stay below 2^63: a network is checked when
/// it is built.
std::int64_t elementCount(const std::vector<ParameterTensor>& parameters);
std::int64_t trainedCount(const std::vector<ParameterTensor>& parameters);

} // namespace memscape
