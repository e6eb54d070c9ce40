// SPDX-License-Identifier: Apache-2.0
// What one rank of a pipeline runs: of a recorded network of n layers, p ranks and v chunks of layers on each, n / (p
// v) layers in a chunk, chunk c of rank r behind (c p + r) others. Where that is no whole number, embedding and head
// count as a layer each, and the first chunks have one layer more (torchtitan's pipeline_parallel.py; Megatron's
// account_for_embedding_in_pipeline_split). The part is cut out of the program operator by operator:
//
//   first chunk   also what comes before the layers: the embedding
//   last chunk    also what comes behind them: norm, head, loss. Where the head is the embedding's matrix, first and
//   last
//                 rank hold one each
//   others        begin with what they are sent (Receive); what does not depend on parameters, masks or tables of
//                 positions, each makes itself
//
// What a chunk has sent is given back (Megatron's deallocate_pipeline_outputs), what it was sent stays until its
// backward has run. Sources: Narayanan et al. 2021, section 2.2; Megatron-LM, core/pipeline_parallel/schedules.py.
//
// Left out: chunks of other lengths, networks whose layers use more than the one tensor before them (T5).
#pragma once

#include "core/base/result.h"
#include "core/network/build_options.h"
#include "core/network/graph.h"

namespace memscape {

/// Errors: network.pipeline, whose place is the parameter to change.
Result<Graph> pipelinePart(const Graph& whole, const PipelinePart& part);

} // namespace memscape
