// SPDX-License-Identifier: Apache-2.0
#include "core/timing/nccl.h"

#include "core/base/number.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <span>
#include <string_view>

#include <fmt/format.h>

namespace memscape {

namespace {

using Protocols = std::array<double, 3>; ///< of LL, LL128, Simple
using Scales = std::array<double, 3>;    ///< of one machine, two, more

constexpr double micro = 1e-6, giga = 1e9;

struct AlgorithmLatency
{
    Protocols base, nvlink, pci, network; ///< µs
};
constexpr std::array<AlgorithmLatency, 4> latencies{{
    {{6.8, 14.0, 8.4}, {0.6, 1.25, 4.0}, {1.0, 1.9, 4.0}, {5.0, 8.5, 14.0}}, // tree
    {{6.6, 14.0, 8.4}, {0.6, 1.9, 3.4}, {1.0, 2.5, 5.7}, {2.7, 4.0, 14.0}},  // ring
    {{}, {0, 0, 70}, {}, {0, 0, 18}},                                        // NVLS
    {{}, {0, 0, 70}, {}, {0, 0, 20.9}},                                      // NVLS tree
}};

/// By generation; GB/s, of LL all channels together, of the others each.
struct Limits
{
    Scales oneMachine; ///< of these the first: LL among machines is its processor's
    Scales ringLL128, treeLL128, tree, nvlsTree;
    double switchEfficiency;
    Protocols steps; ///< µs within a machine, where they are not NCCL's
};
constexpr std::array<Limits, 4> limits{{
    {{39.0}, {20, 20, 20}, {20, 20, 20}, {26.5, 18.5, 10}, {}, 0, {}},
    {{87.7}, {20, 20, 20}, {20, 20, 20}, {24, 23.6, 17.8}, {}, 0, {1.9, 4.5, 6.2}},
    {{141.0}, {36.7, 36.7, 36.7}, {36.7, 36.7, 29}, {38.7, 41.4, 36}, {0, 57.7, 45.5}, 0.85, {0.9}},
    {{282.0}, {40, 40, 40}, {55.6, 31.67, 20}, {70, 42.8, 24}, {0, 96, 80}, 0.74, {1.25}},
}};
constexpr Scales llAmongMachines{0, 39.0, 20.4}; ///< GB/s, of Intel's processors

// GB/s of a channel that the search tries, one after the other.
constexpr std::array<double, 13> speedsInside{40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3};
constexpr std::array<double, 19> speedsAmong{48, 30, 28, 24, 20, 18,  15,  12,   10,  9,
                                             7,  6,  5,  4,  3,  2.4, 1.2, 0.24, 0.12};
constexpr std::array<double, 11> hopperInside{60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3};
constexpr std::array<double, 17> hopperAmong{48, 45, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, 0.24, 0.12};
constexpr std::array<double, 11> blackwellInside{90, 80, 70, 60, 50, 40, 30, 24, 20, 19, 18};
constexpr std::array<double, 18> blackwellAmong{96,   48, 45.1, 42, 40, 30,  24,  22,   20,
                                                17.5, 15, 12,   6,  3,  2.4, 1.2, 0.24, 0.12};

std::span<const double> speedsOf(NcclLink::Generation generation, bool isInMachine)
{
    switch (generation) {
    case NcclLink::Generation::Hopper:
        return isInMachine ? std::span<const double>(hopperInside) : std::span<const double>(hopperAmong);
    case NcclLink::Generation::Blackwell:
        return isInMachine ? std::span<const double>(blackwellInside) : std::span<const double>(blackwellAmong);
    default: return isInMachine ? std::span<const double>(speedsInside) : std::span<const double>(speedsAmong);
    }
}

/// Of tree bandwidth, by the power of two of 64 B that a payload reaches: 64 B to 256 MiB.
constexpr std::array<std::array<double, 23>, 3> treeCorrection{{
    {1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1},
    {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1},
    {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9},
}};

constexpr int mostChannels = 16; ///< of a search: half of MAXCHANNELS
constexpr double protocolShare = 0.92, treeInMachine = 7.0 / 9, treeAmongMachines = 120.0 / 128;
constexpr double networkShare = 0.96; ///< 24 of 25 GB/s
constexpr double mostOfEngine = 8.0 * 1024 * 1024;
constexpr double leastRange = 0x1p10, mostRange = 0x1p34; ///< B

/// What a choice is made among.
struct Case
{
    CollectiveKind kind = CollectiveKind::AllReduce;
    double payload = 0;
    const NcclRanks& ranks;
    const NcclLink& link;
    NcclChannels channels = {};
    const Limits& limit;
    std::size_t scale = 0; ///< of Scales

    bool isAllReduce() const { return kind == CollectiveKind::AllReduce; }
    bool isBroadcast() const { return kind == CollectiveKind::Broadcast; }
    int steps() const { return isBroadcast() ? ranks.ranks : (isAllReduce() ? 2 : 1) * (ranks.ranks - 1); }
    int betweenMachines() const { return ranks.machines == 1 ? 0 : (isAllReduce() ? 2 : 1) * (ranks.machines - 1); }
    double doublings() const { return double(std::bit_width(unsigned(ranks.machines)) - 1); }
};

/// B/s of a ring or a tree before what the kind makes of it; 0 where NCCL does not use it.
double busBandwidth(const Case& one, NcclAlgorithm algorithm, std::size_t protocol)
{
    const double channels = one.channels.count, all = one.channels.total() / giga;
    const bool isLL = protocol == 0, isLL128 = protocol == 1;
    const double llMost = one.ranks.machines == 1 ? one.limit.oneMachine[0] : llAmongMachines[one.scale];
    if (isLL128 && !one.link.isNvlink)
        return 0;
    if (algorithm == NcclAlgorithm::Ring) {
        const double bus = isLL ? std::min(llMost, all * 0.5)
            : isLL128           ? std::min(all * protocolShare, channels * one.limit.ringLL128[one.scale])
                                : all;
        return bus * giga;
    }
    double bus = std::min(all * protocolShare, channels * one.limit.tree[one.scale]);
    if (isLL)
        bus = std::min(bus / 3.8, llMost);
    if (isLL128)
        bus = std::min(bus * (one.ranks.machines == 1 ? treeInMachine : treeAmongMachines),
                       channels * one.limit.treeLL128[one.scale]);
    return bus * giga;
}

/// The switch has a channel for each GPU of a machine.
double switchBandwidth(const Case& one, bool isTree)
{
    const int heads = one.ranks.inMachine();
    const auto speeds = speedsOf(one.link.generation, true);
    const auto fits = std::find_if(speeds.begin(), speeds.end(),
                                   [&](double speed) { return speed * heads * giga <= one.ranks.peer * (1 + 1e-9); });
    if (fits == speeds.end())
        return 0;
    double each = *fits * one.limit.switchEfficiency * (heads - 1) / heads
        * (one.isAllReduce() ? 2.0 : double(heads - 1) / heads);
    if (isTree)
        each = std::min(
            {each, one.ranks.network / giga * (one.ranks.machines <= 2 ? 2 : 1), one.limit.nvlsTree[one.scale]});
    return each * heads * giga;
}

NcclChoice chosen(const Case& one, NcclAlgorithm algorithm, std::size_t protocol, bool isMeasured)
{
    NcclChoice choice{algorithm, NcclProtocol(protocol)};
    choice.channels = one.channels.count;
    const AlgorithmLatency& latency = latencies[std::size_t(algorithm)];
    const bool isSwitch = algorithm == NcclAlgorithm::Nvls || algorithm == NcclAlgorithm::NvlsTree;
    const bool isTree = algorithm == NcclAlgorithm::Tree || algorithm == NcclAlgorithm::NvlsTree;
    const double bus = isSwitch ? switchBandwidth(one, isTree) : busBandwidth(one, algorithm, protocol);
    const bool countsSteps = algorithm == NcclAlgorithm::Ring || (isSwitch && one.isAllReduce());
    choice.bandwidth = bus
        * (algorithm == NcclAlgorithm::Tree ? 0.5
               : countsSteps                ? double(one.ranks.ranks) / one.steps()
                                            : 1);
    double inside = one.link.isNvlink ? latency.nvlink[protocol] : latency.pci[protocol];
    if (isMeasured && !isSwitch && one.link.isNvlink && one.limit.steps[protocol] > 0)
        inside *= one.limit.steps[protocol] / latencies[std::size_t(NcclAlgorithm::Ring)].nvlink[protocol];
    const double among = one.ranks.inMachine() == 1 ? latencies[std::size_t(NcclAlgorithm::Tree)].network[protocol]
                                                    : latency.network[protocol];
    double micros = latency.base[protocol];
    switch (algorithm) {
    case NcclAlgorithm::Ring: {
        const double posting = one.ranks.machines == 1 ? 0 : protocol == 2 ? 3 : 1; // µs of the network's calls
        const int stepsAmong = one.betweenMachines();
        micros += one.isBroadcast() ? (stepsAmong > 0 ? among : inside)
                                    : (one.steps() - stepsAmong) * std::max(inside, posting) + stepsAmong * among;
        const bool isPlateau = protocol == 2 && one.ranks.machines > 1 && one.isAllReduce()
            && one.payload / (2.0 * one.channels.count * one.ranks.ranks) >= 64;
        micros *= !isPlateau ? 1 : one.link.generation == NcclLink::Generation::Volta ? 1.9 : 1.4;
        break;
    }
    case NcclAlgorithm::Tree: micros += 2 * ((one.ranks.inMachine() - 1) * inside + one.doublings() * among); break;
    case NcclAlgorithm::Nvls: micros = inside; break;
    case NcclAlgorithm::NvlsTree: micros += inside + 2 * one.doublings() * among; break;
    }
    choice.latency = micros * micro;
    if (algorithm == NcclAlgorithm::Tree) {
        const auto power = std::size_t(std::max(0.0, std::floor(std::log2(std::max(1.0, one.payload / 64)))));
        choice.bandwidth *= power < treeCorrection[protocol].size() ? treeCorrection[protocol][power] : 1;
    }
    return choice;
}

std::string_view algorithmText(NcclAlgorithm algorithm)
{
    switch (algorithm) {
    case NcclAlgorithm::Tree: return "tree";
    case NcclAlgorithm::Ring: return "ring";
    case NcclAlgorithm::Nvls: return "NVLS";
    case NcclAlgorithm::NvlsTree: return "NVLS tree";
    }
    return "";
}

std::string_view protocolText(NcclProtocol protocol)
{
    return protocol == NcclProtocol::LL ? "LL" : protocol == NcclProtocol::LL128 ? "LL128" : "Simple";
}

NcclRanks ranksOf(const Collective& one, double peer, const Machines& machines, const NcclLink& link)
{
    NcclRanks ranks;
    ranks.ranks = one.degree;
    ranks.peer = peer * link.share;
    ranks.network = machines.network * networkShare;
    if (leavesMachine(one, machines)) {
        const int inside = std::clamp((machines.ranks + one.stride - 1) / one.stride, 1, one.degree);
        ranks.machines = (one.degree + inside - 1) / inside;
    }
    return ranks;
}

bool isChosenFor(CollectiveKind kind)
{
    return kind == CollectiveKind::AllReduce || kind == CollectiveKind::ReduceScatter
        || kind == CollectiveKind::AllGather || kind == CollectiveKind::Broadcast;
}

} // namespace

NcclLink ncclLink(const Device& device, const std::string& id)
{
    using enum NcclLink::Generation;
    NcclLink link;
    const std::string& architecture = device.architecture;
    link.generation = architecture == "Blackwell"             ? Blackwell
        : architecture == "Hopper"                            ? Hopper
        : architecture == "Volta" || architecture == "Turing" ? Volta
                                                              : Ampere;
    const Link* const peer = device.link(id);
    constexpr double ofPcie = 12 / 15.75, pcie4 = 32e9; // B/s of 16 lanes
    link.isNvlink = peer && peer->label.starts_with("NVLink") && peer->bandwidth.value > pcie4;
    link.switchReduces = link.isNvlink && !peer->label.ends_with("bridge") && link.generation == Hopper;
    if (!peer || peer->bandwidth.evidence != Evidence::Specified)
        return link;
    link.share = !link.isNvlink             ? ofPcie
        : link.generation == Hopper         ? 20.6 / 25
        : link.generation == Blackwell      ? 40.1 / 50
        : device.computeCapability == "8.6" ? 12 / 14.0625
                                            : 20.0 / 25;
    return link;
}

NcclChannels ncclChannels(double total, NcclLink::Generation generation, bool isInMachine)
{
    NcclChannels best;
    for (const double speed : speedsOf(generation, isInMachine)) {
        const int count = std::min(mostChannels, int(total / (speed * giga) + 1e-9));
        if (count * speed * giga > best.total())
            best = {count, speed * giga};
    }
    if (best.bandwidth == 0)
        return {1, total};
    const double each = best.bandwidth / giga;
    const bool isAfterAmpere = generation >= NcclLink::Generation::Hopper;
    if (each >= 25 && !(isAfterAmpere && each < 50 && best.count > 4)) {
        const int doubled = std::min(2 * best.count, mostChannels);
        best.bandwidth /= (doubled + best.count - 1) / best.count;
        best.count = doubled;
    }
    return best;
}

int ncclBlocks(const NcclChannels& channels)
{
    return 2 * channels.count;
}

std::string NcclChoice::text() const
{
    return fmt::format("{}, {}", algorithmText(algorithm), protocolText(protocol));
}

NcclChoice ncclChoice(CollectiveKind kind, double payload, const NcclRanks& ranks, const NcclLink& link)
{
    using enum NcclAlgorithm;
    const bool isInMachine = ranks.machines == 1;
    const double total = isInMachine ? ranks.peer
        : ranks.inMachine() == 1     ? ranks.network
                                     : std::min(ranks.peer, ranks.inMachine() * ranks.network);
    const Case one{kind,
                   payload,
                   ranks,
                   link,
                   ncclChannels(total, link.generation, isInMachine),
                   limits[std::size_t(link.generation)],
                   std::size_t(std::min(ranks.machines, 3) - 1)};
    NcclChoice best;
    double least = std::numeric_limits<double>::infinity();
    for (const NcclAlgorithm algorithm : {Tree, Ring, Nvls, NvlsTree}) {
        const bool isSwitch = algorithm == Nvls || algorithm == NvlsTree;
        if (isSwitch && (!link.switchReduces || ranks.inMachine() <= 2 || (algorithm == Nvls) != isInMachine))
            continue;
        if (!one.isAllReduce() && (algorithm == Tree || algorithm == NvlsTree))
            continue;
        if (one.isBroadcast() && algorithm != Ring)
            continue;
        for (std::size_t protocol = isSwitch ? 2 : 0; protocol < 3; ++protocol) {
            const NcclChoice choice = chosen(one, algorithm, protocol, false);
            if (choice.bandwidth > 0 && choice.seconds(payload) < least) {
                least = choice.seconds(payload);
                best = choice;
            }
        }
    }
    return chosen(one, best.algorithm, std::size_t(best.protocol), true);
}

std::optional<NcclChoice> ncclChoiceOf(const Collective& one, double peer, const Machines& machines,
                                       const NcclLink& link)
{
    const double payload = one.payload / one.calls;
    if (!isChosenFor(one.kind) || one.degree < 2 || !(payload > 0))
        return std::nullopt;
    return ncclChoice(one.kind, payload, ranksOf(one, peer, machines, link), link);
}

std::vector<NcclRange> ncclRanges(CollectiveKind kind, const NcclRanks& ranks, const NcclLink& link)
{
    std::vector<NcclRange> all;
    for (double payload = leastRange; payload <= mostRange; payload *= 2) {
        const NcclChoice choice = ncclChoice(kind, payload, ranks, link);
        if (all.empty() || choice.text() != all.back().choice.text())
            all.push_back({payload, choice});
    }
    return all;
}

std::vector<NcclRange> ncclRangesOf(const Collective& one, double peer, const Machines& machines, const NcclLink& link)
{
    if (!isChosenFor(one.kind) || one.degree < 2)
        return {};
    return ncclRanges(one.kind, ranksOf(one, peer, machines, link), link);
}

double ncclSeconds(const Collective& one, double peer, const Machines& machines, const NcclLink& link)
{
    if (one.sentBytes() == 0)
        return 0;
    if (const auto choice = ncclChoiceOf(one, peer, machines, link))
        return one.count * one.calls * choice->seconds(one.payload / one.calls);
    const NcclRanks ranks = ranksOf(one, peer, machines, link);
    const AlgorithmLatency& ring = latencies[std::size_t(NcclAlgorithm::Ring)];
    const double step = ranks.machines > 1 ? ring.network[2] : link.isNvlink ? ring.nvlink[2] : ring.pci[2];
    return one.count * one.calls * (ring.base[2] + step) * micro
        + exchangeSeconds(one, ranks.peer, {machines.ranks, ranks.network});
}

double ownReduceSeconds(const Collective& one, double start, double pass, double peer, const Machines& machines,
                        const NcclLink& link)
{
    if (one.kind != CollectiveKind::AllReduce || one.payload > mostOfEngine || leavesMachine(one, machines))
        return nan;
    const double most = one.degree <= 2 ? mostOfEngine : one.degree <= 4 ? 512.0 * 1024 : 256.0 * 1024;
    const double rate = peer * link.share, others = one.degree - 1;
    if (one.payload <= most)
        return one.count * (start + others * one.payload / rate);
    return one.count * (start + 2 * pass + 2 * others / one.degree * one.payload / rate);
}

} // namespace memscape
