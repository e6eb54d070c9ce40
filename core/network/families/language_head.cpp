// SPDX-License-Identifier: Apache-2.0
#include "core/network/families/language_head.h"

namespace memscape {

Variable tokenInput(NetworkBuilder& b, std::string_view name)
{
    return b.input(name, {b.options().batch, b.options().sequence}, DType::Int64);
}

Result<Graph> finishLanguageModel(NetworkBuilder& b, Variable logits)
{
    if (!b.options().loss || !b.ok())
        return b.finish(std::move(logits));
    Variable named = logits; // what the model returns; the loss makes the float copy for itself
    if (b.options().logitsInFloat)
        logits = b.cast(std::move(logits), DType::Float32);
    const Variable targets = b.target("targets", {logits.size(0), logits.size(1)}, DType::Int64);
    const Shape rows{logits.size(0) * logits.size(1), logits.size(-1)};
    Variable loss = b.crossEntropy(b.view(logits, rows), targets);
    auto graph = b.finish(std::move(named), std::move(loss));
    if (graph)
        graph->returnsLoss = true;
    return graph;
}

Result<Graph> finishClassifier(NetworkBuilder& b, Variable logits)
{
    if (!b.options().loss || !b.ok())
        return b.finish(std::move(logits));
    const Variable targets = b.target("targets", {logits.size(0)}, DType::Int64);
    Variable loss = b.crossEntropy(logits, targets);
    return b.finish(std::move(logits), std::move(loss));
}

} // namespace memscape
