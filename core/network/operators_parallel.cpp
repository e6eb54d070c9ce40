// SPDX-License-Identifier: Apache-2.0
// What devices that share a layer exchange (Shoeybi et al. 2019; Korthikanti et al. 2022).
//
//                      tensor parallel             with sequence parallelism
//   into columns       nothing (backward: a sum)   gather along the sequence (backward: scatter)
//   out of rows        all-reduce, in place        reduce-scatter (backward: gather)
//
// A product does not keep its gathered input: it keeps the part, and its backward gathers again
// (Megatron's LinearWithGradAccumulationAndAsyncCommunication). Autocast casts before the exchange.
// Ranks that share experts exchange tokens (Lepikhin et al. 2021). Routing is taken to be even: all send alike.
//
// Left out: overlap of exchange and product, NCCL's own buffers.
#include "core/network/builder.h"

#include <array>

#include <fmt/format.h>

namespace memscape {

Variable NetworkBuilder::columnInput(Variable x)
{
    if (m_options.tensorParallel == 1 || !m_options.sequenceParallel)
        return x;
    x = lowPrecision(std::move(x));
    if (!ok())
        return {};
    Shape whole = x.shape();
    whole[1] *= m_options.tensorParallel;
    const TensorId part = x.id();
    Variable result = record(OperatorKind::AllGather, {part}, {Layout(whole), x.dtype()});
    const StorageId storage = m_graph.tensors[result.id()].storage;
    m_gathered.resize(storage + 1);
    m_gathered[storage] = {result.id(), part};
    retain(part); // until no name of the whole is left: a product may still pack the part
    return settled(std::move(result), x);
}

Variable NetworkBuilder::allToAll(Variable x)
{
    if (!ok())
        return {};
    return settled(record(OperatorKind::AllToAll, {x.id()}, {Layout(x.shape()), x.dtype()}), x);
}

Variable NetworkBuilder::rowOutput(Variable x)
{
    if (m_options.tensorParallel == 1 || !ok())
        return x;
    const std::int64_t devices = m_options.tensorParallel;
    if (!m_options.sequenceParallel) {
        begin(OperatorKind::AllReduce, std::array{x.id()});
        m_graph.operators.back().inPlace = true;
        Variable summed{*this, addOutput({x.layout(), x.dtype(), false}, true)};
        return settled(std::move(summed), x);
    }
    Shape part = x.shape();
    if (part.rank < 2 || part[1] % devices != 0) {
        refuse("network.parallel",
               fmt::format("{} positions cannot be shared evenly by {} devices", x.size(1), devices),
               "choose a sequence that is a multiple of tensor_parallel");
        return {};
    }
    part[1] /= devices;
    return settled(record(OperatorKind::ReduceScatter, {x.id()}, {Layout(part), x.dtype()}), x);
}

} // namespace memscape
