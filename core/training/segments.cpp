// SPDX-License-Identifier: Apache-2.0
#include "core/training/segments.h"

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

std::int64_t groupSize(const CheckpointPlan& plan, std::size_t blocks)
{
    if (plan.kind == Checkpointing::Layers)
        return std::max<std::int64_t>(plan.every, 1);
    if (plan.kind == Checkpointing::SquareRoot)
        return std::max<std::int64_t>(std::llround(std::sqrt(double(blocks))), 1);
    return 1;
}

/// Whether the hooks of checkpointing see what is saved. bitsandbytes' MatMul4Bit has its weight as an attribute
/// (bitsandbytes/autograd/_functions.py, ctx.tensors); torchao's LinearNF4, which packs it, is not told apart.
bool packs(const Graph& graph, const Operator& op)
{
    const auto saved = graph.saved(op);
    const bool isFourBit =
        isMatrixProduct(op.kind) && saved.size() == 1 && graph.tensors[saved[0]].dtype == DType::UInt8;
    return !saved.empty() && !op.keepsAsAttribute && !isFourBit;
}

void findInputs(const Graph& graph, Segment& segment)
{
    segment.trigger = segment.first;
    for (std::uint32_t i = segment.first; i < segment.last; ++i) {
        const Operator& op = graph.operators[i];
        if (packs(graph, op))
            segment.trigger = i;
        if (op.kind == OperatorKind::Release)
            continue;
        for (const TensorId tensor : graph.inputs(op)) {
            if (tensor >= segment.firstTensor || graph.storageOf(tensor).role != Role::Activation)
                continue;
            if (std::find(segment.inputs.begin(), segment.inputs.end(), tensor) == segment.inputs.end())
                segment.inputs.push_back(tensor);
        }
    }
}

/// What torchtitan's policy saves: attention, and matrix products but the second, the fourth …
void findKept(const Graph& graph, Segment& segment)
{
    std::uint32_t products = 0;
    for (std::uint32_t i = segment.first; i < segment.last; ++i) {
        const Operator& op = graph.operators[i];
        const bool isKept = isAttentionKernel(op.kind) || op.kind == OperatorKind::ReduceScatter
            || (op.kind == OperatorKind::Mm && products++ % 2 == 0);
        if (!isKept)
            continue;
        segment.kept.push_back(i);
        const StorageId input = graph.tensors[graph.inputs(op)[0]].storage;
        for (const TensorId output : graph.outputs(op))
            segment.results += graph.tensors[output].storage != input;
    }
}

/// Whether no segment can go on into this block: it is the first of its chunk.
bool begins(const Graph& graph, const Block& block, const std::vector<Segment>& before)
{
    return std::any_of(graph.chunks.begin(), graph.chunks.end(), [&](const PipelineChunk& chunk) {
        return block.first >= chunk.first && !before.empty() && before.back().first < chunk.first;
    });
}

} // namespace

std::vector<Segment> segments(const Graph& graph, const CheckpointPlan& plan)
{
    std::vector<Segment> result;
    if (plan.kind == Checkpointing::None)
        return result;
    const auto wanted = plan.kind == Checkpointing::AttentionCore ? Block::Kind::AttentionCore : Block::Kind::Layer;
    const auto blocks = std::size_t(std::count_if(graph.blocks.begin(), graph.blocks.end(),
                                                  [&](const Block& block) { return block.kind == wanted; }));
    const std::int64_t size = groupSize(plan, blocks);
    std::int64_t count = 0;
    for (const Block& block : graph.blocks) {
        if (block.kind != wanted)
            continue;
        if (begins(graph, block, result)) // of a pipeline's chunk
            count = 0;
        if (plan.kind == Checkpointing::SecondLayers && count++ % 2 == 0)
            continue;
        if (plan.kind == Checkpointing::SecondLayers || count++ % size == 0)
            result.push_back({block.first, block.last, 0, block.firstTensor, 0, noTensor, {}, {}, 0});
        result.back().last = block.last;
        result.back().lastTensor = block.lastTensor;
        result.back().output = block.output;
    }
    for (Segment& segment : result) {
        findInputs(graph, segment);
        if (plan.kind == Checkpointing::Operators)
            findKept(graph, segment);
    }
    return result;
}

std::uint32_t replayEnd(const Graph& graph, const Segment& segment, bool runsWhole)
{
    if (runsWhole)
        return segment.last;
    const Operator& op = graph.operators[segment.trigger];
    const auto outputs = graph.outputs(op);
    const auto saved = graph.saved(op);
    const bool keepsResults = std::any_of(saved.begin(), saved.end(), [&](TensorId tensor) {
        return std::find(outputs.begin(), outputs.end(), tensor) != outputs.end();
    });
    return segment.trigger + (keepsResults ? 1 : 0);
}

} // namespace memscape
