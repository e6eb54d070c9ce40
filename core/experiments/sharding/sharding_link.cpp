// SPDX-License-Identifier: Apache-2.0
// What the ranks' bytes travel over. Between GPUs β is the catalogue's, and what NCCL makes of it is
// core/timing/nccl.h; α, which copies between GPUs take, is the catalogue's, too; where a peer link's is not known,
// that of a copy to the host stands for it. Within a host a step of the ring reads a neighbour's piece and adds or
// stores it: its α and β are fitted by the calibration (RingKind), else β is the copy rate of so many cores and α a
// typical hand-over.
//     in place   an all-reduce writes over what its neighbour has just read: 0.25 ns a byte in one state of a virtual
//                machine with two cores of a Zen 4, where a reduce-scatter and an all-gather over memory of their own
//                took 0.07 ns
//     in turns   more ranks than cores: all ranks of the fullest core, ⌈N / cores⌉, make a step one after the other,
//                and each turn is a switch, 1 µs where a hand-over between cores is 0.1 µs
//
// Left out: networks that are thinner further up.
#include "core/base/rounding.h"
#include "core/experiment/schema.h"
#include "core/experiments/memory/memory_parameters.h"
#include "core/experiments/sharding/sharding.h"
#include "core/timing/link_time.h"
#include "core/timing/working_set.h"

#include <algorithm>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr const char* usualWay = "usual";
constexpr double typicalHandOver = 0.1e-6; ///< s between two cores, where no calibration says

const ChoiceTable<ShardingWay> shardingWays{
    {ShardingWay::Peer, {"peer", "GPU to GPU", "GPU: NVLink, or peer copies over PCIe"}},
    {ShardingWay::Host, {"host", "through the host", "GPU: over PCIe into the host's memory and out of it"}},
    {ShardingWay::Threads, {"threads", "threads", "CPU: ranks are threads of one process"}},
    {ShardingWay::Processes, {"processes", "processes", "CPU: ranks are processes that share memory"}}};

/// "peer, host": what such a device has.
std::string waysOf(const Device& device)
{
    if (!device.isGpu())
        return "threads or processes";
    std::string all;
    for (const char* id : {"peer", "host"}) {
        if (device.link(id))
            all += (all.empty() ? "" : " or ") + std::string(id);
    }
    return all.empty() ? "another device" : all;
}

Result<ShardingWay> wayOf(const Device& device, const std::string& asked)
{
    if (asked == usualWay)
        return !device.isGpu() ? ShardingWay::Threads : device.link("peer") ? ShardingWay::Peer : ShardingWay::Host;
    const ShardingWay way = shardingWays.of(asked);
    const bool isOfGpu = way == ShardingWay::Peer || way == ShardingWay::Host;
    if (isOfGpu != device.isGpu() || (isOfGpu && !device.link(asked)))
        return fail("predict.device", fmt::format("{} has no link \"{}\" between ranks", device.name, asked),
                    fmt::format("choose link={}", waysOf(device)), "link");
    return way;
}

void setGpuRates(ShardingLink& link, const Device& device)
{
    const Link* const found = device.link(shardingWays.keyOf(link.way));
    const Link* const host = device.link("host");
    link.nccl = ncclLink(device, shardingWays.keyOf(link.way));
    link.label = found ? found->label : "no link";
    link.rate.bandwidth = found ? found->bandwidth.valueOr(0) : 0;
    const auto among = [&](const char* id) {
        const Link* const fewer = link.way == ShardingWay::Peer ? device.link(id) : nullptr;
        return fewer ? fewer->bandwidth.valueOr(link.rate.bandwidth) : link.rate.bandwidth;
    };
    link.pair = among("peer of 2");
    link.four = among("peer of 4");
    const double likeHost = host ? host->latency.valueOr(device.launch.valueOr(0)) : device.launch.valueOr(0);
    link.rate.latency = found ? found->latency.valueOr(likeHost) : likeHost;
    link.source = found ? found->bandwidth.source : "the device has no link between GPUs";
    if (!found || !found->latency.known())
        link.source += "; α is not known: that of a copy to the host";
}

void setHostRates(ShardingLink& link, const Device& device, std::int64_t ranks, bool isInPlace)
{
    link.isSerial = true;
    link.label = fmt::format("memory that {} share", shardingWayKey(link.way));
    const auto known = [&](bool takesTurns) -> const Link* {
        for (const bool inPlace : {isInPlace, false}) {
            const Link* const one = device.link(ringLink({link.way, inPlace, takesTurns}));
            if (one && one->bandwidth.known() && one->latency.known())
                return one;
        }
        return nullptr;
    };
    const std::int64_t units = std::max(1, device.units), most = quotientUp(ranks, units);
    const Link* const taking = most > 1 ? known(true) : nullptr;
    const Link* const fitted = taking ? taking : known(false);
    const double turns = double(most) / (taking ? probedTurns : 1);
    if (fitted) {
        link.rate = {fitted->latency.value, fitted->bandwidth.value};
        link.far = fitted->farBandwidth ? fitted->farBandwidth->valueOr(0) : 0;
        link.own = fitted->ownBandwidth ? fitted->ownBandwidth->valueOr(0) : 0;
        link.source = fitted->latency.method;
    } else {
        const int cores = int(std::clamp<std::int64_t>(ranks, 1, std::max(1, device.units)));
        const double near = bandwidthOf(device, 0x1p18, Operation::Copy, cores).bytesPerSecond / 2 / cores;
        const double far = bandwidthOf(device, 0x1p32, Operation::Copy, cores).bytesPerSecond / 2 / cores;
        link.rate = {typicalHandOver, near};
        link.far = far;
        link.source = fmt::format("copies of {} cores; α is typical, not measured: calibrate this machine", cores);
    }
    link.rate = {link.rate.latency * turns, link.rate.bandwidth / turns};
    link.far /= turns;
    link.own /= turns;
    if (most > 1)
        link.source += fmt::format("; {} ranks take turns on {} cores", ranks, device.units);
}

} // namespace

const std::string& shardingWayKey(ShardingWay way)
{
    return shardingWays.keyOf(way);
}

RankLink hostRingRate(const Device& device, const ShardingLink& link, double touched)
{
    const CachedShares held = cachedShares(device, touched);
    const double near = link.rate.bandwidth;
    const double own = link.own > 0 ? link.own : near, far = link.far > 0 ? link.far : near;
    return {link.rate.latency, 1 / (held.own / own + (held.last - held.own) / near + (1 - held.last) / far)};
}

std::string ringLink(const RingKind& kind)
{
    return fmt::format("{}-{}{}", kind.isInPlace ? "all-reduce" : "ring", shardingWays.keyOf(kind.way),
                       kind.takesTurns ? "-turns" : "");
}

Result<ShardingCase> shardingCase(const Device& device, const Parameters& parameters)
{
    ShardingCase asked;
    MEMSCAPE_SET(asked.setup, trainingSetup(device, shardingTraining(parameters)));
    asked.bucket = parameters.integer("bucket");
    asked.prefetch = int(parameters.integer("prefetch"));
    MEMSCAPE_SET(asked.link.way, wayOf(device, parameters.choice("link")));
    if (device.isGpu()) {
        setGpuRates(asked.link, device);
        asked.link.machines = {asked.plan().machineRanks, asked.plan().network};
    } else {
        setHostRates(asked.link, device, asked.ranks(), asked.isInPlace());
    }
    if (asked.link.isSerial)
        asked.prefetch = 0; // nothing is gathered while it computes
    const double bandwidth = parameters.number("link_bandwidth"), latency = parameters.number("link_latency");
    if (bandwidth > 0) {
        asked.link.rate.bandwidth = asked.link.far = asked.link.own = asked.link.pair = asked.link.four = bandwidth;
        asked.link.source = "given (link_bandwidth)";
    }
    if (latency > 0)
        asked.link.rate.latency = latency;
    if (asked.ranks() > 1 && !(asked.link.rate.bandwidth > 0))
        return fail("predict.device",
                    fmt::format("the rate of a link between several {} is not known",
                                device.name.empty() ? "devices of this kind" : device.name),
                    "give it (link_bandwidth=50GB/s), or choose a device of the catalogue with a link", "link");
    if (const Link* const host = device.link("host")) {
        asked.hostBandwidth = host->bandwidth.valueOr(0);
        asked.hostLatency = host->latency.valueOr(0);
    }
    if (asked.plan().offload != Offload::None && !(asked.hostBandwidth > 0))
        return fail("predict.device", fmt::format("the bandwidth between {} and its host is not known", device.name),
                    "choose a device with a host link, or offload=none", "offload");
    return asked;
}

Schema shardingSchema()
{
    Schema schema;
    for (ParameterSpec& spec : trainingSchema()) {
        for (const char* key : {"model", "zero", "data_parallel", "batch", "sequence", "precision", "optimizer",
                                "attention", "checkpointing", "tensor_parallel", "sequence_parallel", "offload",
                                "sharding_implementation", "network_bandwidth", "machine_gpus", "assume"}) {
            if (spec.key == key)
                schema.push_back(std::move(spec));
        }
    }
    const auto named = [&](std::string_view key) -> ParameterSpec& {
        return *std::ranges::find(schema, key, &ParameterSpec::key);
    };
    named("batch").standard = "1";
    std::erase_if(named("optimizer").choices, [](const auto& one) { // they have nothing to share
        return one.key == "lomo" || one.key == "adalomo" || one.key.starts_with("paged-");
    });
    named("zero").standard = "1";
    named("sharding_implementation").standard = "ideal";
    named("data_parallel").standard = "8";
    named("data_parallel").maximum = 1024;
    named("data_parallel").suffix = "ranks";
    for (const char* key : {"zero", "sharding_implementation", "data_parallel", "tensor_parallel", "sequence_parallel",
                            "offload", "network_bandwidth", "machine_gpus"})
        named(key).group.clear();
    // What is asked first stands first.
    std::stable_partition(schema.begin(), schema.end(), [](const ParameterSpec& one) {
        return one.key == "model" || one.key == "zero" || one.key == "data_parallel";
    });
    std::vector<ChoiceValue> ways{{usualWay, "usual", "GPU to GPU where there is such a link; threads on a CPU"}};
    for (ChoiceValue& way : shardingWays.choices())
        ways.push_back(std::move(way));
    schema.push_back(choiceSpec("link", "link", "What the ranks' bytes travel over.", std::move(ways)));
    schema.push_back(linkBandwidthSpec());
    schema.push_back(
        realSpec("link_latency", "link latency",
                 "Of one step of a ring: of a CPU, and of copies between GPUs. NCCL has latencies of its own.",
                 {.most = 1,
                  .unit = Unit::Second,
                  .scale = Scale::Log2,
                  .words = {{"0", "the device's own", "what the catalogue says of the device's link"}}}));
    schema.push_back(integerSpec(
        "bucket", "bucket",
        "Bytes of gradients that are reduced together, as soon as backward has made them. Stage 3 reduces layers.",
        {.most = 0x1p40,
         .unit = Unit::Byte,
         .scale = Scale::Log2,
         .words = {{"0", "usual", "25 MiB without ZeRO (PyTorch's DDP), 500 million gradients with it (DeepSpeed)"}}}));
    schema.push_back(integerSpec("prefetch", "gathered ahead",
                                 "Of stage 3: layers whose weights are gathered while another computes. 0: none.",
                                 {.most = 16, .standard = "1", .suffix = "layers"}));
    setGroup(schema, "link and overlap",
             {"link", "link_bandwidth", "link_latency", "network_bandwidth", "machine_gpus", "bucket", "prefetch"});
    setGroup(schema, "training details", {"precision", "optimizer", "attention", "checkpointing", "assume"});
    return schema;
}

Parameters shardingTraining(const Parameters& parameters)
{
    static const Parameters standard =
        resolve(trainingSchema(), std::vector<std::string>{"advice=none"}).value_or(Parameters());
    Parameters training = standard;
    for (const auto& [key, value] : parameters.values()) {
        if (training.has(key))
            training.set(key, value);
    }
    return training;
}

} // namespace memscape
