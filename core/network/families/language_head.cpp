// SPDX-License-Identifier: Apache-2.0
#include "core/network/families/language_head.h"
#include "core/base/rounding.h"

#include <algorithm>

namespace memscape {

namespace {

Variable capped(const LanguageHead& head, Variable logits)
{
    return head.after ? head.after(std::move(logits)) : logits;
}

Variable logitsOf(NetworkBuilder& b, Variable hidden, const LanguageHead& head)
{
    return capped(head,
                  head.tied ? b.linear(std::move(hidden), head.tied)
                            : b.linear(head.module, std::move(hidden), head.vocabulary, head.hasBias));
}

/// The head's matrix and bias as parameters, for losses that multiply by them themselves.
struct HeadMatrix
{
    Variable weight, bias;
};

HeadMatrix matrixOf(NetworkBuilder& b, const Variable& hidden, const LanguageHead& head)
{
    if (head.tied)
        return {head.tied, {}};
    const ModuleScope scope(b, head.module, "Linear");
    HeadMatrix matrix;
    matrix.weight = b.parameter("weight", {head.vocabulary, hidden.size(-1)});
    if (head.hasBias)
        matrix.bias = b.parameter("bias", {head.vocabulary});
    return matrix;
}

Variable inLossPrecision(NetworkBuilder& b, Variable logits)
{
    return b.options().logitsInFloat ? b.cast(std::move(logits), DType::Float32) : logits;
}

/// (B, S, V) as rows of V.
Variable rowsOf(NetworkBuilder& b, const Variable& x)
{
    return b.reshape(x, {x.layout().elements() / std::max<std::int64_t>(x.size(-1), 1), x.size(-1)});
}

/// The sizes that tensor.split(most) makes.
std::vector<std::int64_t> piecesOfAtMost(std::int64_t length, std::int64_t most)
{
    std::vector<std::int64_t> sizes;
    for (std::int64_t first = 0; first < length; first += most)
        sizes.push_back(std::min(most, length - first));
    return sizes;
}

/// The sizes that tensor.chunk(count) makes: equal ones, and a smaller last one.
std::vector<std::int64_t> piecesOf(std::int64_t length, std::int64_t count)
{
    return piecesOfAtMost(length, std::max<std::int64_t>(quotientUp(length, std::max<std::int64_t>(count, 1)), 1));
}

/// Logits of each of `pieces` tokens of hidden states (B, S, H).
std::vector<Variable> logitsInPieces(NetworkBuilder& b, Variable hidden, const LanguageHead& head,
                                     const std::vector<std::int64_t>& pieces)
{
    std::vector<Variable> logits = b.split(std::move(hidden), pieces, 1);
    if (head.tied)
        for (Variable& piece : logits)
            piece = b.linear(std::move(piece), head.tied);
    else
        logits = b.linearOfEach(head.module, std::move(logits), head.vocabulary, head.hasBias);
    for (Variable& piece : logits)
        piece = capped(head, std::move(piece));
    return logits;
}

/// The mean over all of `targets`, from the loss of each piece; `rowsOfPiece(i)` makes its rows of logits.
template <typename Rows>
Variable lossOfPieces(NetworkBuilder& b, Variable targets, const std::vector<std::int64_t>& pieces, int dimension,
                      Rows rowsOfPiece)
{
    const Variable count = b.call(b.compare(targets), [&](const Variable&) { return b.fill({}, DType::Int64); });
    std::vector<Variable> labels = b.split(std::move(targets), pieces, dimension);
    for (Variable& piece : labels)
        piece = b.reshape(piece, {piece.layout().elements()});
    Variable loss;
    for (std::size_t i = 0; i < pieces.size() && b.ok(); ++i) {
        Variable part = b.crossEntropy(rowsOfPiece(i), labels[i]);
        loss = loss ? b.addInPlace(std::move(loss), std::move(part)) : b.shift(std::move(part));
    }
    return b.divide(std::move(loss), count);
}

// The model returns all logits, as a list; then the loop computes the loss of each piece, whose float copy dies before
// the next one's is made.
Result<Graph> finishInChunks(NetworkBuilder& b, Variable hidden, const LanguageHead& head)
{
    const Shape tokens{hidden.size(0), hidden.size(1)};
    const std::vector<std::int64_t> pieces = piecesOf(tokens[1], b.options().lossChunks);
    const std::vector<Variable> logits = logitsInPieces(b, std::move(hidden), head, pieces);
    if (!b.ok())
        return b.finish(Variable());
    return b.finish(logits, lossOfPieces(b, b.target("targets", tokens, DType::Int64), pieces, 1, [&](std::size_t i) {
                        return inLossPrecision(b, rowsOf(b, logits[i]));
                    }));
}

/// Fabric's convert_output: all that a network returns in float, then what it returned goes.
std::vector<Variable> allInFloat(NetworkBuilder& b, const std::vector<Variable>& returned)
{
    std::vector<Variable> converted;
    for (const Variable& one : returned)
        converted.push_back(b.cast(one, DType::Float32));
    return converted;
}

// chunked_cross_entropy (litgpt/utils.py): with adapters the head itself makes logits of 128 tokens of each sequence at
// a time; without, all logits are made, and rows of all tokens but the last go through the loss 128 at a time.
Result<Graph> finishLitGpt(NetworkBuilder& b, Variable hidden, const LanguageHead& head)
{
    constexpr std::int64_t most = 128;
    const std::int64_t batch = hidden.size(0), length = hidden.size(1), last = std::max<std::int64_t>(length - 1, 1);
    Variable targets = b.narrow(b.target("targets", {batch, length}, DType::Int64), 1, last);
    std::vector<Variable> logits;
    if (!b.options().adapters) {
        logits = allInFloat(b, {logitsOf(b, std::move(hidden), head)});
        if (!b.ok())
            return b.finish(Variable());
        const std::vector<std::int64_t> pieces = piecesOfAtMost(batch * last, most);
        std::vector<Variable> rows = b.split(rowsOf(b, b.narrow(logits[0], 1, last)), pieces, 0);
        targets = b.reshape(std::move(targets), {batch * last});
        return b.finish(logits, lossOfPieces(b, std::move(targets), pieces, 0, [&](std::size_t i) { return rows[i]; }));
    }
    std::vector<std::int64_t> pieces = piecesOfAtMost(length, most);
    logits = allInFloat(b, logitsInPieces(b, std::move(hidden), head, pieces));
    if (!b.ok())
        return b.finish(Variable());
    if (pieces.back() > 1)
        logits.back() = b.narrow(logits.back(), 1, --pieces.back());
    else if (pieces.size() > 1)
        pieces.pop_back();
    return b.finish(
        logits, lossOfPieces(b, std::move(targets), pieces, 1, [&](std::size_t i) { return rowsOf(b, logits[i]); }));
}

Result<Graph> finishFused(NetworkBuilder& b, Variable hidden, const LanguageHead& head)
{
    const HeadMatrix matrix = matrixOf(b, hidden, head);
    if (matrix.bias)
        b.refuse("network.loss", "a fused loss is modelled for a head without a bias", "choose loss=library");
    const Variable targets = b.target("targets", {hidden.size(0), hidden.size(1)}, DType::Int64);
    Variable rows = rowsOf(b, hidden);
    hidden.reset();
    Variable loss = b.options().lossForm == LossForm::Liger ? b.ligerLoss(std::move(rows), matrix.weight, targets)
                                                            : b.cutLoss(std::move(rows), matrix.weight, targets);
    auto graph = b.finish(std::vector<Variable>(), std::move(loss));
    if (graph)
        graph->returnsLoss = true;
    return graph;
}

} // namespace

Variable tokenInput(NetworkBuilder& b, std::string_view name)
{
    const BuildOptions& options = b.options();
    return b.input(name, {options.batch, options.sequence - options.virtualTokens(AdapterKind::Prompt)}, DType::Int64);
}

Result<Graph> finishLanguageModel(NetworkBuilder& b, Variable hidden, const LanguageHead& head)
{
    const LossForm form = b.options().lossForm;
    if (head.isLitGpts && b.options().loss && b.ok())
        return finishLitGpt(b, std::move(hidden), head);
    if (!b.options().loss && b.options().lastLogits && b.ok()) // hidden_states[:, -1:, :], while the model names them
        return finishLanguageModel(b, logitsOf(b, b.narrow(hidden, 1, 1), head), head.rule);
    const bool takesLogits = form == LossForm::Library || form == LossForm::InPlace || form == LossForm::Sum;
    if (takesLogits || !b.options().loss || !b.ok())
        return finishLanguageModel(b, logitsOf(b, hidden, head),
                                   head.rule); // the function that computes the loss holds them
    return form == LossForm::Chunked ? finishInChunks(b, std::move(hidden), head)
                                     : finishFused(b, std::move(hidden), head);
}

Result<Graph> finishLanguageModel(NetworkBuilder& b, Variable logits, LogitsRule rule, Variable targets)
{
    const bool isDecoder = rule == LogitsRule::Decoder || rule == LogitsRule::OldDecoder;
    const Transformers version = isDecoder ? b.options().transformers : Transformers::From524;
    const bool keepsType = rule == LogitsRule::AsTheyAre
        || (rule == LogitsRule::Bert && b.options().transformers < Transformers::From524)
        || (rule == LogitsRule::OldDecoder && version < Transformers::Before454);
    if (version <= Transformers::Before446 && !keepsType && (b.options().logitsInFloat || !b.options().loss))
        logits = b.cast(logits, DType::Float32);
    if (!b.options().loss || !b.ok())
        return b.finish(std::move(logits));
    if (b.options().lossForm == LossForm::Sum) {
        Variable loss = b.sumAll(logits);
        return b.finish(std::move(logits), std::move(loss));
    }
    Variable named = logits; // what the model returns; the loss makes the float copy for itself
    if (!keepsType)
        logits = inLossPrecision(b, std::move(logits));
    const bool isShifted = version < Transformers::Before454 && logits.size(1) > 1;
    const std::int64_t length = logits.size(1) - (isShifted ? 1 : 0);
    if (!targets)
        targets = b.target("targets", {logits.size(0), length}, DType::Int64);
    const Variable shifted = isShifted ? b.contiguous(b.narrow(logits, 1, length)) : logits;
    const Shape rows{targets.layout().elements(), logits.size(-1)};
    Variable loss = b.options().lossForm == LossForm::InPlace ? b.inPlaceLoss(b.view(shifted, rows), targets)
                                                              : b.crossEntropy(b.view(shifted, rows), targets);
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
