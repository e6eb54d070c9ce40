// SPDX-License-Identifier: Apache-2.0
// How long N ranks take to reduce, gather or scatter a payload of n bytes in a ring over links with latency α and
// bandwidth β: steps × (α + (n/N) / β), in each of which every rank gives a piece to its neighbour
//     all-reduce 2 (N − 1) steps, reduce-scatter and all-gather N − 1
//     broadcast in N pieces: 2 (N − 1) steps, of which the root sends in N
// This is what ranks of a processor do here; between GPUs NCCL chooses (nccl.h). Source: Patarasuk and Yuan 2009 (J.
// Parallel Distrib. Comput. 69). Bytes and steps of a ring: core/training/communication.h.
//
// Ranks in several machines: a ring that leaves a machine goes through the network adapters of all its g members there,
// so it passes min(β, g × β of the network); a rank that sends to one other, or a part to each, has its own adapter
// alone. Ranks are numbered as by Megatron (core/parallel_state.py, order="tp-cp-ep-dp-pp") and PyTorch's device
// meshes: tensor parallelism innermost, the pipeline outermost.
//
// GPUs of a hybrid cube mesh (a DGX-1 with V100s: six links each, to four neighbours) share one or two links with one
// other, and four of them four with three: a device's links "peer of 2" and "peer of 4", its "peer" being all of them.
//
// Left out: networks that are thinner further up.
#pragma once

#include "core/training/communication.h"

namespace memscape {

/// What a collective passes from rank to rank: s, B/s in one direction.
struct RankLink
{
    double latency = 0, bandwidth = 0;
};

/// Where ranks are: so many in each machine (0: all in one), each with so much of the network, B/s in one direction.
struct Machines
{
    int ranks = 0;
    double network = 0;
};

/// Whether some of those that take part are in another machine.
bool leavesMachine(const Collective& one, const Machines& machines);
/// s for all its bytes, without latency; `peer`: B/s between devices of a machine, not 0 where some stay in one.
double exchangeSeconds(const Collective& one, double peer, const Machines& machines);

/// `payload`: B of the whole tensor, padded to whole pieces where it is. 0 s for one rank.
double ringSeconds(CollectiveKind kind, double payload, std::int64_t ranks, const RankLink& link);

} // namespace memscape
