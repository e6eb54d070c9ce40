// SPDX-License-Identifier: Apache-2.0
#include "core/network/families/virtual_tokens.h"

namespace memscape {

namespace {

/// The table, which PEFT keeps in float.
Variable virtualTable(NetworkBuilder& b, std::int64_t width)
{
    const AdapterOptions& adapters = *b.options().adapters;
    const ModuleScope scope(b, "prompt_encoder.embedding", "Embedding");
    return b.trained("weight", {adapters.virtualTokens, width}, adapters.weights.value_or(b.options().weights));
}

} // namespace

Variable withPrompt(NetworkBuilder& b, Variable x)
{
    const std::int64_t count = b.options().virtualTokens(AdapterKind::Prompt);
    if (count == 0 || !b.ok())
        return x;
    const DType type = x.dtype();
    Variable prompt = b.embedding(b.fill({1, count}, DType::Int64), virtualTable(b, x.size(-1)));
    prompt = b.clone(b.expand(std::move(prompt), {x.size(0), count, x.size(-1)}));
    return b.cat({b.cast(std::move(prompt), type), std::move(x)}, 1);
}

void LayerPrefix::join(NetworkBuilder& b, Variable& k, Variable& v) const
{
    if (!keys)
        return;
    k = b.cat({keys, std::move(k)}, 2);
    v = b.cat({values, std::move(v)}, 2);
}

std::vector<LayerPrefix> learnedPrefix(NetworkBuilder& b, std::int64_t layers, std::int64_t heads, std::int64_t width)
{
    const BuildOptions& options = b.options();
    const std::int64_t count = options.virtualTokens(AdapterKind::Prefix);
    std::vector<LayerPrefix> prefixes;
    if (count == 0 || !b.ok())
        return prefixes;
    Variable tokens = b.expand(b.fill({1, count}, DType::Int64), {options.batch, count});
    Variable all = b.embedding(std::move(tokens), virtualTable(b, 2 * layers * heads * width));
    all = b.cast(std::move(all), options.weights);
    all = b.view(std::move(all), {options.batch, count, 2 * layers, heads, width});
    all = b.permute(std::move(all), {2, 0, 3, 1, 4});
    for (Variable& pair : b.split(std::move(all), std::vector<std::int64_t>(std::size_t(layers), 2), 0)) {
        const std::vector<Variable> both = b.unbind(std::move(pair), 0);
        if (!b.ok())
            return {};
        prefixes.push_back({b.clone(both[0]), b.clone(both[1])});
    }
    return prefixes;
}

} // namespace memscape
