// SPDX-License-Identifier: Apache-2.0
#include "core/network/compile/compiled_regions.h"

#include <algorithm>

namespace memscape {

namespace {

/// The first operator of a loss function that ends with `op`: the log-softmax, and a cast of rows right before it. A
/// cast before logits are seen as rows is the model's, which runs eagerly.
std::uint32_t beginOfLoss(const Graph& graph, const std::vector<std::uint32_t>& makerOf, std::uint32_t op)
{
    for (const OperatorKind kind : {OperatorKind::LogSoftmax, OperatorKind::Cast}) {
        const std::uint32_t maker = makerOf[graph.inputs(graph.operators[op])[0]];
        if (maker != CompiledRegions::none && graph.operators[maker].kind == kind)
            op = maker;
    }
    return op;
}

bool isLoss(OperatorKind kind)
{
    return kind == OperatorKind::NllLoss || kind == OperatorKind::MseLoss;
}

/// All before the loss, which the training loop computes of what the network returns.
std::vector<CompiledRegion> untilLoss(const Graph& graph, const std::vector<std::uint32_t>& makerOf)
{
    auto last = std::uint32_t(graph.operators.size());
    for (std::uint32_t i = 0; i < graph.operators.size(); ++i)
        if (isLoss(graph.operators[i].kind))
            last = std::min(last, beginOfLoss(graph, makerOf, i));
    return {{0, last, {}}};
}

std::vector<CompiledRegion> layersAndLoss(const Graph& graph, const std::vector<std::uint32_t>& makerOf)
{
    std::vector<CompiledRegion> regions;
    for (const Block& block : graph.blocks) // an outer layer comes before those within it
        if (block.kind == Block::Kind::Layer && block.last > block.first
            && (regions.empty() || block.first >= regions.back().last))
            regions.push_back({block.first, block.last, {}});
    const std::size_t layers = regions.size();
    const auto isInLayer = [&](std::uint32_t op) {
        return std::any_of(regions.begin(), regions.begin() + std::ptrdiff_t(layers),
                           [op](const CompiledRegion& layer) { return op >= layer.first && op < layer.last; });
    };
    for (std::uint32_t i = 0; i < graph.operators.size(); ++i) {
        if (isLoss(graph.operators[i].kind) && !isInLayer(i))
            regions.push_back({beginOfLoss(graph, makerOf, i), i + 1, {}});
    }
    std::sort(regions.begin(), regions.end(),
              [](const CompiledRegion& a, const CompiledRegion& b) { return a.first < b.first; });
    return regions;
}

} // namespace

CompiledRegions::CompiledRegions(const Graph& graph, CompileScope scope)
    : ofOperator(graph.operators.size(), none)
    , makerOf(graph.tensors.size(), none)
    , isResult(graph.tensors.size(), 0)
    , isInner(graph.tensors.size(), 0)
{
    const auto count = std::uint32_t(graph.operators.size());
    std::vector<std::uint8_t> isReleased(graph.tensors.size(), 0);
    for (std::uint32_t i = 0; i < count; ++i) {
        const Operator& op = graph.operators[i];
        if (op.kind == OperatorKind::Release)
            isReleased[graph.operands[op.first]] = 1;
        else
            for (const TensorId tensor : graph.outputs(op))
                makerOf[tensor] = i;
    }
    const bool isWhole = scope == CompileScope::Network;
    regions = isWhole                   ? std::vector<CompiledRegion>{{0, count, {}}}
        : scope == CompileScope::Logits ? untilLoss(graph, makerOf)
                                        : layersAndLoss(graph, makerOf);
    for (std::uint32_t i = 0; i < regions.size(); ++i)
        std::fill(ofOperator.begin() + regions[i].first, ofOperator.begin() + regions[i].last, i);
    for (std::uint32_t i = 0; i < count; ++i) {
        if (graph.operators[i].kind == OperatorKind::Release)
            continue;
        for (const TensorId tensor : graph.inputs(graph.operators[i]))
            isResult[tensor] |= ofMaker(tensor) != none && ofMaker(tensor) != ofOperator[i];
    }
    std::vector<TensorId> returned = graph.otherOutputs;
    for (const TensorId tensor : {graph.output, graph.loss})
        if (tensor != noTensor)
            returned.push_back(tensor);
    for (const TensorId tensor : returned) // a whole network returns what the training loop goes on to name
        isResult[tensor] = ofMaker(tensor) != none && !(isWhole && isReleased[tensor]);
    for (TensorId tensor = 0; tensor < isInner.size(); ++tensor) {
        isInner[tensor] = ofMaker(tensor) != none && !isResult[tensor];
        if (isResult[tensor])
            regions[ofMaker(tensor)].results.push_back(tensor);
    }
}

std::uint32_t CompiledRegions::ofMaker(TensorId tensor) const
{
    return makerOf[tensor] == none ? none : ofOperator[makerOf[tensor]];
}

} // namespace memscape
