// SPDX-License-Identifier: Apache-2.0
// What a step moves between devices, and to the host under offload. Ψ elements of trained
// parameters (their gradients' bytes), W bytes of all weights, m micro-batches:
//   stage 0  one all-reduce of the gradients per step                       2 Ψ
//   stage 1  one reduce-scatter of gradients, one all-gather of weights     2 Ψ per step
//   stage 2  a reduce-scatter per micro-batch, one all-gather of weights    (m + 1) Ψ
//   stage 3  per micro-batch two all-gathers of weights (forward, backward)
//            and a reduce-scatter of gradients                              3 m Ψ
// DeepSpeed's stages 1 and 2 sum whole buckets on every rank, 2 Ψ instead of Ψ each time, and keep their part (since
// 2023: runtime/zero/config.py, use_multi_rank_bucket_allreduce; 0.10 still sent each part to its rank alone).
// FSDP gathers its root (what lies outside of its units) in forward alone, its stage 2 everything: 2 m Ψ. Frozen
// matrices under QLoRA travel in NF4. A ring moves (N - 1) / N of the payload per device in a gather or a scatter,
// twice that in an all-reduce. Sources: Rajbhandari et al. 2020, section 7; Korthikanti et al. 2022, section 4.2.
//
// Tensor parallelism reduces the activations (s b h) after attention and after the MLP, forward and
// backward: four all-reduces per layer and micro-batch. Sequence parallelism replaces each by a
// reduce-scatter and an all-gather, the same bytes, and gathers two inputs again in backward;
// layers that are recomputed repeat their forward's two.
//
// Under HSDP a group of N / r ranks shards; its pieces of the gradients are then summed over r groups.
// Experts that e ranks share are reduced over N / e ranks; each token goes to its experts and back (all-to-all) forward
// and backward: 4 k t h a layer. Ranks that share a sequence pass keys and values round: c − 1 steps forward and
// backward, c for their gradients. A pipeline's rank sends s b h forward and backward at each border of its chunks, and
// sums the gradient of an embedding that is the head with the other rank that has it.
// Sources: Lepikhin et al. 2021 (GShard); Liu et al. 2023 (Ring Attention); Narayanan et al. 2021.
//
// Gradients of DDP go in buckets of 25 MiB where it reduces them behind backward (torch/nn/parallel/distributed.py,
// bucket_cap_mb), weights and gradients of FSDP unit by unit, those of DeepSpeed in its buckets (sharding.h).
//
// How long collectives take, latency included: core/timing/nccl.h and collectives.h. Left out: in-switch reductions,
// the loss and norms (scalars), vocabulary-parallel losses (two numbers per token).
#pragma once

#include "core/training/parameter_tensor.h"
#include "core/training/plan.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace memscape {

enum class CollectiveKind {
    AllReduce,
    ReduceScatter,
    AllGather,
    Broadcast,
    HostCopy,
    AllToAll, ///< of what each rank has, a part for every other
    Ring,     ///< each rank passes its payload on to the next, once
    Send      ///< from one rank to another
};
std::string_view collectiveText(CollectiveKind kind); ///< "all-reduce", …

/// Steps of a ring over `ranks`; in each, every rank sends one piece, 1/ranks of the payload, to its neighbour. A
/// broadcast is counted as it is cut into as many pieces as there are ranks. 0 for one rank and for host copies.
std::int64_t ringSteps(CollectiveKind kind, std::int64_t ranks);
/// What one rank sends of the payload, as a share, on the average of all ranks: 2 (N − 1) / N in an all-reduce,
/// (N − 1) / N in the others. 1 for a host copy, a step of a ring, a send.
double sentShare(CollectiveKind kind, std::int64_t ranks);

/// One collective, as often as a step does it.
struct Collective
{
    std::string_view what; ///< "gradients", "weights", "activations", …
    CollectiveKind kind = CollectiveKind::AllReduce;
    double payload = 0; ///< B of the whole tensor, once
    double count = 1;   ///< times per step
    int degree = 1;     ///< devices that take part
    int stride = 1;     ///< ranks from one of them to the next: tensor, context, data, pipeline, from the inside out
    double calls = 1;   ///< that the payload is cut into: buckets, units
    /// B that one device sends in a step.
    double sentBytes() const;
};
double sentBytes(const std::vector<Collective>& collectives);

/// Of data parallelism; empty for one replica.
std::vector<Collective> dataParallelCommunication(const std::vector<ParameterTensor>& parameters, const Plan& plan);

/// Of a pipeline's rank, by the chunks of its network; empty without one.
std::vector<Collective> pipelineCommunication(const Graph& graph, const Plan& plan);

/// Over the host link: gradients down, once a step or, when they are streamed, once a micro-batch;
/// weights up for an optimizer on the host, twice per micro-batch when they live there too.
std::vector<Collective> offloadCommunication(const std::vector<ParameterTensor>& parameters, const Plan& plan);

} // namespace memscape
