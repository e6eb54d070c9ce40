// SPDX-License-Identifier: Apache-2.0
#include "core/network/network_program.h"

#include "core/network/builder.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include <fmt/format.h>

namespace memscape {

namespace {

class ProgramRunner
{
public:
    ProgramRunner(const NetworkFile& file, const BuildOptions& options)
        : m_file(file)
        , m_builder(options)
        , m_values(file.tensors)
    { }
    Result<Graph> run();

    // --- what the functions of operators ask --------------------------------------------------------
    NetworkBuilder& builder() { return m_builder; }
    Variable input(std::size_t i) const;
    std::size_t inputs() const { return m_step->tensors.size(); }
    std::vector<Variable> allInputs() const;
    const FileAttributes& attributes() const { return m_file.attributes[m_step->attributes]; }
    int dimension() const { return attributes().dimensions.empty() ? 0 : attributes().dimensions[0]; }
    Shape shape(std::size_t output = 0) const { return shapeOf(m_step->outputs[output]); }
    DType dtype(std::size_t output = 0) const { return typeOf(m_step->outputs[output]); }
    /// The last component of the path of the module that runs.
    std::string moduleName() const;
    bool hasInputs(std::size_t least); ///< else it refuses

private:
    Result<void> checkScale() const;
    std::int64_t sizeOf(const FileSize& size) const;
    Shape shapeOf(const FileTensor& tensor) const;
    DType typeOf(const FileTensor& tensor) const;
    void makeTensors();
    void makeOwned(const std::vector<FileNamedTensor>& list, bool isParameter);
    std::vector<bool> neededSteps() const;
    void runUntilLeft();
    void enter(const FileStep& step);
    void runOperator(const FileStep& step);
    void settle(const FileStep& step, std::vector<Variable> results);

    const NetworkFile& m_file;
    NetworkBuilder m_builder;
    std::vector<Variable> m_values; ///< by id
    std::vector<std::uint32_t> m_open;
    std::vector<bool> m_needed; ///< by step; empty: all
    const FileStep* m_step = nullptr;
    std::size_t m_next = 0;
};

namespace program {

// --- the operators of a file -------------------------------------------------------------------------

using Kind = OperatorKind;
using Results = std::vector<Variable>;
using Function = Results (*)(ProgramRunner&);

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

Results narrow(ProgramRunner& r)
{
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
    return one(b.adapted(r.moduleName(), r.input(0), std::move(result)));
}
Results mm(ProgramRunner& r)
{
    return r.hasInputs(2) ? one(r.builder().mm(r.input(0), r.input(1), r.inputs() > 2 ? r.input(2) : Variable()))
                          : Results();
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

Results other(ProgramRunner& r)
{
    const FileAttributes& a = r.attributes();
    if (!r.hasInputs(1))
        return {};
    return one(r.builder().other(r.allInputs(), Layout(r.shape()), r.dtype(),
                                 {a.keepsInputs, a.keepsResult, a.temporaries}, a.isInPlace));
}

const std::unordered_map<std::string_view, Function>& functions()
{
    static const std::unordered_map<std::string_view, Function> all{
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

/// Beside networkFileOperators().
const std::vector<Function>& functionTable()
{
    static const std::vector<Function> table = [] {
        std::vector<Function> all;
        for (const std::string_view name : networkFileOperators())
            all.push_back(functions().at(name));
        return all;
    }();
    return table;
}

std::string shapeText(const Shape& shape)
{
    std::string result = "(";
    for (int i = 0; i < std::min(shape.rank, maxRank); ++i)
        result += fmt::format("{}{}", i ? ", " : "", shape[i]);
    return result + ')';
}

} // namespace program

// --- the program ---------------------------------------------------------------------------------------

Variable ProgramRunner::input(std::size_t i) const
{
    return i < m_step->tensors.size() ? m_values[m_step->tensors[i]] : Variable();
}

std::vector<Variable> ProgramRunner::allInputs() const
{
    std::vector<Variable> all;
    for (std::size_t i = 0; i < inputs(); ++i)
        all.push_back(input(i));
    return all;
}

bool ProgramRunner::hasInputs(std::size_t least)
{
    bool has = inputs() >= least;
    for (std::size_t i = 0; has && i < inputs(); ++i)
        has = bool(input(i));
    if (!has)
        m_builder.refuse(
            "network_file.tensor",
            fmt::format("\"{}\" has {} inputs, {} are needed", networkFileOperators()[m_step->op], inputs(), least));
    return has;
}

std::string ProgramRunner::moduleName() const
{
    const std::string& path = m_file.modules[m_open.empty() ? 0 : m_open.back()].path;
    return path.substr(path.rfind('.') + 1);
}

std::int64_t ProgramRunner::sizeOf(const FileSize& size) const
{
    const BuildOptions& options = m_builder.options();
    const std::int64_t sequence = m_file.sequence > 0 ? options.sequence : 1;
    std::int64_t sum = size.constant, part = 0;
    bool overflows =
        __builtin_mul_overflow(size.batch, options.batch, &part) || __builtin_add_overflow(sum, part, &sum);
    overflows |= __builtin_mul_overflow(size.sequence, sequence, &part) || __builtin_add_overflow(sum, part, &sum);
    overflows |= __builtin_mul_overflow(size.both, options.batch, &part)
        || __builtin_mul_overflow(part, sequence, &part) || __builtin_add_overflow(sum, part, &sum);
    return overflows || sum < 0 ? -1 : sum;
}

Shape ProgramRunner::shapeOf(const FileTensor& tensor) const
{
    Shape shape;
    for (const FileSize& size : tensor.sizes)
        shape.append(sizeOf(size));
    return shape;
}

DType ProgramRunner::typeOf(const FileTensor& tensor) const
{
    return tensor.hasWeightsType ? m_builder.options().weights : tensor.dtype;
}

Result<void> ProgramRunner::checkScale() const
{
    const BuildOptions& options = m_builder.options();
    const auto only = [&](const char* what, std::int64_t size) {
        Error error{"network_file.scale", fmt::format("{} was exported for {}={} alone", m_file.name, what, size), what,
                    fmt::format("take {}={}, or export the model again with other example inputs", what, size)};
        error.remedy = Remedy{what, fmt::format("{}", size)};
        return fail(std::move(error));
    };
    if (!m_file.scalesBatch && options.batch != m_file.batch)
        return only("batch", m_file.batch);
    if (m_file.sequence > 0 && !m_file.scalesSequence && options.sequence != m_file.sequence)
        return only("sequence", m_file.sequence);
    return {};
}

/// Parameters and buffers, each within the module that owns it.
void ProgramRunner::makeOwned(const std::vector<FileNamedTensor>& list, bool isParameter)
{
    std::unordered_map<std::string_view, std::string_view> types;
    for (const FileModule& module : m_file.modules)
        types.emplace(module.path, module.type);
    for (const FileNamedTensor& named : list) {
        if (!m_builder.ok())
            return;
        const auto dot = named.name.rfind('.');
        const std::string_view owner = dot == std::string::npos ? "" : std::string_view(named.name).substr(0, dot);
        const std::string_view name = std::string_view(named.name).substr(dot == std::string::npos ? 0 : dot + 1);
        std::optional<ModuleScope> scope;
        const auto type = types.find(owner);
        if (!owner.empty())
            scope.emplace(m_builder, owner, type == types.end() ? "" : type->second);
        const Shape shape = shapeOf(named.tensor);
        m_values[named.tensor.id] = isParameter ? m_builder.parameter(name, shape, named.isTrained)
                                                : m_builder.buffer(name, shape, named.tensor.dtype);
    }
}

void ProgramRunner::makeTensors()
{
    makeOwned(m_file.parameters, true);
    makeOwned(m_file.buffers, false);
    for (const FileNamedTensor& named : m_file.inputs) {
        const Shape shape = shapeOf(named.tensor);
        if (!m_builder.options().loss && named.isTarget)
            continue; // only a loss reads it
        m_values[named.tensor.id] = named.isTarget ? m_builder.target(named.name, shape, typeOf(named.tensor))
                                                   : m_builder.input(named.name, shape, typeOf(named.tensor));
    }
}

/// Without a loss: the operators that the output needs.
std::vector<bool> ProgramRunner::neededSteps() const
{
    if (m_builder.options().loss || m_file.output == noFileTensor)
        return {};
    std::vector<bool> steps(m_file.program.size()), wanted(m_file.tensors);
    wanted[m_file.output] = true;
    for (std::size_t i = m_file.program.size(); i-- > 0;) {
        const FileStep& step = m_file.program[i];
        const bool isWanted = std::any_of(step.outputs.begin(), step.outputs.end(),
                                          [&](const FileTensor& output) { return wanted[output.id]; });
        if (step.kind != FileStep::Kind::Operator || !isWanted)
            continue;
        steps[i] = true;
        for (const FileTensorId id : step.tensors)
            wanted[id] = true;
    }
    return steps;
}

void ProgramRunner::settle(const FileStep& step, std::vector<Variable> results)
{
    if (!m_builder.ok())
        return;
    for (std::size_t i = 0; i < step.outputs.size(); ++i) {
        const Shape expected = shapeOf(step.outputs[i]);
        if (i >= results.size() || !results[i] || !(results[i].shape() == expected)) {
            m_builder.refuse(
                "network_file.shape",
                fmt::format("\"{}\" makes {}, the file says {}", networkFileOperators()[step.op],
                            i < results.size() && results[i] ? program::shapeText(results[i].shape()) : "nothing",
                            program::shapeText(expected)),
                "export the model again, if need be with example inputs of this batch and sequence");
            return;
        }
        m_values[step.outputs[i].id] = std::move(results[i]);
    }
}

void ProgramRunner::runOperator(const FileStep& step)
{
    m_step = &step;
    for (std::size_t i = 0; i < step.outputs.size(); ++i)
        if (!shape(i).elements())
            return m_builder.refuse("network.size",
                                    fmt::format("\"{}\" makes a tensor of {}", networkFileOperators()[step.op],
                                                program::shapeText(shape(i))),
                                    "make the batch or the sequence smaller");
    const FileAttributes& a = attributes();
    const bool had = m_builder.options().gradient;
    if (a.isWithoutGradient)
        m_builder.recordGradient(false);
    const bool needsInput = networkFileOperators()[step.op] != "fill";
    std::vector<Variable> results;
    if (!needsInput || hasInputs(1))
        results = program::functionTable()[step.op](*this);
    m_builder.recordGradient(had);
    settle(step, std::move(results));
}

void ProgramRunner::enter(const FileStep& step)
{
    const FileModule& module = m_file.modules[step.module];
    // The name within the module that calls it, as far as it is one of that one's own.
    const std::string& caller = m_open.empty() ? std::string() : m_file.modules[m_open.back()].path;
    const bool isOwn = !caller.empty() && module.path.starts_with(caller + '.');
    std::optional<ModuleScope> scope;
    if (!module.path.empty())
        scope.emplace(m_builder, isOwn ? module.path.substr(caller.size() + 1) : module.path, module.type);
    m_open.push_back(step.module);
    if (!step.isLayer)
        return runUntilLeft();
    m_builder.layer([&] {
        runUntilLeft();
        const FileStep& left = m_file.program[m_next - 1];
        return left.tensors.empty() ? Variable() : m_values[left.tensors[0]];
    });
}

void ProgramRunner::runUntilLeft()
{
    while (m_next < m_file.program.size() && m_builder.ok()) {
        const std::size_t at = m_next++;
        const FileStep& step = m_file.program[at];
        switch (step.kind) {
        case FileStep::Kind::Operator:
            if (m_needed.empty() || m_needed[at])
                runOperator(step);
            break;
        case FileStep::Kind::Free:
            for (const FileTensorId id : step.tensors)
                m_values[id].reset();
            break;
        case FileStep::Kind::Enter: enter(step); break;
        case FileStep::Kind::Leave: m_open.pop_back(); return;
        }
    }
}

Result<Graph> ProgramRunner::run()
{
    MEMSCAPE_CHECK(checkScale());
    m_needed = neededSteps();
    makeTensors();
    runUntilLeft();
    const bool hasLoss = m_builder.options().loss && m_file.loss != noFileTensor;
    Variable output = m_file.output != noFileTensor ? m_values[m_file.output] : m_values[m_file.loss];
    Variable loss = hasLoss ? m_values[m_file.loss] : Variable();
    m_values.clear();
    auto graph = m_builder.finish(std::move(output), std::move(loss));
    if (graph)
        graph->returnsLoss = m_file.returnsLoss && hasLoss;
    return graph;
}

} // namespace

Result<Graph> runNetworkFile(const NetworkFile& file, const BuildOptions& options)
{
    return ProgramRunner(file, options).run();
}

} // namespace memscape
