// SPDX-License-Identifier: Apache-2.0
// What the steps of a placed program take:
//
//     product      GPU: core/timing/gemm_time.h; CPU: one core, core/timing/host_operations.h, and at least what its
//                  operands take from memory; weights are packed in strips, a visit of a column for each line, from
//                  memory where they stay, from the last cache where they just came up
//     elementwise  launch + bytes / bandwidth
//     layer        the sum over its operators (placement_case.cpp)
//     copy         α + n/β of the link (core/experiments/transfer): of a GPU pinned or pageable, of a CPU one core's
//     copy on the host  of a GPU: max(FLOPs / rate, bytes / bandwidth) with the host's rates, which are parameters
//     update       28 B of an element over the host's memory rate: Adam in one pass reads and writes weight and two
//                  moments in FP32, reads a gradient, and in half precision writes the weight for the device
//     disk         bytes / rate
//
// Left out: what a host's caches keep from one operator to the next, other traffic on the link.
#include "core/experiments/placement/placement.h"

#include "core/experiments/transfer/transfer.h"
#include "core/timing/gemm_time.h"
#include "core/timing/host_operations.h"
#include "core/timing/walk_rates.h"
#include "core/timing/working_set.h"

#include <algorithm>

#include <fmt/format.h>

namespace memscape {

namespace {

Format placedFormat(const Device& device, int elementBytes)
{
    if (elementBytes == 4)
        return Format::Fp32;
    return device.flopRate("bf16") > 0 ? Format::Bf16 : Format::Fp16;
}

/// Of one core.
HostOperations oneCore(const Device& device)
{
    HostOperations host = hostOperations(device);
    // A pass over near caches by all threads takes so much longer by one.
    host.perByte *= host.threads;
    host.threads = 1;
    return host;
}

double hostProduct(const Device& device, HostOperation way, const GraphNode& node, double m, double n, double k)
{
    const double arithmetic = oneCore(device).productSeconds(way, {m, n, k});
    const double bytes = node.moved(4);
    return std::max(arithmetic, bytes / bandwidthOf(device, bytes, Operation::Read, 1).bytesPerSecond);
}

} // namespace

double PlacementSeconds::onDevice(const GraphNode& node, double passes) const
{
    const Device& device = *m_device;
    const double moved = node.moved(m_case->graph.elementBytes);
    if (device.isGpu()) {
        if (node.kind != NodeKind::Matmul)
            return device.launch.valueOr(0) + passes * moved / m_bandwidth;
        const auto time =
            gemmTime(device, placedFormat(device, m_case->graph.elementBytes), {node.rows, node.columns, node.inner});
        return time ? time->seconds : nan;
    }
    if (node.kind != NodeKind::Matmul) {
        const HostOperations host = oneCore(device);
        return host.call
            + passes
            * std::max(moved * host.perByte, moved / bandwidthOf(device, moved, Operation::Copy, 1).bytesPerSecond);
    }
    // x W with rows of W after each other, as a δ W was calibrated; x Wᵀ, the calibration's forward, is the backward's.
    return hostProduct(device, HostOperation::InputGradient, node, double(node.rows), double(node.columns),
                       double(node.inner));
}

/// What weights beyond a core's own caches take longer than near ones. A product packs them in strips of a few lines
/// from every row, which no prefetcher follows for long: each line costs a visit of a column. Those that just came up
/// are in the last cache, as far as it holds them, their source and the ones before.
double PlacementSeconds::fromFar(const GraphNode& node, Way way) const
{
    if (m_device->isGpu() || node.weightBytes == 0)
        return 0;
    constexpr double line = 64, justCopied = 4; // B; of two weights source and target
    const auto bytes = double(node.weightBytes);
    const MemoryLevel *const last = m_device->lastCache(), *const dram = m_device->dram();
    const auto visit = [&](const MemoryLevel* level) {
        return level ? curveSeconds(*m_device, "column " + level->id, 4, setStride(4 * double(node.columns)))
                     : std::nullopt;
    };
    if (const auto near = visit(last), far = visit(dram); near && far) {
        const double held =
            hitShare(way == Way::Streamed ? justCopied * bytes : m_touched, last->capacity.value, last->knee);
        return bytes / line * (held * *near + (1 - held) * *far);
    }
    const auto perByte = [&](double workingSet) {
        return 1 / bandwidthOf(*m_device, workingSet, Operation::Read, 1).bytesPerSecond;
    };
    return way == Way::Streamed ? 0 : bytes * std::max(0.0, perByte(m_touched) - perByte(bytes / 8));
}

double PlacementSeconds::compute(const GraphNode& node, Way way) const
{
    if (!node.computes())
        return 0;
    const LayerCost* const layer =
        node.kind == NodeKind::Layer ? &m_case->layers[std::size_t(&node - m_case->graph.nodes.data())] : nullptr;
    if (way != Way::OnHost || !m_device->isGpu())
        return layer ? layer->forward : onDevice(node, 1) + fromFar(node, way);
    const double flops = layer ? layer->flops : node.flops();
    const double bytes = layer ? layer->bytes : node.moved(m_case->graph.elementBytes);
    return std::max(flops / hostFlops, bytes / hostRate);
}

double PlacementSeconds::backward(const GraphNode& node) const
{
    if (node.kind == NodeKind::Layer)
        return m_case->layers[std::size_t(&node - m_case->graph.nodes.data())].backward;
    if (node.kind != NodeKind::Matmul)
        return onDevice(node, 1.5); // reads the gradient and the input, writes a gradient
    if (m_device->isGpu())
        return 2 * onDevice(node, 1);
    const auto m = double(node.rows), n = double(node.columns), k = double(node.inner);
    // δ Wᵀ packs the weights once more; xᵀ δ writes as many gradients.
    const double written =
        double(node.weightBytes) / bandwidthOf(*m_device, m_touched, Operation::Write, 1).bytesPerSecond;
    return hostProduct(*m_device, HostOperation::Forward, node, m, k, n) + fromFar(node, Way::Resident)
        + hostProduct(*m_device, HostOperation::WeightGradient, node, k, n, m) + written;
}

double PlacementSeconds::update(const GraphNode& node) const
{
    return double(node.updatedBytes) / m_case->graph.elementBytes * updateBytes / updateRate;
}

double PlacementSeconds::copy(double bytes, Lane lane) const
{
    return lane == Lane::Disk ? bytes / diskRate : linkLatency + bytes / linkRate;
}

Result<PlacementSeconds> placementSeconds(const Device& device, const Parameters& parameters,
                                          const PlacementCase& asked)
{
    PlacementSeconds seconds;
    seconds.m_device = std::make_shared<Device>(device);
    seconds.m_case = &asked;
    seconds.diskRate = parameters.number("disk");
    std::int64_t largest = 4;
    double weights = 0;
    for (const GraphNode& node : asked.graph.nodes) {
        largest = std::max({largest, node.weightBytes, node.outputBytes});
        seconds.m_touched += double(node.weightBytes + node.outputBytes);
        weights += double(node.weightBytes);
    }
    TransferCase copy;
    copy.kind = !device.isGpu()                   ? TransferKind::Copy
        : parameters.choice("link") == "pageable" ? TransferKind::Pageable
                                                  : TransferKind::Pinned;
    copy.bytes = std::uint64_t(std::clamp(weights, double(largest), 0x1p40));
    copy.chunk = copy.bytes;
    MEMSCAPE_TRY(link, transferModel(device, copy));
    seconds.linkLatency = link.latency;
    seconds.linkRate = link.bandwidth;
    if (!device.isGpu()) { // over all weights and the place of the largest, where the next one comes, too
        const auto rate = [&](double touched) {
            return bandwidthOf(device, touched, Operation::Copy, 1).bytesPerSecond;
        };
        const double bytes = double(copy.bytes), share = rate(bytes + double(largest)) / rate(2 * bytes);
        seconds.linkRate *= std::isfinite(share) && share > 0 ? share : 1;
    }
    seconds.linkSource = link.source;
    const MemoryLevel* const dram = device.dram();
    if (device.isGpu()) {
        // Whether it has products in that format, before a time is asked for.
        if (auto product = gemmTime(device, placedFormat(device, asked.graph.elementBytes), {1, 1, 1}); !product)
            return tl::unexpected(std::move(product.error()));
        seconds.m_bandwidth = dram ? levelBandwidth(device, *dram, Operation::Copy).valueOr(0) : 0;
        seconds.hostFlops = parameters.number("host_flops");
        seconds.hostRate = seconds.updateRate = parameters.number("host_bandwidth");
        seconds.computeSource = "the device's rates; what large products reach";
        seconds.updateSource = "parameter host_bandwidth";
        return seconds;
    }
    // Reads 16 B and writes 12 B of an element in place: a copy's rate, whose stores fetch their lines as well, carries
    // half as much again.
    const double state = 16 * weights / asked.graph.elementBytes;
    seconds.updateRate = 1.5 * bandwidthOf(device, std::max(state, 4096.0), Operation::Copy, 1).bytesPerSecond;
    if (!(seconds.updateRate > 0))
        return fail("predict.device", "the memory bandwidth of this device is not known",
                    "calibrate it, or choose a device of the catalogue");
    seconds.computeSource = device.calibration ? "one core, calibrated" : "one core, typical values";
    seconds.updateSource = "one core's copies over such arrays, with the lines that they fetch";
    return seconds;
}

} // namespace memscape
