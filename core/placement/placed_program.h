// SPDX-License-Identifier: Apache-2.0
// What a placement makes a machine do: operators and the copies between them, in the order in which they are issued,
// each in its lane, and which device memory is taken before and given back after each. The prediction runs it through
// lanes.h and counts its memory; a measurement runs the same program with real arrays.
//
// Ways of an operator: its weights live on the device; they live on the host and come up before it runs; it runs on
// the host. What it reads from elsewhere is copied first, and a copy to the host makes the program wait.
//
// Weights that come up are issued `prefetch` ahead: those of the s-th such operator as the (s − prefetch)-th begins, so
// that prefetch + 1 are on the device at once. Memory is taken as a copy is issued and given back as an operator ends:
// what is held does not depend on how fast anything is, and the peak is exact.
//
// Left out: fragmentation, operators that write over their input.
#pragma once

#include "core/placement/lanes.h"
#include "core/placement/operator_graph.h"

#include <string>
#include <vector>

namespace memscape {

enum class Way : std::uint8_t { Resident, Streamed, OnHost };

/// One piece of device memory.
struct DeviceSlot
{
    std::int64_t bytes = 0; ///< as the pool counts it
    std::uint32_t node = 0;
    enum class Holds : std::uint8_t { Weights, Tensor, Work, Gradient } holds = Holds::Tensor;
};

enum class StepKind : std::uint8_t {
    Compute,      ///< forward of a node
    Backward,     ///< of a node
    Update,       ///< of a node's weights, on the host
    Wait,         ///< until a gradient has left, whose memory is given back
    CopyTensor,   ///< what a node made
    CopyWeights,  ///< up
    CopyGradient, ///< down
    CopyUpdated,  ///< new weights up
    ReadState,    ///< of the optimizer from the disk
    WriteState
};

struct ProgramStep
{
    StepKind kind = StepKind::Compute;
    Lane lane = Lane::Device;
    std::uint32_t node = 0;
    std::int64_t bytes = 0; ///< that a copy moves
    bool waits = false;     ///< a copy that ends before anything else is issued
    double seconds = 0;
    std::vector<std::uint32_t> after = {}; ///< steps
    std::vector<std::uint32_t> takes = {}; ///< slots, before it is issued
    std::vector<std::uint32_t> gives = {}; ///< slots, when it has ended; none of a copy that is not waited for

    bool isCopy() const { return kind >= StepKind::CopyTensor; }
};

/// What steps take on a machine.
class StepSeconds
{
public:
    virtual ~StepSeconds() = default;
    virtual double compute(const GraphNode& node, Way way) const = 0; ///< s
    virtual double backward(const GraphNode& node) const = 0;         ///< s, of a Layer its forward again, too
    virtual double update(const GraphNode& node) const = 0;           ///< s, on the host
    virtual double copy(double bytes, Lane lane) const = 0;           ///< s, one piece
};

struct PlacedProgram
{
    std::vector<ProgramStep> steps;
    std::vector<DeviceSlot> blocks;      ///< named by their index, a slot
    std::vector<std::uint32_t> resident; ///< slots that are taken before it begins
    /// By node: itself, or the one whose tensor it is, as `.cpu()` of what is on the host.
    std::vector<std::uint32_t> sameAs;

    /// With the copies' and operators' seconds as they stand.
    std::vector<LaneSpan> spans(LaneSharing sharing) const;
    double copied() const; ///< B over the link, those to and from the disk not counted
};

/// The most device memory held at once, and at which step.
struct ProgramPeak
{
    std::int64_t bytes = 0;
    std::size_t step = 0;
};
ProgramPeak peakOf(const PlacedProgram& program);

/// Forward. `ways` is beside the nodes; an input is Resident or OnHost. Copies to the other side follow their kind.
PlacedProgram placedProgram(const OperatorGraph& graph, const std::vector<Way>& ways, int prefetch,
                            const StepSeconds& seconds);

/// Training of a chain with its optimizer on the host: forward, which keeps what each node makes, backward, gradients
/// down, updates when all gradients have arrived, new weights up. At most two gradients are on the device.
struct OffloadedTraining
{
    bool streamsWeights = false; ///< they live on the host, too, and come up for forward and for backward
    bool overlaps = true;        ///< gradients go down while backward runs, new weights up while the host updates
    int prefetch = 1;            ///< of streamed weights
    double stateBytes = 0;       ///< B on the disk for each byte of weights, read and written; 0: in host memory
};
/// Asserts that the graph is a chain.
PlacedProgram trainingProgram(const OperatorGraph& graph, const OffloadedTraining& how, const StepSeconds& seconds);

/// Where each node runs; an input: where it is to begin with.
Place placeOf(const GraphNode& node, Way way);

} // namespace memscape
