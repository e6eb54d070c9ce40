// SPDX-License-Identifier: Apache-2.0
#include "core/network/families/mamba.h"

#include "core/network/families/language_head.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr std::int64_t longestLoop = 1 << 11; // of 64 layers: 0.3 s and 0.1 GB to predict

/// What the scan of one layer reads: x and gate (B, I, S), step (B, S, R), what enters and leaves the state (B, S, N).
struct ScanInputs
{
    Variable x, gate, step, enters, leaves;
};

/// The mixer of one layer: projection, convolution, scan, projection.
class MambaMixer
{
public:
    MambaMixer(NetworkBuilder& b, const ModelDescription& model)
        : m_b(b)
        , m_space(model.stateSpace)
        , m_hidden(model.hidden)
    { }

    Variable run(const Variable& x);

private:
    void makeParameters();
    Variable convolved(Variable x);
    Variable loop(const ScanInputs& in, Variable step);
    Variable stacked(std::vector<Variable> tokens);
    Variable scanned(const ScanInputs& in);
    Variable fused(const Variable& projected);
    Variable steps(const Variable& step);
    std::vector<Variable> selected(Variable x);

    NetworkBuilder& m_b;
    const StateSpace& m_space;
    std::int64_t m_hidden;
    Variable m_convolution, m_convolutionBias, m_step, m_stepBias, m_decay, m_skip;
    Variable m_rates; ///< −exp(A_log)
};

void MambaMixer::makeParameters()
{
    const std::int64_t inner = m_space.inner;
    m_decay = m_b.parameter("A_log", {inner, m_space.state});
    m_skip = m_b.parameter("D", {inner});
    m_convolution = m_b.parameter("conv1d.weight", {inner, 1, m_space.kernel});
    if (m_space.hasConvolutionBias)
        m_convolutionBias = m_b.parameter("conv1d.bias", {inner});
    m_step = m_b.parameter("dt_proj.weight", {inner, m_space.rank});
    m_stepBias = m_b.parameter("dt_proj.bias", {inner});
    m_rates = m_b.negate(m_b.unary(OperatorKind::Exponential, m_b.cast(m_decay, DType::Float32)));
}

/// Padded on both sides and cut to the sequence.
Variable MambaMixer::convolved(Variable x)
{
    if (!m_b.ok())
        return {};
    const std::int64_t length = x.size(2);
    const Shape padded{x.size(0), m_space.inner, length + m_space.kernel - 1};
    const Variable all = m_b.convolution(std::move(x), m_convolution, m_convolutionBias, padded, m_space.inner);
    return m_b.silu(m_b.narrow(all, 2, length));
}

/// Step, entry and exit of every token (B, S, …), out of x (B, I, S).
std::vector<Variable> MambaMixer::selected(Variable x)
{
    const std::int64_t state = m_space.state;
    Variable y = m_b.linear("x_proj", m_b.transpose(std::move(x), 1, 2), m_space.rank + 2 * state, false);
    return m_b.split(std::move(y), {m_space.rank, state, state}, -1);
}

/// softplus of the step of every channel: (B, I, S).
Variable MambaMixer::steps(const Variable& step)
{
    Variable wide = m_b.contiguous(m_b.transpose(m_b.linear(step, m_step), 1, 2));
    const Variable bias = m_b.cast(m_b.cast(m_stepBias, DType::Float32), wide.dtype());
    wide = m_b.add(std::move(wide), m_b.unsqueeze(bias, 1));
    return m_b.unary(OperatorKind::Softplus, std::move(wide));
}

/// torch.stack of (B, I) for every token: (B, I, S). An operator has at most 255 operands here, so that longer lists
/// are stacked part by part, each instead of its tokens.
Variable MambaMixer::stacked(std::vector<Variable> tokens)
{
    constexpr std::size_t most = 255;
    if (!m_b.ok() || tokens.size() <= most)
        return m_b.ok() ? m_b.stack(std::move(tokens), -1) : Variable();
    std::vector<Variable> parts;
    for (std::size_t first = 0; first < tokens.size(); first += most) {
        const auto begin = tokens.begin() + std::ptrdiff_t(first);
        const auto end = begin + std::ptrdiff_t(std::min(most, tokens.size() - first));
        parts.push_back(m_b.stack({std::make_move_iterator(begin), std::make_move_iterator(end)}, -1));
    }
    return m_b.cat(std::move(parts), -1);
}

/// state = decay · state + entry, token by token; what each token reads of it: (B, I, S).
Variable MambaMixer::loop(const ScanInputs& in, Variable step)
{
    const std::int64_t batch = in.x.size(0), length = in.x.size(2), inner = m_space.inner, state = m_space.state;
    const DType dtype = in.x.dtype();
    if (length > longestLoop)
        m_b.refuse("network.size", fmt::format("a loop of Python over {} tokens is too long to record", length),
                   "take operators=all-fused, the kernels of mamba_ssm, or a shorter sequence");
    if (!m_b.ok())
        return {};
    step = m_b.view(std::move(step), {batch, inner, length, 1});
    const Variable decay =
        m_b.unary(OperatorKind::Exponential, m_b.multiply(m_b.view(m_rates, {1, inner, 1, state}), step));
    const Variable entry = m_b.multiply(step, m_b.cast(m_b.unsqueeze(in.enters, 1), DType::Float32));
    const Variable entered = m_b.multiply(entry, m_b.cast(m_b.unsqueeze(in.x, 3), DType::Float32));
    Variable now = m_b.fill({batch, inner, state}, dtype);
    std::vector<Variable> read;
    for (std::int64_t i = 0; i < length && m_b.ok(); ++i) {
        now = m_b.add(m_b.multiply(m_b.select(decay, 2), now), m_b.select(entered, 2));
        const Variable row = m_b.select(in.leaves, 1);
        Variable one = m_b.bmm(m_b.cast(now, dtype), m_b.unsqueeze(row, 2));
        if (m_b.ok())
            read.push_back(m_b.select(std::move(one), 2));
    }
    return stacked(std::move(read));
}

Variable MambaMixer::scanned(const ScanInputs& in)
{
    if (!m_b.ok())
        return {};
    Variable y = loop(in, steps(in.step));
    const Variable skip = m_b.view(m_b.cast(m_skip, DType::Float32), {1, m_space.inner, 1});
    y = m_b.add(std::move(y), m_b.multiply(in.x, skip));
    return m_b.multiply(std::move(y), m_b.silu(in.gate));
}

/// mamba_inner_fn of mamba_ssm: an autograd function that keeps the projected input, what selects, the scan's result
/// and its states between chunks; the convolution and the steps are made again by backward.
Variable MambaMixer::fused(const Variable& projected)
{
    if (!m_b.ok())
        return {};
    const std::int64_t batch = projected.size(0), length = projected.size(2), inner = m_space.inner;
    const std::int64_t chunks = (length + 2047) / 2048;
    const DType dtype = projected.dtype();
    const Variable select = m_b.parameter("x_proj.weight", {m_space.rank + 2 * m_space.state, inner});
    const Variable output = m_b.parameter("out_proj.weight", {m_hidden, inner});
    const bool wanted = m_b.recordGradient(false);
    Variable selection, enters, leaves, states, scan;
    {
        const std::vector<Variable> halves = m_b.chunk(projected, 2, 1);
        const Variable x = convolved(halves[0]);
        selection = m_b.linear(m_b.transpose(x, 1, 2), select);
        const std::vector<Variable> parts = m_b.split(selection, {m_space.rank, m_space.state, m_space.state}, -1);
        const Variable step = m_b.ok() ? m_b.linear(parts[0], m_step) : Variable();
        enters = m_b.ok() ? m_b.contiguous(m_b.transpose(parts[1], 1, 2)) : Variable();
        leaves = m_b.ok() ? m_b.contiguous(m_b.transpose(parts[2], 1, 2)) : Variable();
        states = m_b.fill({batch, inner, chunks, 2 * m_space.state}, DType::Float32);
        scan = m_b.other({x, step, enters, leaves}, Layout(Shape{batch, inner, length}), dtype, {}, false);
    }
    const Variable gated = m_b.other({scan, projected}, Layout(Shape{batch, inner, length}), dtype, {}, false);
    const Variable product = m_b.linear(m_b.transpose(gated, 1, 2), output);
    m_b.recordGradient(wanted);
    return m_b.other({projected, m_convolution, selection, select, m_step, m_rates, enters, leaves, states, scan},
                     Layout(Shape{batch, length, m_hidden}), dtype, {true, false}, false);
}

Variable MambaMixer::run(const Variable& x)
{
    const ModuleScope scope(m_b, "mixer", "MambaMixer");
    const Variable projected =
        m_b.transpose(m_b.linear("in_proj", x, 2 * m_space.inner, m_space.hasProjectionBias), 1, 2);
    makeParameters();
    if (m_b.options().isAllFused)
        return fused(projected);
    const std::vector<Variable> halves = m_b.chunk(projected, 2, 1);
    ScanInputs in;
    in.gate = halves[1];
    in.x = convolved(halves[0]);
    const std::vector<Variable> parts = selected(in.x);
    in.step = parts[0], in.enters = parts[1], in.leaves = parts[2];
    Variable y = m_b.transpose(scanned(in), 1, 2);
    return m_b.linear("out_proj", m_b.cast(std::move(y), x.dtype()), m_hidden, m_space.hasProjectionBias);
}

Variable mambaLayer(NetworkBuilder& b, const ModelDescription& model, const Variable& x)
{
    const DType weights = b.options().weights;
    Variable y = b.rmsNorm("norm", b.cast(x, weights));
    const Variable residual = model.stateSpace.residualInFloat ? b.cast(x, DType::Float32) : x;
    y = MambaMixer(b, model).run(y);
    return b.add(residual, std::move(y));
}

} // namespace

Result<Graph> mamba(const ModelDescription& model, const BuildOptions& options)
{
    MEMSCAPE_CHECK(checkModel(model));
    NetworkBuilder b(options);
    const Variable tokens = tokenInput(b);
    Variable x, tokenWeight;
    {
        const ModuleScope scope(b, "backbone", "MambaModel");
        {
            const ModuleScope words(b, "embeddings", "Embedding");
            tokenWeight = b.parameter("weight", {model.vocab, model.hidden});
        }
        x = b.embedding(tokens, tokenWeight);
        b.repeat(x, "layers", 0, model.layers, [&](std::int64_t i, Variable& y) {
            const ModuleScope each(b, fmt::format("layers.{}", i), "MambaBlock");
            y = b.layer([&] { return mambaLayer(b, model, y); });
        });
        x = b.rmsNorm("norm_f", std::move(x));
    }
    if (model.head == HeadKind::None || !b.ok())
        return b.finish(std::move(x));
    x = b.cast(std::move(x), options.weights);
    LanguageHead head{model.tied ? b.tiedWeight("lm_head", tokenWeight) : Variable(), "lm_head", model.vocab};
    head.after = [&b](Variable logits) { return b.cast(std::move(logits), DType::Float32); };
    return finishLanguageModel(b, std::move(x), head);
}

} // namespace memscape
