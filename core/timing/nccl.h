// SPDX-License-Identifier: Apache-2.0
// What NCCL chooses for a collective of GPUs, and how long that takes: its own cost model (NVIDIA/nccl,
// src/graph/tuning.cc: ncclTopoTuneModel, ncclTopoGetAlgoTime), of which it takes the least
//
//     time = latency + payload / bandwidth
//
// for each algorithm and protocol:
//     ring       2 (N − 1) steps of an all-reduce, N − 1 of a gather or scatter; ring bandwidth × N / steps.
//                A broadcast goes once round in pieces that follow each other: all of the bandwidth, the latency of one
//                step
//     tree       all-reduces: up and down a chain within each machine and a double tree between machines; half of it
//     NVLS       the switch reduces (Hoppers behind NVSwitches, three GPUs and more; among machines a tree of
//                such machines, for all-reduces)
//     LL         8 bytes of which 4 say that they are there: half of the bandwidth, steps of a microsecond
//     LL128      120 of 128 bytes, over NVLink alone
//     Simple     all of the bandwidth, and fences
// Channels are rings at once, as many as the links of a GPU hold at the speed that NCCL's search ends with
// (src/graph/search.cc: speedArrayIntra and its like, ncclTopoDupChannels); a kernel has a block for each and its
// double (src/graph/connect.cc: 24 on an A100, 12 on a V100).
//
// Constants are those of commit b647562 (2.20 to 2.22), and of 2.27 and later what had changed: LL half of a ring,
// trees of Simple, NVLS by its switch's efficiency, Blackwell. A link carries what NCCL takes it for
// (src/graph/topo.h): of NVLink 2 and 3 20 GB/s of 25, of NVLink 4 20.6, of NVLink 5 40.1 of 50, of an NVLink of
// compute capability 8.6 12 of 14.1, of PCIe 12 of 15.75 and its doubles, of a network 24 of 25.
//
// NCCL's steps are the same on every GPU, and those of V100s (8 of them: 13.8 µs, gist jacobkahn, p3dn). Those of
// others were measured, and stand in their place once it has chosen; of LL by the time of 8 GPUs less NCCL's 6.6 µs,
// over 14 steps:
//     A100       33.7 µs (NVIDIA/nccl-tests, issue 123); LL128 and Simple take 4.5 and 6.2 µs a step by the all-reduces
//                of 2 and of 64 MiB in microsoft/superbenchmark's output of 8 (93.5 and 584.5 µs)
//     H100       19.2 µs (ByteDance-Seed/Triton-distributed, issue 57)
//     Blackwell  24 µs (vllm-project/vllm, pull request 37756)
// NVLS takes 70 µs beside its bytes, of which NCCL counts 25 (8 H100 or H200, 32 to 128 MiB: vllm-project/vllm, pull
// request 42324; with 25 it would be chosen from 2 MiB on, where a ring's times were measured). On Blackwell a ring's
// times were (pull request 37756): NVLS is a Hopper's here.
//
// An engine's own all-reduce (vLLM's, TensorRT-LLM's, PyTorch's for small tensors) stands in NCCL's place up to 8 MiB
// among GPUs of one machine (vllm-project/vllm, distributed/device_communicators/custom_all_reduce.py and
// csrc/custom_all_reduce.cuh): every rank reads all of the others (of two ranks, of four up to 512 KiB, of eight up to
// 256 KiB), or a part, and then the sums of the others.
//
// Sends and exchanges of parts pass their bytes by Simple after its latency.
//
// Errors: 10 % in the mean of 120 published times of its all-reduce, of which eight have set the steps above: 1 to 14 %
// by run, but four H100 (23 %, too long) and two boards over PCIe (22 %; tst_nccl). Of 94 others that have set nothing,
// in collectives.json there, large payloads are met within 11 %; small ones of one process for all GPUs take as
// long as its launches, those of another machine of 8 A100 are predicted 8 to 43 % too long (its latency is 24 µs).
//     all-to-all, sends     13 to 31 % too quick: they reach 195 GB/s of an A100's 240
//     two boards of one switch, through the host: 24 to 47 % too quick, but broadcasts, which pass one way
//
// Left out: trees between two machines that run faster within them (NCCL's search allows twice the network; published
// times of large payloads are a ring's: NVIDIA/nccl, issue 371), which NCCL a library ships, CollNet, PAT, tuner
// plugins (AWS, Google), CPUs of other makers than Intel, what lies between the processors of a machine of PCIe boards
// (NCCL takes 16 GB/s of AMD's, 10 of Intel's Skylake: src/graph/topo.h), several communicators that share links at
// once, registered buffers.
#pragma once

#include "core/device/device.h"
#include "core/timing/collectives.h"

#include <optional>
#include <string>
#include <vector>

namespace memscape {

enum class NcclAlgorithm : std::uint8_t { Tree, Ring, Nvls, NvlsTree };
enum class NcclProtocol : std::uint8_t { LL, LL128, Simple };

/// How GPUs of a kind are joined.
struct NcclLink
{
    enum class Generation : std::uint8_t { Volta, Ampere, Hopper, Blackwell };
    Generation generation = Generation::Volta;
    bool isNvlink = false;
    bool switchReduces = false; ///< NVLink SHARP
    double share = 1;           ///< of the specified bandwidth, what NCCL takes a link for
};
/// `id`: the device's link between its like ("peer"), or to its host's memory ("host"), through which NCCL's SHM goes.
NcclLink ncclLink(const Device& device, const std::string& id = "peer");

/// Rings or trees at once, and what each carries.
struct NcclChannels
{
    int count = 1;
    double bandwidth = 0; ///< B/s
    double total() const { return count * bandwidth; }
};
/// `total`: B/s of a GPU's links as NCCL takes them; `isInMachine`: no rank is in another one.
NcclChannels ncclChannels(double total, NcclLink::Generation generation, bool isInMachine);
/// Blocks of a collective's kernel, each of which keeps a multiprocessor.
int ncclBlocks(const NcclChannels& channels);

/// Who takes part: so many ranks in so many machines.
struct NcclRanks
{
    int ranks = 1, machines = 1;
    double peer = 0;    ///< B/s between two in a machine, one way, as NCCL takes it
    double network = 0; ///< B/s of each rank's adapter, the same
    int inMachine() const { return std::max(1, ranks / std::max(1, machines)); }
};

struct NcclChoice
{
    NcclAlgorithm algorithm = NcclAlgorithm::Ring;
    NcclProtocol protocol = NcclProtocol::Simple;
    double latency = 0;   ///< s
    double bandwidth = 0; ///< payload B/s
    int channels = 0;     ///< rings or trees at once
    double seconds(double payload) const { return latency + payload / bandwidth; }
    std::string text() const; ///< "ring, LL128"
};
/// Of an all-reduce, a reduce-scatter, an all-gather or a broadcast of `payload` B; two ranks at least.
NcclChoice ncclChoice(CollectiveKind kind, double payload, const NcclRanks& ranks, const NcclLink& link);

/// s of all of a collective's calls. `peer`, `machines`: B/s as specified. 0 where nothing is sent.
double ncclSeconds(const Collective& one, double peer, const Machines& machines, const NcclLink& link);
/// What NCCL chooses for it; none for what it does not choose for.
std::optional<NcclChoice> ncclChoiceOf(const Collective& one, double peer, const Machines& machines,
                                       const NcclLink& link);
/// From so many bytes of payload on, up to the next one, NCCL takes this.
struct NcclRange
{
    double from = 0;
    NcclChoice choice;
};
/// What it chooses from 1 KiB to 16 GiB, by powers of two; alike ones together.
std::vector<NcclRange> ncclRanges(CollectiveKind kind, const NcclRanks& ranks, const NcclLink& link);
/// The same for those that take part in a collective, whatever its payload; empty for what NCCL does not choose for.
std::vector<NcclRange> ncclRangesOf(const Collective& one, double peer, const Machines& machines, const NcclLink& link);

/// s of an all-reduce by an engine's own kernel, which starts and meets the others in `start` s and passes a link once
/// more in `pass` s where it reduces parts; NaN where the engine asks NCCL.
double ownReduceSeconds(const Collective& one, double start, double pass, double peer, const Machines& machines,
                        const NcclLink& link);

} // namespace memscape
