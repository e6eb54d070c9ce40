// SPDX-License-Identifier: Apache-2.0
#include "core/network/network_runner.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

namespace memscape {

namespace program {

// --- the operators of a file -------------------------------------------------------------------------

using Kind = OperatorKind;

Results one(Variable result)
{
    Results results;
    results.push_back(std::move(result));
    return results;
}

template <OperatorKind kind> Results unary(ProgramRunner& r)
{
    return one(r.builder().unary(kind, r.input(0), r.attributes().isInPlace));
}

template <OperatorKind kind> Results binary(ProgramRunner& r)
{
    NetworkBuilder& b = r.builder();
    if (!r.hasInputs(2))
        return {};
    if (r.attributes().isInPlace && kind == Kind::Add)
        return one(b.addInPlace(r.input(0), r.input(1)));
    if (r.attributes().isInPlace) {
        const bool keeps = kind == Kind::Multiply || kind == Kind::Divide;
        return one(b.other(r.allInputs(), {}, r.dtype(), {keeps, false}, true));
    }
    switch (kind) {
    case Kind::Add: return one(b.add(r.input(0), r.input(1)));
    case Kind::Subtract: return one(b.subtract(r.input(0), r.input(1)));
    case Kind::Multiply: return one(b.multiply(r.input(0), r.input(1)));
    default: return one(b.divide(r.input(0), r.input(1)));
    }
}

Results view(ProgramRunner& r)
{
    return one(r.builder().view(r.input(0), r.shape()));
}
Results reshape(ProgramRunner& r)
{
    return one(r.builder().reshape(r.input(0), r.shape()));
}
Results alias(ProgramRunner& r)
{
    return one(r.input(0).layout().viewed(r.shape()) ? r.builder().view(r.input(0), r.shape())
                                                     : r.builder().detach(r.input(0)));
}
Results permute(ProgramRunner& r)
{
    return one(r.builder().permute(r.input(0), std::span<const int>(r.attributes().dimensions)));
}
Results expand(ProgramRunner& r)
{
    return one(r.builder().expand(r.input(0), r.shape()));
}

/// Whether the dimension that the operator works on is one of its input.
bool hasDimension(ProgramRunner& r)
{
    if (!r.builder().ok() || !r.hasInputs(1))
        return false;
    if (r.dimension() < r.input(0).shape().rank)
        return true;
    r.builder().refuse("network_file.shape",
                       fmt::format("dimension {} of a tensor of {}", r.dimension(), r.input(0).shape().rank));
    return false;
}

/// The same for the number of dimensions of an input.
bool hasRank(ProgramRunner& r, std::size_t i, int least, int most = maxRank)
{
    if (!r.builder().ok() || !r.hasInputs(i + 1))
        return false;
    const int rank = r.input(i).shape().rank;
    if (rank >= least && rank <= most)
        return true;
    r.builder().refuse("network_file.shape",
                       fmt::format("input {} has {} dimensions; {} to {} are understood", i, rank, least, most));
    return false;
}

/// A colon alone makes a node before PyTorch 2.0.
Results narrow(ProgramRunner& r)
{
    const bool isWhole = r.hasInputs(1) && r.shape() == r.input(0).shape();
    if (isWhole && !r.builder().options().rules.slicesWholeDimensions)
        return one(r.input(0));
    return hasDimension(r) ? one(r.builder().narrow(r.input(0), r.dimension(), r.shape()[r.dimension()])) : Results();
}
Results select(ProgramRunner& r)
{
    return hasDimension(r) ? one(r.builder().select(r.input(0), r.dimension())) : Results();
}
Results unbind(ProgramRunner& r)
{
    return hasDimension(r) ? r.builder().unbind(r.input(0), r.dimension()) : Results();
}
Results split(ProgramRunner& r)
{
    if (!hasDimension(r))
        return {};
    std::vector<std::int64_t> sizes;
    for (std::size_t i = 0; r.builder().ok() && i < 255; ++i) {
        sizes.push_back(r.shape(i)[r.dimension()]);
        std::int64_t sum = 0;
        for (const std::int64_t size : sizes)
            sum += size;
        if (sum >= r.input(0).shape()[r.dimension()] || sizes.back() < 1)
            break;
    }
    return r.builder().split(r.input(0), sizes, r.dimension());
}
Results detach(ProgramRunner& r)
{
    return one(r.builder().detach(r.input(0)));
}
Results contiguous(ProgramRunner& r)
{
    return one(r.builder().contiguous(r.input(0)));
}
Results clone(ProgramRunner& r)
{
    return one(r.builder().clone(r.input(0)));
}
Results cast(ProgramRunner& r)
{
    return one(r.builder().cast(r.input(0), r.dtype()));
}
/// Of one type: the widest (autocast's promote list).
std::vector<Variable> promotedInputs(ProgramRunner& r)
{
    std::vector<Variable> parts = r.allInputs();
    DType widest = parts[0].dtype();
    for (const Variable& part : parts)
        if (isFloating(part.dtype()) && elementBytes(part.dtype()) > elementBytes(widest))
            widest = part.dtype();
    for (Variable& part : parts)
        if (isFloating(part.dtype()))
            part = r.builder().cast(std::move(part), widest);
    return parts;
}
Results cat(ProgramRunner& r)
{
    return hasDimension(r) ? one(r.builder().cat(promotedInputs(r), r.dimension())) : Results();
}
Results stack(ProgramRunner& r)
{
    return hasRank(r, 0, r.dimension(), maxRank - 1) ? one(r.builder().stack(promotedInputs(r), r.dimension()))
                                                     : Results();
}
Results fill(ProgramRunner& r)
{
    Variable made = r.builder().fill(r.shape(), r.dtype());
    return one(std::move(made));
}
Results where(ProgramRunner& r)
{
    return r.hasInputs(2) ? one(r.builder().where(r.input(1), r.input(0))) : Results();
}
Results maskedFill(ProgramRunner& r)
{
    return r.hasInputs(2) ? one(r.builder().maskedFill(r.input(0), r.input(1))) : Results();
}
Results dropout(ProgramRunner& r)
{
    return one(r.builder().dropout(r.input(0), r.attributes().probability));
}

template <OperatorKind kind> Results reduced(ProgramRunner& r)
{
    NetworkBuilder& b = r.builder();
    const std::vector<int>& dimensions = r.attributes().dimensions;
    if (dimensions.empty())
        return one(kind == Kind::Sum        ? b.sumAll(r.input(0))
                       : kind == Kind::Mean ? b.meanAll(r.input(0))
                                            : b.reduced(kind, r.input(0), Shape{}));
    const bool keeps = r.attributes().keepsSizes;
    if (dimensions.size() == 1 && hasDimension(r)) {
        switch (kind) {
        case Kind::Sum: return one(b.sum(r.input(0), dimensions[0], keeps));
        case Kind::Mean: return one(b.mean(r.input(0), dimensions[0], keeps));
        case Kind::Maximum: return one(b.maximum(r.input(0), dimensions[0], keeps));
        default: break;
        }
    }
    Shape kept = r.input(0).shape();
    for (const int dimension : dimensions)
        if (dimension < kept.rank)
            kept[dimension] = 1;
    Variable result = b.reduced(kind, r.input(0), kept);
    return one(keeps ? std::move(result) : b.view(std::move(result), r.shape()));
}

Results softmax(ProgramRunner& r)
{
    return hasRank(r, 0, 0) ? one(r.builder().softmax(r.input(0))) : Results();
}
Results logSoftmax(ProgramRunner& r)
{
    return one(r.builder().logSoftmax(r.input(0)));
}
Results layerNorm(ProgramRunner& r)
{
    NetworkBuilder& b = r.builder();
    if (!hasRank(r, 0, 1))
        return {};
    if (r.inputs() < 2 || r.attributes().count != 1)
        return one(b.other(r.allInputs(), Layout(r.shape()), r.dtype(), {true, false}, false));
    return one(b.layerNorm(r.input(0), r.input(1), r.inputs() > 2 ? r.input(2) : Variable()));
}
Results rmsNorm(ProgramRunner& r)
{
    return hasRank(r, 0, 1) && r.hasInputs(2) ? one(r.builder().fusedRmsNorm(r.input(0), r.input(1))) : Results();
}
Results groupNorm(ProgramRunner& r)
{
    return r.hasInputs(3) ? one(r.builder().groupNorm(r.input(0), r.attributes().count, r.input(1), r.input(2)))
                          : Results();
}
Results batchNorm(ProgramRunner& r)
{
    return r.hasInputs(5) ? one(r.builder().batchNorm(r.input(0), r.input(1), r.input(2), r.input(3), r.input(4)))
                          : Results();
}

Results linear(ProgramRunner& r)
{
    if (!hasRank(r, 0, 1) || !hasRank(r, 1, 2, 2))
        return {};
    NetworkBuilder& b = r.builder();
    Variable result = b.linear(r.input(0), r.input(1), r.inputs() > 2 ? r.input(2) : Variable());
    return one(b.adapted(r.input(0), std::move(result), r.input(1), r.inputs() > 2 ? r.input(2) : Variable()));
}
/// With a bias: a linear layer whose weight lies transposed, as transformers' Conv1D, which adapters know.
Results mm(ProgramRunner& r)
{
    if (!r.hasInputs(2))
        return {};
    NetworkBuilder& b = r.builder();
    if (r.inputs() == 2)
        return one(b.mm(r.input(0), r.input(1)));
    Variable result = b.mm(r.input(0), r.input(1), r.input(2));
    return one(b.adapted(r.input(0), std::move(result), r.input(1), r.input(2)));
}
Results bmm(ProgramRunner& r)
{
    return hasRank(r, 0, 3, 3) && hasRank(r, 1, 3, 3) ? one(r.builder().bmm(r.input(0), r.input(1))) : Results();
}

/// torch.matmul: two matrices, or a batch of rows times one matrix (one product of all rows), or batches.
Results matmul(ProgramRunner& r)
{
    if (!hasRank(r, 0, 2) || !hasRank(r, 1, 2))
        return {};
    NetworkBuilder& b = r.builder();
    Variable x = r.input(0), y = r.input(1);
    const int rankX = x.shape().rank, rankY = y.shape().rank;
    if (rankX == 2 && rankY == 2)
        return one(b.mm(std::move(x), std::move(y)));
    if (rankX > 2 && rankY == 2) {
        const Shape rows{x.layout().elements() / std::max<std::int64_t>(x.size(-1), 1), x.size(-1)};
        Variable product = b.mm(b.reshape(std::move(x), rows), std::move(y));
        return one(b.view(std::move(product), r.shape()));
    }
    for (Variable* const each : {&x, &y}) {
        Shape shape = each->shape();
        if (shape.rank >= std::max(rankX, rankY))
            continue;
        Shape wider;
        for (int i = shape.rank; i < std::max(rankX, rankY); ++i)
            wider.append(1);
        for (int i = 0; i < shape.rank; ++i)
            wider.append(shape[i]);
        *each = b.view(std::move(*each), wider);
    }
    return one(b.matmul(std::move(x), std::move(y)));
}

/// Every letter of the result is of an operand, and every operand has as many letters as dimensions.
bool isEinsum(std::string_view equation, int rankX, int rankY)
{
    const auto comma = equation.find(','), arrow = equation.find("->");
    if (comma == equation.npos || arrow == equation.npos || arrow < comma)
        return false;
    const std::string_view x = equation.substr(0, comma), y = equation.substr(comma + 1, arrow - comma - 1),
                           result = equation.substr(arrow + 2);
    const auto isOnce = [](std::string_view letters) {
        for (std::size_t i = 0; i < letters.size(); ++i)
            if (letters.find(letters[i], i + 1) != letters.npos)
                return false;
        return letters.size() <= std::size_t(maxRank);
    };
    const auto isKnown = [&](char c) { return x.find(c) != x.npos || y.find(c) != y.npos; };
    const auto isUsed = [](std::string_view letters, std::string_view other, std::string_view left) {
        return std::all_of(letters.begin(), letters.end(),
                           [&](char c) { return other.find(c) != other.npos || left.find(c) != left.npos; });
    };
    return int(x.size()) == rankX && int(y.size()) == rankY && isOnce(x) && isOnce(y) && isOnce(result)
        && std::all_of(result.begin(), result.end(), isKnown) && isUsed(x, y, result) && isUsed(y, x, result);
}

Results einsum(ProgramRunner& r)
{
    if (!r.hasInputs(2))
        return {};
    const std::string& equation = r.attributes().equation;
    if (isEinsum(equation, r.input(0).shape().rank, r.input(1).shape().rank))
        return one(r.builder().einsum(equation, r.input(0), r.input(1)));
    r.builder().refuse("network_file.shape",
                       fmt::format("einsum \"{}\" does not fit its operands", equation.substr(0, 60)));
    return {};
}

Results convolution(ProgramRunner& r)
{
    if (!r.hasInputs(2))
        return {};
    return one(r.builder().convolution(r.input(0), r.input(1), r.inputs() > 2 ? r.input(2) : Variable(), r.shape(),
                                       r.attributes().count));
}

template <OperatorKind kind> Results pool(ProgramRunner& r)
{
    if (kind == Kind::AdaptiveAveragePool && r.shape().rank == 4 && r.shape()[2] == 1 && r.shape()[3] == 1)
        return one(r.builder().adaptiveAveragePool(r.input(0), 1));
    return one(r.builder().pool(kind, r.input(0), r.shape()));
}
Results interpolate(ProgramRunner& r)
{
    return one(r.builder().pool(r.attributes().isBilinear ? Kind::InterpolateBilinear : Kind::InterpolateNearest,
                                r.input(0), r.shape()));
}

Results embedding(ProgramRunner& r)
{
    return hasRank(r, 0, 0, maxRank - 1) && hasRank(r, 1, 2, 2) ? one(r.builder().embedding(r.input(0), r.input(1)))
                                                                : Results();
}
Results index(ProgramRunner& r)
{
    return r.hasInputs(1) ? one(r.builder().other(r.allInputs(), Layout(r.shape()), r.dtype(), {true, false}, false))
                          : Results();
}
Results indexSelect(ProgramRunner& r)
{
    return r.hasInputs(2) && hasDimension(r) ? one(r.builder().indexSelect(r.input(0), r.dimension(), r.input(1)))
                                             : Results();
}
Results gather(ProgramRunner& r)
{
    return r.hasInputs(2) ? one(r.builder().gather(r.input(0), r.input(1))) : Results();
}
Results crossEntropy(ProgramRunner& r)
{
    return r.hasInputs(2) ? one(r.builder().crossEntropy(r.input(0), r.input(1))) : Results();
}
Results nllLoss(ProgramRunner& r)
{
    return r.hasInputs(2)
        ? one(r.builder().other(r.allInputs(), Layout(Shape{}), r.input(0).dtype(), {true, false}, false))
        : Results();
}
Results mseLoss(ProgramRunner& r)
{
    return r.hasInputs(2) ? one(r.builder().mseLoss(r.input(0), r.input(1))) : Results();
}

/// _scaled_dot_product_attention_math: scores, softmax and context written out, in float
/// (ATen/native/transformers/attention.cpp).
Variable attentionWrittenOut(ProgramRunner& r, const std::vector<Variable>& inputs)
{
    NetworkBuilder& b = r.builder();
    const DType dtype = inputs[0].dtype();
    const DType computed = elementBytes(dtype) < 4 ? DType::Float32 : dtype;
    const Variable wideQ = b.cast(inputs[0], computed), wideK = b.cast(inputs[1], computed),
                   wideV = b.cast(inputs[2], computed);
    const Variable q = b.scale(wideQ);
    const Variable k = b.repeatedHeads(wideK, q.size(1)), v = b.repeatedHeads(wideV, q.size(1));
    Variable scores = b.matmul(q, b.scale(b.transpose(k, -2, -1)));
    if (r.inputs() > 3)
        scores = b.addInPlace(std::move(scores), r.input(3));
    scores = b.softmax(std::move(scores));
    scores = b.dropout(std::move(scores), r.attributes().probability);
    const Variable weights = b.cast(scores, dtype); // its second result, which nothing takes
    return b.cast(b.matmul(scores, v), dtype);
}

Variable attentionWithoutAutocast(ProgramRunner& r)
{
    NetworkBuilder& b = r.builder();
    std::vector<Variable> inputs = r.allInputs();
    const auto autocast = b.recordAutocast({});
    for (std::size_t i = 3; autocast && i-- > 0;)
        if (inputs[i].dtype() == DType::Float32)
            inputs[i] = b.cast(inputs[i], *autocast);
    Variable result = attentionWrittenOut(r, inputs);
    b.recordAutocast(autocast);
    return result;
}

Results attention(ProgramRunner& r)
{
    if (!r.hasInputs(3))
        return {};
    NetworkBuilder& b = r.builder();
    if (b.ok()
        && (r.input(0).shape().rank != 4 || r.input(1).shape().rank != 4 || r.input(2).shape().rank != 4
            || r.input(1).size(1) < 1 || r.input(0).size(1) % r.input(1).size(1) != 0))
        b.refuse("network_file.shape",
                 "attention is understood for (batch, heads, tokens, width), with heads of keys "
                 "that divide those of queries");
    return one(b.attentionCore([&] {
        return b.options().attention == AttentionKernel::Eager ? attentionWithoutAutocast(r)
                                                               : b.scaledDotProduct(r.input(0), r.input(1), r.input(2));
    }));
}

/// Of a result: under autocast the widest of what the operator takes.
DType computedType(ProgramRunner& r)
{
    if (!r.hasWeightsType() || !r.builder().options().autocast)
        return r.dtype();
    DType widest = *r.builder().options().autocast;
    for (const Variable& input : r.allInputs())
        if (isFloating(input.dtype()) && elementBytes(input.dtype()) > elementBytes(widest))
            widest = input.dtype();
    return widest;
}

Results other(ProgramRunner& r)
{
    const FileAttributes& a = r.attributes();
    if (!r.hasInputs(1))
        return {};
    return one(r.builder().other(r.allInputs(), Layout(r.shape()), computedType(r),
                                 {a.keepsInputs, a.keepsResult, a.temporaries}, a.isInPlace));
}

const std::vector<NamedFunction>& functions()
{
    static const std::vector<NamedFunction> all{
        {"adaptive_avg_pool", pool<Kind::AdaptiveAveragePool>},
        {"add", binary<Kind::Add>},
        {"addmm", mm},
        {"alias", alias},
        {"attention", attention},
        {"avg_pool", pool<Kind::AveragePool>},
        {"batch_norm", batchNorm},
        {"bmm", bmm},
        {"cast", cast},
        {"cat", cat},
        {"clone", clone},
        {"contiguous", contiguous},
        {"convolution", convolution},
        {"cross_entropy", crossEntropy},
        {"detach", detach},
        {"div", binary<Kind::Divide>},
        {"dropout", dropout},
        {"einsum", einsum},
        {"elu", unary<Kind::Elu>},
        {"embedding", embedding},
        {"exp", unary<Kind::Exponential>},
        {"expand", expand},
        {"fill", fill},
        {"gather", gather},
        {"gelu", unary<Kind::Gelu>},
        {"group_norm", groupNorm},
        {"hardswish", unary<Kind::HardSwish>},
        {"hardtanh", unary<Kind::HardTanh>},
        {"index", index},
        {"index_select", indexSelect},
        {"interpolate", interpolate},
        {"layer_norm", layerNorm},
        {"leaky_relu", unary<Kind::LeakyRelu>},
        {"linear", linear},
        {"log", unary<Kind::Logarithm>},
        {"log_softmax", logSoftmax},
        {"masked_fill", maskedFill},
        {"matmul", matmul},
        {"max", reduced<Kind::Maximum>},
        {"max_pool", pool<Kind::MaxPool>},
        {"mean", reduced<Kind::Mean>},
        {"mish", unary<Kind::Mish>},
        {"mm", mm},
        {"mse_loss", mseLoss},
        {"mul", binary<Kind::Multiply>},
        {"narrow", narrow},
        {"neg", unary<Kind::Negate>},
        {"nll_loss", nllLoss},
        {"other", other},
        {"permute", permute},
        {"pow", unary<Kind::Power>},
        {"relu", unary<Kind::Relu>},
        {"reshape", reshape},
        {"rms_norm", rmsNorm},
        {"rsqrt", unary<Kind::ReciprocalRoot>},
        {"scale", unary<Kind::Scale>},
        {"select", select},
        {"shift", unary<Kind::Shift>},
        {"sigmoid", unary<Kind::Sigmoid>},
        {"silu", unary<Kind::Silu>},
        {"softmax", softmax},
        {"softplus", unary<Kind::Softplus>},
        {"split", split},
        {"sqrt", unary<Kind::SquareRoot>},
        {"square", unary<Kind::Square>},
        {"stack", stack},
        {"sub", binary<Kind::Subtract>},
        {"sum", reduced<Kind::Sum>},
        {"tanh", unary<Kind::Tanh>},
        {"unbind", unbind},
        {"var", reduced<Kind::Variance>},
        {"view", view},
        {"where", where},
    };
    return all;
}

std::string shapeText(const Shape& shape)
{
    std::string result = "(";
    for (int i = 0; i < std::min(shape.rank, maxRank); ++i)
        result += fmt::format("{}{}", i ? ", " : "", shape[i]);
    return result + ')';
}

} // namespace program

const std::vector<std::string_view>& networkFileOperators()
{
    static const std::vector<std::string_view> names = [] {
        std::vector<std::string_view> all;
        for (const program::NamedFunction& one : program::functions())
            all.push_back(one.name);
        return all;
    }();
    return names;
}

} // namespace memscape
