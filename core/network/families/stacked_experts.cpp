// SPDX-License-Identifier: Apache-2.0
// GPT-OSS' experts as transformers trains them: the matrices of all experts of a layer are one parameter.
//
// In 4.55 a loop copies each expert's matrices out of it, gate_up_proj[expert_idx] with a tensor as index: the copies
// of all experts are kept for backward, which makes zeros as large as the parameter around each expert's gradient
// (models/gpt_oss/modeling_gpt_oss.py, GptOssExperts.forward). Today all experts are multiplied at once, rows in the
// order of their experts (integrations/moe.py, grouped_mm_experts_forward). The gate is clamped, as is what it gates:
// (clamp(up) + 1) · g · sigmoid(1.702 g).
//
// Taken as even: each expert gets as many tokens as the others. Left out: kernels from the hub (MegaBlocks), what
// sort() needs, and that 4.55 scatters the weights of chosen experts among zeros for the others.
#include "core/base/rounding.h"
#include "core/network/families/decoder_parts.h"

#include <algorithm>

#include <fmt/format.h>

namespace memscape {

namespace {

/// Of one layer: (E, H, 2 I), (E, 2 I), (E, I, H), (E, H).
struct ExpertStacks
{
    Variable gateUp, gateUpBias, down, downBias;
};

ExpertStacks expertStacks(NetworkBuilder& b, const ModelDescription& model)
{
    const std::int64_t count = model.experts.count, width = model.experts.ffn;
    ExpertStacks stacks;
    stacks.gateUp = b.parameter("gate_up_proj", {count, model.hidden, 2 * width});
    stacks.gateUpBias = b.parameter("gate_up_proj_bias", {count, 2 * width});
    stacks.down = b.parameter("down_proj", {count, width, model.hidden});
    stacks.downBias = b.parameter("down_proj_bias", {count, model.hidden});
    return stacks;
}

/// clamp() keeps what it is given, here every second column of `from`.
Variable clampedHalf(NetworkBuilder& b, const Variable& from)
{
    if (!b.ok())
        return {};
    Variable half = b.narrow(from, -1, from.size(-1) / 2);
    const Layout layout(half.shape());
    const DType dtype = half.dtype();
    return b.other({std::move(half)}, layout, dtype, {.inputs = true, .temporaries = 1}, false);
}

/// _apply_gate(): (N, 2 I) to (N, I).
Variable gatedHalves(NetworkBuilder& b, const Variable& gateUp)
{
    const Variable gate = clampedHalf(b, gateUp), up = clampedHalf(b, gateUp);
    const Variable glu = b.multiply(gate, b.sigmoid(b.scale(gate)));
    return b.multiply(b.shift(up), glu);
}

/// One expert of the loop: its tokens' results, weighted. `weights` is the router's column, `number`
/// (1) which expert it is.
Variable expertOfLoop(NetworkBuilder& b, const ExpertStacks& stacks, const Variable& tokens, const Variable& weights,
                      const Variable& number, std::int64_t share)
{
    const Variable found = b.fill({share, 2}, DType::Int64); // torch.where(): two columns of one tensor
    const Variable chosen = b.ok() ? b.select(found, 1) : Variable();
    const Variable x = b.index(tokens, chosen);
    const auto product = [&](const Variable& rows, const Variable& matrices, const Variable& biases) {
        const auto copied = [&](const Variable& all) { return b.index(all, number); };
        Variable matrix = copied(matrices);
        Variable y = b.ok() ? b.mm(rows, b.view(std::move(matrix), {matrices.size(1), matrices.size(2)})) : Variable();
        return b.add(std::move(y), copied(biases));
    };
    if (!b.ok())
        return {};
    const Variable gateUp = product(x, stacks.gateUp, stacks.gateUpBias);
    const Variable gated = gatedHalves(b, gateUp);
    if (!b.ok())
        return {};
    const Variable out = product(gated, stacks.down, stacks.downBias);
    if (!b.ok())
        return {};
    Variable weighted = b.multiply(out, b.unsqueeze(b.index(weights, chosen), 1));
    // index_add_() keeps what it adds, whose gradient is rows of the sum's.
    const Layout layout(out.shape());
    return b.other({std::move(weighted)}, layout, out.dtype(), {.result = true}, true);
}

/// topk of the router's logits, and softmax of these alone: (T, active).
Variable routed(NetworkBuilder& b, const ModelDescription& model, const Variable& tokens)
{
    const ModuleScope scope(b, "router", "Router"); // no nn.Linear: PEFT puts nothing beside it
    const Variable weight = b.parameter("weight", {model.experts.count, model.hidden});
    const Variable bias = model.experts.routerBias ? b.parameter("bias", {model.experts.count}) : Variable();
    const Variable logits = b.linear(tokens, weight, bias);
    if (!b.ok())
        return {};
    // topk keeps its indices alone, as an index does.
    const Variable top = b.fill({tokens.size(0), model.experts.active}, DType::Int64);
    return b.softmax(b.index(b.view(logits, {logits.layout().elements()}), top));
}

Variable loopOverExperts(NetworkBuilder& b, const ModelDescription& model, const ExpertStacks& stacks,
                         const Variable& tokens, const Variable& scores)
{
    const Experts& experts = model.experts;
    const std::int64_t count = tokens.size(0);
    const Variable weights = b.select(scores, 1);
    const Variable mask = b.fill({experts.count + 1, experts.active, count}, DType::Int64); // one_hot()
    const std::int64_t share = std::max<std::int64_t>(1, quotientUp(count * experts.active, experts.count));
    const Variable hit = b.fill({experts.count, 1}, DType::Int64);
    Variable result = b.fill({count, model.hidden}, tokens.dtype());
    b.repeat(result, "experts", 0, experts.count, [&](std::int64_t i, Variable& sum) {
        const ModuleScope scope(b, fmt::format("experts.{}", i), "Expert");
        const Variable number = b.select(hit, 0);
        sum = b.addInPlace(std::move(sum), expertOfLoop(b, stacks, tokens, weights, number, share));
    });
    return result;
}

Variable expertsAtOnce(NetworkBuilder& b, const ModelDescription& model, const ExpertStacks& stacks,
                       const Variable& tokens, const Variable& scores)
{
    const Experts& experts = model.experts;
    const std::int64_t count = tokens.size(0), sent = count * experts.active;
    const std::int64_t share = std::max<std::int64_t>(1, quotientUp(sent, experts.count));
    const std::int64_t rows = share * experts.count;
    const auto indices = [&](std::int64_t size) { return b.fill({size}, DType::Int64); };
    const Variable weights = b.reshape(scores, {sent});
    const Variable sorted = indices(rows), order = indices(rows);
    const Variable x = b.index(tokens, indices(rows)); // order // active
    const Variable sortedWeights = b.index(weights, order);
    const Variable offsets = b.fill({experts.count}, DType::Int32);
    const auto product = [&](const Variable& of, const Variable& matrices, const Variable& biases) {
        if (!b.ok())
            return Variable();
        const Variable bias = b.index(biases, sorted);
        Variable y = b.bmm(b.view(of, {experts.count, share, of.size(-1)}), matrices, offsets);
        return b.ok() ? b.addInPlace(b.view(std::move(y), bias.shape()), bias) : Variable();
    };
    Variable y = product(x, stacks.gateUp, stacks.gateUpBias);
    y = gatedHalves(b, y);
    y = product(y, stacks.down, stacks.downBias);
    if (!b.ok())
        return {};
    Variable weighted = b.multiply(y, b.unsqueeze(sortedWeights, 1));
    weighted = b.index(std::move(weighted), indices(sent));
    return b.sum(b.view(std::move(weighted), {count, experts.active, model.hidden}), 1);
}

} // namespace

bool hasStackedExperts(const ModelDescription& model, const BuildOptions& options)
{
    const bool isDivided = options.expertParallel > 1 || options.tensorParallel > 1;
    const bool isQuantized = options.adapters && options.adapters->isQuantized();
    return model.architecture == "gpt_oss" && options.gradient && !isDivided && !isQuantized && !options.isProductInFp8;
}

Variable stackedExperts(NetworkBuilder& b, const ModelDescription& model, const Variable& x)
{
    const ModuleScope scope(b, "mlp", "MoE");
    if (!b.ok())
        return {};
    const Variable tokens = b.view(x, {x.size(0) * x.size(1), model.hidden});
    const Variable scores = routed(b, model, tokens);
    ExpertStacks stacks;
    {
        const ModuleScope experts(b, "experts", "Experts");
        stacks = expertStacks(b, model);
    }
    if (!b.ok())
        return {};
    Variable result = b.options().transformers <= Transformers::Before524
        ? loopOverExperts(b, model, stacks, tokens, scores)
        : expertsAtOnce(b, model, stacks, tokens, scores);
    return b.ok() ? b.view(std::move(result), x.shape()) : Variable();
}

} // namespace memscape
