// SPDX-License-Identifier: Apache-2.0
// Which parts of a program checkpointing drops and recomputes: every layer, every second one, groups of layers, the
// attention cores alone (Chen et al. 2016; Korthikanti et al. 2022, "selective"), or all of a layer but the results of
// attention and of every second matrix product, which are kept from the first run (torchtitan's "selective op":
// torch.utils.checkpoint, create_selective_checkpoint_contexts).
//
// Left out: policies of one's own; with a bias (addmm) a product is none of those that torchtitan's policy keeps.
#pragma once

#include "core/network/graph.h"

#include <vector>

namespace memscape {

enum class Checkpointing : std::uint8_t {
    None,
    Layers,        ///< groups of `every` layers
    SquareRoot,    ///< groups of about √layers
    AttentionCore, ///< scores, softmax and context
    SecondLayers,  ///< the second layer, the fourth …; the others keep everything
    Operators,     ///< every layer, but the results that Segment::kept names
};

struct CheckpointPlan
{
    Checkpointing kind = Checkpointing::None;
    std::int64_t every = 1;
    /// torch.utils.checkpoint(use_reentrant=True) runs a nested backward that keeps the gradient of
    /// the segment's output until it ends, and replays to the end of the segment; the other form
    /// stops the replay at the last tensor that is needed.
    bool isReentrant = false;
    bool sendsToHost = false; ///< what is kept before the head: host_activations.h
};

/// Operators [first, last) that are replayed together.
struct Segment
{
    std::uint32_t first = 0;
    std::uint32_t last = 0;
    std::uint32_t trigger = 0; ///< the last operator that saves something: replay starts there
    TensorId firstTensor = 0;
    TensorId lastTensor = 0;
    TensorId output = noTensor;
    std::vector<TensorId> inputs;    ///< activations from outside, kept from forward to backward
    std::vector<std::uint32_t> kept; ///< operators whose results are kept, and not computed again
    std::uint32_t results = 0;       ///< of them, with storage of their own
};

/// Behind the last operator that a replay runs: it stops at the last tensor that is needed, and inputs are there before
/// the operator that keeps them runs. `runsWhole`: it goes to the segment's end.
std::uint32_t replayEnd(const Graph& graph, const Segment& segment, bool runsWhole);

/// In program order, disjoint.
std::vector<Segment> segments(const Graph& graph, const CheckpointPlan& plan);

} // namespace memscape
