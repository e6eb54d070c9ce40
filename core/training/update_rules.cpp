// SPDX-License-Identifier: Apache-2.0
#include "core/training/update_rules.h"

#include "core/training/lora.h"
#include "core/training/optimizer_state.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace memscape {

namespace {

constexpr std::int64_t stepBytes = 4; ///< of a step count

} // namespace

UpdateRules::UpdateRules(Trace& trace, const Plan& plan, OptimizerBlocks& blocks)
    : m_trace(trace)
    , m_plan(plan)
    , m_blocks(blocks)
    , m_elementBytes(plan.kept().updated())
    , m_scalar(trace.name("scalar"))
{ }

std::int64_t UpdateRules::elementBytes(std::size_t index) const
{
    return precisionRule(tensor(index), m_plan).updated();
}

Temporary UpdateRules::make(std::size_t index, std::int64_t elements, NameId name) const
{
    return Temporary(m_trace, elements * elementBytes(index), name, tensor(index).module);
}

Temporary UpdateRules::like(std::size_t index, NameId name) const
{
    return make(index, tensor(index).elements, name);
}

Temporary UpdateRules::half(std::size_t index, std::int64_t elements, NameId name) const
{
    return Temporary(m_trace, elements * 2, name, tensor(index).module);
}

void UpdateRules::number(std::int64_t castBytes) const
{
    if (!m_plan.isOnCpu)
        return;
    const Temporary number(m_trace, numberTensorBytes, m_scalar, 0), cast(m_trace, castBytes, m_scalar, 0);
}

void UpdateRules::numbers(const Indices& tensors, int times) const
{
    for (int i = 0; i < times; ++i)
        for (std::size_t left = tensors.size(); left > 0; --left)
            number(m_elementBytes);
}

void UpdateRules::norm(std::size_t index) const
{
    make(index, 1, m_scalar);
}

std::int64_t UpdateRules::rows(std::size_t index) const
{
    return tensor(index).elements / tensor(index).shape.back();
}

std::int64_t UpdateRules::columns(std::size_t index) const
{
    const auto& shape = tensor(index).shape;
    return tensor(index).elements / shape[shape.size() - 2];
}

void UpdateRules::run()
{
    Indices all(m_blocks.updated.size());
    std::iota(all.begin(), all.end(), std::size_t(0));
    switch (m_plan.optimizer) {
    case OptimizerKind::Adam:
    case OptimizerKind::AdamW: return adam(all);
    case OptimizerKind::Lion: return m_plan.update == UpdateStyle::Fused ? void() : lion(all);
    case OptimizerKind::Adafactor:
        return m_plan.update == UpdateStyle::Foreach ? adafactorForeach(all) : adafactorLoop(all);
    case OptimizerKind::Muon: {
        const auto isMuon = [this](std::size_t index) { return isOrthogonalized(tensor(index)); };
        const auto rest = std::stable_partition(all.begin(), all.end(), isMuon);
        muon(Indices(all.begin(), rest));
        return adam(Indices(rest, all.end()));
    }
    case OptimizerKind::GaLore: return galore(all);
    case OptimizerKind::GaLore8bit: return galore8bit(all);
    case OptimizerKind::Apollo: return apollo(all);
    case OptimizerKind::Lomo: return lomo(all);
    case OptimizerKind::AdaLomo: return adaLomo(all);
    case OptimizerKind::Momentum: // buffer *= momentum
        return m_plan.update == UpdateStyle::Fused ? void() : numbers(all, 1);
    default: // in place, or one kernel; left out: the new scales of torchao's, 4 B a block of one tensor
        return;
    }
}

void UpdateRules::adam(const Indices& tensors)
{
    switch (m_plan.update) {
    case UpdateStyle::Loop: return adamLoop(tensors);
    case UpdateStyle::Foreach: return adamForeach(tensors);
    case UpdateStyle::WrittenOut: return adamWrittenOut(tensors);
    case UpdateStyle::Fused: // counts one by one, then is one kernel
        for (std::size_t left = tensors.size(); left > 0; --left)
            number(stepBytes);
        return;
    }
}

void UpdateRules::adamLoop(const Indices& tensors)
{
    const NameId root = m_trace.name("sqrt(exp_avg_sq)"), quotient = m_trace.name("denominator");
    Temporary denominator; // keeps the previous parameter's while the next one's is made
    const int decays = int(m_plan.optimizer != OptimizerKind::Adam) + 1 + int(m_plan.isBefore2);
    for (const std::size_t index : tensors) {
        number(stepBytes);
        numbers({index}, decays); // weights, exp_avg (one lerp since 2.0), exp_avg_sq
        Temporary squareRoot = like(index, root);
        Temporary divided = quotientOf(index, quotient);
        squareRoot.reset();
        number(m_elementBytes); // += eps
        denominator = std::move(divided);
    }
}

/// tensor / number.
Temporary UpdateRules::quotientOf(std::size_t index, NameId name) const
{
    const bool isTensor = m_plan.isOnCpu;
    const Temporary number(m_trace, isTensor ? numberTensorBytes : 0, m_scalar, 0);
    const Temporary cast(m_trace, isTensor ? m_elementBytes : 0, m_scalar, 0);
    return like(index, name);
}

void UpdateRules::adamForeach(const Indices& tensors)
{
    const NameId root = m_trace.name("sqrt(exp_avg_sq)");
    std::vector<Temporary> roots, sums;
    roots.reserve(tensors.size());
    countStepsForeach(tensors);
    numbers(tensors, int(m_plan.optimizer != OptimizerKind::Adam) + 1 + int(m_plan.isBefore2));
    for (const std::size_t index : tensors)
        roots.push_back(like(index, root));
    numbers(tensors, 1); // /= a number
    if (m_plan.addsEpsilonInPlace)
        return numbers(tensors, 1); // += eps
    for (const std::size_t index : tensors)
        sums.push_back(quotientOf(index, root));
}

/// step += 1: a number each, or one tensor for all since 2.0.
void UpdateRules::countStepsForeach(const Indices& tensors) const
{
    if (m_plan.isOnCpu && !m_plan.isBefore2)
        Temporary(m_trace, stepBytes, m_scalar, 0);
    else
        for (std::size_t left = tensors.size(); left > 0; --left)
            number(stepBytes);
}

/// m = state.get("m", zeros_like(g)), v the same;  m' = b1*m + (1-b1)*g;  v' = b2*v + (1-b2)*g**2;
/// p -= lr * m' / (v'.sqrt() + eps);  p -= lr*wd*p.  The function's variables keep the old moments of
/// a parameter until those of the next one are looked up.
void UpdateRules::adamWrittenOut(const Indices& tensors)
{
    std::array<BlockId, 2> old{noBlock, noBlock};
    for (const std::size_t index : tensors) {
        auto& state = m_blocks.state[index];
        for (const std::size_t i : {0u, 1u}) {
            like(index, m_trace.name("zeros_like")); // made whether it is needed or not
            if (old[i] != noBlock)
                m_trace.free(old[i]);
            old[i] = state[i];
        }
        state[0] = decayedMoment(index, state[0], false);
        state[1] = decayedMoment(index, state[1], true);
        writtenOutUpdate(index);
    }
    for (const BlockId block : old)
        if (block != noBlock)
            m_trace.free(block);
}

/// b * moment + (1 - b) * g, or g squared.
BlockId UpdateRules::decayedMoment(std::size_t index, BlockId old, bool isSquared) const
{
    const NameId product = m_trace.name("product");
    const Temporary decayed = like(index, product);
    Temporary squared;
    if (isSquared)
        squared = like(index, m_trace.name("square"));
    const Temporary share = like(index, product);
    squared.reset();
    return Temporary(m_trace, tensor(index).elements * elementBytes(index), m_trace.nameOf(old), tensor(index).module,
                     Category::OptimizerState)
        .release();
}

void UpdateRules::writtenOutUpdate(std::size_t index) const
{
    const NameId product = m_trace.name("product");
    {
        const Temporary scaled = like(index, product);
        Temporary squareRoot = like(index, m_trace.name("sqrt(v)"));
        const Temporary denominator = like(index, m_trace.name("sum"));
        squareRoot.reset();
        const Temporary update = like(index, m_trace.name("quotient"));
    }
    if (m_plan.optimizer != OptimizerKind::Adam)
        like(index, product); // lr * wd * p
}

/// update = exp_avg * b1 + grad * (1 - b1), in place from there on.
void UpdateRules::lion(const Indices& tensors)
{
    const NameId product = m_trace.name("product"), sum = m_trace.name("update");
    Temporary update;
    for (const std::size_t index : tensors) {
        const Temporary decayed = like(index, product), share = like(index, product);
        update = like(index, sum);
    }
}

void UpdateRules::muon(const Indices& tensors)
{
    const NameId nesterov = m_trace.name("nesterov update");
    Temporary update;
    for (const std::size_t index : tensors) {
        update = like(index, nesterov);
        newtonSchulz(index, update);
    }
}

/// Five times  X = a X + (b A + c A A) X  with A = X Xᵀ, in bf16 and on the smaller side. The
/// argument stays bound in the caller until the result replaces it.
void UpdateRules::newtonSchulz(std::size_t index, Temporary& update) const
{
    constexpr int steps = 5;
    const NameId name = m_trace.name("orthogonalized"), gram = m_trace.name("gram matrix");
    const std::int64_t side = std::min(tensor(index).shape[0], tensor(index).shape[1]);
    Temporary orthogonal = half(index, tensor(index).elements, name);
    {
        const Temporary length = half(index, 1, m_scalar), clamped = half(index, 1, m_scalar);
    }
    Temporary gramMatrix, gramUpdate;
    for (int step = 0; step < steps; ++step) {
        gramMatrix = half(index, side * side, gram);
        gramUpdate = half(index, side * side, gram);
        orthogonal = half(index, tensor(index).elements, name);
    }
    update = std::move(orthogonal);
}

std::int64_t UpdateRules::momentElements(std::size_t index) const
{
    const ParameterTensor& updated = tensor(index);
    return isOrthogonalized(updated) ? projectionRank(updated, m_plan) * std::max(updated.shape[0], updated.shape[1])
                                     : updated.elements;
}

/// A step that makes no projection anew. Names outlive their parameter: they hold it until the next one's is there.
void UpdateRules::galore(const Indices& tensors)
{
    const NameId projected = m_trace.name("projected gradient"), root = m_trace.name("sqrt(exp_avg_sq)");
    const NameId update = m_trace.name("update");
    Temporary gradient, denominator, normalized;
    for (const std::size_t index : tensors) {
        gradient.reset();
        if (isOrthogonalized(tensor(index)))
            gradient = make(index, momentElements(index), projected);
        denominator = make(index, momentElements(index), root);
        normalized = make(index, momentElements(index), update);
        if (!isOrthogonalized(tensor(index)))
            continue;
        Temporary back = like(index, update);
        Temporary scaled = like(index, update);
        back.reset();
        normalized = std::move(scaled);
    }
}

/// The weight is put aside while the kernel of 8-bit Adam writes its update where the projected gradient was copied.
void UpdateRules::galore8bit(const Indices& tensors)
{
    const NameId projected = m_trace.name("projected gradient"), update = m_trace.name("update");
    const NameId aside = m_trace.name("weight, aside");
    for (const std::size_t index : tensors) {
        if (!isOrthogonalized(tensor(index)))
            continue;
        const Temporary gradient = make(index, momentElements(index), projected);
        const Temporary weight = like(index, aside);
        const Temporary written = make(index, momentElements(index), update);
        Temporary back = like(index, update);
        const Temporary scaled = like(index, update);
        back.reset();
    }
}

/// The gradient itself, scaled by the ratio of two norms of each channel, then limited in its growth.
void UpdateRules::apollo(const Indices& tensors)
{
    const NameId projected = m_trace.name("projected gradient"), root = m_trace.name("sqrt(exp_avg_sq)");
    const NameId update = m_trace.name("update"), ratio = m_trace.name("ratio of norms");
    Temporary gradient, denominator, factor, scaled;
    for (const std::size_t index : tensors) {
        gradient.reset();
        const bool isProjected = isOrthogonalized(tensor(index));
        if (isProjected)
            gradient = make(index, momentElements(index), projected);
        denominator = make(index, momentElements(index), root);
        Temporary normalized = make(index, momentElements(index), update);
        if (!isProjected) {
            scaled = std::move(normalized);
            continue;
        }
        const std::int64_t channels = std::max(tensor(index).shape[0], tensor(index).shape[1]);
        {
            const Temporary above = make(index, channels, ratio);
            Temporary below = make(index, channels, ratio);
            const Temporary shifted = make(index, channels, ratio);
            below.reset();
            factor = make(index, channels, ratio);
        }
        scaled = like(index, update);
        scaled = like(index, update); // by the limiter
    }
}

Temporary UpdateRules::whole(std::size_t index, NameId name) const
{
    return Temporary(m_trace, tensor(index).elements * 4, name, tensor(index).module);
}

/// p = p.float() + lr g.float(), of half weights.
void UpdateRules::lomo(const Indices& tensors)
{
    for (const std::size_t index : tensors) {
        if (elementBytes(index) == 4)
            continue;
        const Temporary gradient = whole(index, m_trace.name("fp32 gradient"));
        const Temporary weight = whole(index, m_trace.name("fp32 weight"));
    }
}

/// Squares, then the estimate of their inverse root, beside the gradient in fp32; then the weight in fp32.
void UpdateRules::adaLomo(const Indices& tensors)
{
    const NameId update = m_trace.name("update");
    for (const std::size_t index : tensors) {
        const bool isHalf = elementBytes(index) != 4;
        Temporary gradient;
        if (isHalf)
            gradient = whole(index, m_trace.name("fp32 gradient"));
        Temporary square = whole(index, update);
        Temporary shifted = whole(index, update);
        square.reset();
        shifted = whole(index, update);
        if (isHalf)
            whole(index, m_trace.name("fp32 weight"));
    }
}

void UpdateRules::adafactorLoop(const Indices& tensors)
{
    const NameId mean = m_trace.name("mean square"), estimate = m_trace.name("variance estimate");
    Temporary rowMean, columnMean, squared, update;
    for (const std::size_t index : tensors) {
        norm(index);
        Temporary variance;
        if (tensor(index).shape.size() > 1) {
            rowMean = make(index, rows(index), mean);
            columnMean = make(index, columns(index), mean);
            variance = like(index, estimate);
            make(index, rows(index) / tensor(index).shape[tensor(index).shape.size() - 2], mean);
        } else {
            squared = like(index, mean);
            variance = like(index, estimate);
        }
        update = std::move(variance);
        norm(index);
    }
}

void UpdateRules::adafactorForeachMatrices(const Indices& tensors, std::vector<Temporary>& updates)
{
    const NameId mean = m_trace.name("mean square"), estimate = m_trace.name("variance estimate");
    std::vector<Temporary> means;
    for (const std::size_t index : tensors)
        means.push_back(make(index, rows(index), mean));
    means.clear();
    for (const std::size_t index : tensors)
        means.push_back(make(index, columns(index), mean));
    means.clear();
    for (const std::size_t index : tensors)
        updates.push_back(like(index, estimate));
    for (const std::size_t index : tensors)
        means.push_back(make(index, rows(index) / tensor(index).shape[tensor(index).shape.size() - 2], mean));
}

void UpdateRules::adafactorForeachVectors(const Indices& tensors, std::vector<Temporary>& updates)
{
    const NameId mean = m_trace.name("mean square"), estimate = m_trace.name("variance estimate");
    {
        std::vector<Temporary> squared;
        for (const std::size_t index : tensors)
            squared.push_back(like(index, mean));
    }
    for (const std::size_t index : tensors)
        updates.push_back(like(index, estimate));
}

/// Matrices and vectors are two groups; the first group's updates are dropped when the second's
/// exist.
void UpdateRules::adafactorForeach(const Indices& tensors)
{
    Indices matrices, vectors;
    for (const std::size_t index : tensors)
        (tensor(index).shape.size() > 1 ? matrices : vectors).push_back(index);
    const bool matricesFirst = !tensors.empty() && tensor(tensors.front()).shape.size() > 1;
    std::vector<Temporary> updates;
    for (const bool isMatrix : {matricesFirst, !matricesFirst}) {
        const Indices& group = isMatrix ? matrices : vectors;
        for (const std::size_t index : group)
            norm(index);
        std::vector<Temporary> next;
        if (isMatrix)
            adafactorForeachMatrices(group, next);
        else
            adafactorForeachVectors(group, next);
        updates = std::move(next);
        for (const std::size_t index : group)
            norm(index);
    }
}

} // namespace memscape
