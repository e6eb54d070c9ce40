// SPDX-License-Identifier: Apache-2.0
// `placement` as its callers see it: what its parameters say on a device, the program that a strategy makes of them,
// and its figures, made of predicted or of measured numbers.
#pragma once

#include "core/experiment/experiment.h"
#include "core/placement/placement_search.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace memscape {

enum class PlacementStrategy { Implicit, Device, Host, Cheapest, Layers, ZeroOffload, ZeroInfinity };

/// What a layer of a model costs.
struct LayerCost
{
    double forward = 0, backward = 0; ///< s on the device; backward with the forward again
    double flops = 0;                 ///< of products, forward
    double bytes = 0;                 ///< that its operators read and write, forward
};

/// What the parameters of `placement` say on a device.
struct PlacementCase
{
    OperatorGraph graph;
    std::vector<LayerCost> layers; ///< beside the nodes; empty where the graph is no model's
    std::string subject;           ///< "LLaMA 2 7B", "4 products of 1024 × 1024 …"
    PlacementStrategy strategy = PlacementStrategy::Layers;
    std::int64_t limit = 0; ///< B
    int prefetch = 0;
    OffloadedTraining training;
    LaneSharing sharing = LaneSharing::Apart;
    std::string serial = {}; ///< why nothing overlaps although it was asked for

    bool trains() const { return strategy >= PlacementStrategy::ZeroOffload; }
    bool isModel() const { return !layers.empty(); }
};

/// Errors: those of parseGraph(), readModel(), buildNetwork(); placement.training where a graph is no chain,
/// placement.name where `place` names what is not there.
Result<PlacementCase> placementCase(const Device& device, const Parameters& parameters);

/// Rates of a device and of what it is linked with, asked for each step.
class PlacementSeconds final : public StepSeconds
{
public:
    double compute(const GraphNode& node, Way way) const override;
    double backward(const GraphNode& node) const override;
    double update(const GraphNode& node) const override;
    double copy(double bytes, Lane lane) const override;

    double linkLatency = 0, linkRate = 0; ///< s, B/s
    double diskRate = 0;                  ///< B/s
    double hostFlops = 0, hostRate = 0;   ///< FLOP/s, B/s of a GPU's host
    double updateRate = 0;                ///< B/s
    std::string linkSource, computeSource, updateSource;

private:
    friend Result<PlacementSeconds> placementSeconds(const Device& device, const Parameters& parameters,
                                                     const PlacementCase& asked);
    double onDevice(const GraphNode& node, double passes) const;
    double fromFar(const GraphNode& node, Way way) const;

    std::shared_ptr<const Device> m_device;
    const PlacementCase* m_case = nullptr;
    double m_touched = 0;   ///< B of all weights and tensors: what a run touches before it comes back
    double m_bandwidth = 0; ///< B/s of what elementwise operators move
};
/// `asked` must outlive the answer. Errors: predict.device where a rate is not known.
Result<PlacementSeconds> placementSeconds(const Device& device, const Parameters& parameters,
                                          const PlacementCase& asked);

/// The bytes that an update of one weight reads and writes: three numbers of 4 B both ways, a gradient in, and in half
/// precision a weight out.
inline constexpr double updateBytes = 28;

/// A case with its placement. Errors: those of layersPlacement() and cheapestPlacement().
Result<Placement> chosenPlacement(const PlacementCase& asked, const StepSeconds& seconds);

/// A time with its band, s.
struct PlacementTime
{
    double seconds = nan;
    std::optional<double> low = {}, high = {};
};
/// What is predicted or measured.
struct PlacementNumbers
{
    PlacementTime time, compute, transfer, host, update; ///< `host` and `update`: parts of compute, on the host
    double transferred = 0, peak = 0;                    ///< B
    double up = 0, down = 0, disk = 0;                   ///< s of copies, by direction
};
/// The figures of both sides, without reasons.
Figures placementFigures(const PlacementCase& asked, const Placement& placement, const PlacementNumbers& numbers);

/// The same predicted, with the reasons.
Result<Figures> predictedPlacement(const Device& device, const Parameters& parameters);
/// What the picture needs: {"nodes": [{"name", "kind", "way", "place", …}…], "lanes": […], "pieces": [[lane, step,
/// begin, end, node, bytes]…], …}.
Json placementDetail(const Device& device, const Parameters& parameters);

const std::string& placementStrategyKey(PlacementStrategy strategy);

} // namespace memscape
