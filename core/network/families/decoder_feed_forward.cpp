// SPDX-License-Identifier: Apache-2.0
// Feed-forward layers of decoders: dense, gated, and a mixture of experts as an eager loop.
#include "core/base/rounding.h"
#include "core/network/families/decoder_parts.h"

#include <algorithm>

#include <fmt/format.h>

namespace memscape {

namespace {

OperatorKind fusedActivation(ActivationKind kind)
{
    switch (kind) {
    case ActivationKind::Relu: return OperatorKind::Relu;
    case ActivationKind::Gelu:
    case ActivationKind::GeluTanh:
    case ActivationKind::QuickGelu:
    case ActivationKind::GeluNew: return OperatorKind::Gelu;
    case ActivationKind::Tanh: return OperatorKind::Tanh;
    case ActivationKind::Silu: break;
    }
    return OperatorKind::Silu;
}

} // namespace

/// GeluNew is 0.5 x (1 + tanh(√(2/π) (x + 0.044715 x³))).
Variable activated(NetworkBuilder& b, ActivationKind kind, Variable x)
{
    if (kind == ActivationKind::QuickGelu && !b.options().isAllFused) {
        Variable factor = b.sigmoid(b.scale(x));
        return b.multiply(std::move(x), std::move(factor));
    }
    if (kind != ActivationKind::GeluNew || b.options().isAllFused)
        return b.unary(fusedActivation(kind), std::move(x));
    Variable half = b.scale(x);
    Variable inner = b.add(x, b.scale(b.unary(OperatorKind::Power, x)));
    inner = b.shift(b.tanh(b.scale(std::move(inner))));
    return b.multiply(std::move(half), std::move(inner));
}

namespace {

/// act(gate) · x; `x` is made after the activation, where that is an operator of its own.
template <typename Make> Variable gated(NetworkBuilder& b, ActivationKind activation, Variable gate, Make x)
{
    if (b.options().isAllFused)
        return b.gatedActivation(std::move(gate), x());
    gate = activated(b, activation, std::move(gate));
    return b.multiply(std::move(gate), x());
}

} // namespace

Variable decoderFeedForward(NetworkBuilder& b, const ModelDescription& model, const DecoderNames& names,
                            const Variable& x, std::int64_t width, bool bias)
{
    const ActivationKind activation = model.activation;
    if (!model.gated) {
        Variable inner = activated(b, activation, b.linear(names.up, x, width, bias));
        return b.linear(names.down, std::move(inner), model.hidden, bias);
    }
    Variable product;
    if (*names.fusedGateUp) {
        std::vector<Variable> parts = b.chunk(b.linear(names.fusedGateUp, x, 2 * width, bias), 2, -1);
        if (!b.ok())
            return {};
        product = b.options().isAllFused ? b.gatedActivation(parts[0], parts[1])
                                         : b.multiply(parts[1], activated(b, activation, parts[0]));
    } else {
        product = gated(b, activation, b.linear(names.gate, x, width, bias),
                        [&] { return b.linear(names.up, x, width, bias); });
    }
    return b.linear(names.down, std::move(product), model.hidden, bias);
}

namespace {

/// Tokens that one expert gets when all get the same, at least one.
std::int64_t tokensPerExpert(const Experts& experts, std::int64_t tokens)
{
    return std::max<std::int64_t>(1, (tokens * experts.active + experts.count - 1) / experts.count);
}

/// act(gate(x)) · up(x) and down, scaled by the router's weight of each token.
Variable oneExpert(NetworkBuilder& b, const ModelDescription& model, const DecoderNames& names, const Variable& tokens,
                   const Variable& weights, std::int64_t index)
{
    const ModuleScope scope(b, fmt::format("experts.{}", index), "Expert");
    const std::int64_t share = tokensPerExpert(model.experts, tokens.size(0));
    const Variable chosen = b.fill({share}, DType::Int64);
    const Variable x = b.index(tokens, chosen);
    Variable y = decoderFeedForward(b, model, names, x, model.experts.ffn, model.experts.expertBiases);
    if (!b.ok())
        return {};
    return b.multiply(std::move(y), b.unsqueeze(b.index(weights, chosen), 1));
}

/// Experts of which this rank has count / n. Each token goes to the ranks of its experts and comes back
/// (all-to-all, twice); as every rank sends as much as it gets, so many tokens arrive as were sent. A rank orders what
/// arrives by expert, a copy, and orders the results back (Megatron's alltoall dispatcher).
Variable sharedExperts(NetworkBuilder& b, const ModelDescription& model, const DecoderNames& names,
                       const Variable& tokens, const Variable& weights)
{
    const std::int64_t count = tokens.size(0), sent = count * model.experts.active;
    const std::int64_t own = model.experts.count / b.options().expertParallel;
    const Variable arrived = b.allToAll(b.index(tokens, b.fill({sent}, DType::Int64)));
    Variable results = b.fill({sent, model.hidden}, tokens.dtype());
    b.repeat(results, "experts", 0, own, [&](std::int64_t i, Variable& sum) {
        const ModuleScope scope(b, fmt::format("experts.{}", i), "Expert");
        const Variable x = b.index(arrived, b.fill({std::max<std::int64_t>(1, quotientUp(sent, own))}, DType::Int64));
        sum = b.addInPlace(std::move(sum),
                           decoderFeedForward(b, model, names, x, model.experts.ffn, model.experts.expertBiases));
    });
    if (!b.ok())
        return {};
    Variable back = b.view(b.allToAll(std::move(results)), {count, model.experts.active, model.hidden});
    return b.cast(b.sum(b.multiply(std::move(back), b.unsqueeze(weights, 2)), 1), tokens.dtype());
}

Variable sharedExpert(NetworkBuilder& b, const ModelDescription& model, const DecoderNames& names, const Variable& x)
{
    const bool gated = model.experts.sharedGate;
    Variable y;
    {
        const ModuleScope scope(b, gated ? "shared_expert" : "shared_experts", "MLP");
        y = decoderFeedForward(b, model, names, x, model.experts.sharedFfn, false);
    }
    return gated ? b.multiply(b.sigmoid(b.linear("shared_expert_gate", x, 1, false)), std::move(y)) : std::move(y);
}

} // namespace

Variable decoderExperts(NetworkBuilder& b, const ModelDescription& model, const DecoderNames& names,
                        const Variable& argument)
{
    if (hasStackedExperts(model, b.options()))
        return stackedExperts(b, model, argument);
    const bool mixtral = model.architecture == "mixtral";
    const ModuleScope scope(b, mixtral ? "block_sparse_moe" : "mlp", "MoE");
    DecoderNames expertNames = names;
    if (mixtral) {
        expertNames.gate = "w1";
        expertNames.up = "w3";
        expertNames.down = "w2";
    }
    if (!b.ok())
        return {};
    const std::int64_t count = argument.size(0) * argument.size(1);
    const Variable tokens = b.view(argument, {count, model.hidden});
    Variable scores = b.softmax(b.linear(model.architecture == "gpt_oss" ? "router" : "gate", tokens,
                                         model.experts.count, model.experts.routerBias),
                                DType::Float32);
    // topk saves its indices, as gather does; the weights are divided by their sum.
    Variable top = b.gather(std::move(scores), b.fill({count, model.experts.active}, DType::Int64));
    top = b.divide(top, b.sum(top, -1, true));
    const bool isShared = b.options().expertParallel > 1; // each token's weights are used where the token is
    Variable kept = b.cast(std::move(top), argument.dtype());
    const Variable weights = isShared ? std::move(kept) : b.select(std::move(kept), 1);
    Variable result;
    if (b.options().expertParallel > 1) {
        result = sharedExperts(b, model, expertNames, tokens, weights);
    } else {
        result = b.fill({count, model.hidden}, argument.dtype());
        b.repeat(result, "experts", 0, model.experts.count, [&](std::int64_t i, Variable& sum) {
            sum = b.addInPlace(std::move(sum), oneExpert(b, model, expertNames, tokens, weights, i));
        });
    }
    if (!b.ok())
        return {};
    result = b.view(std::move(result), argument.shape());
    if (model.experts.sharedFfn == 0)
        return result;
    if (b.options().dividesExperts)
        return b.add(std::move(result), sharedExpert(b, model, names, argument));
    // Tensor parallelism divides the shared expert alone.
    return b.add(std::move(result), b.rowOutput(sharedExpert(b, model, names, b.columnInput(argument))));
}

} // namespace memscape
