// SPDX-License-Identifier: Apache-2.0
// Softmax and the fused norms: statistics of a row are kept for backward beside the input, in float
// on CUDA whatever the input's type (aten/src/ATen/native/cuda/layer_norm_kernel.cu). RMSNorm's
// fused kernel (torch.rms_norm, PyTorch 2.8) keeps one statistic instead of two.
//
// Left out: batch statistics across devices, evaluation mode.
#include "core/network/builder.h"

#include <array>

namespace memscape {

Variable NetworkBuilder::highPrecision(Variable x)
{
    const bool isLow = x && (x.dtype() == DType::BFloat16 || x.dtype() == DType::Float16);
    return m_options.autocast && isLow ? cast(std::move(x), DType::Float32) : x;
}

/// Norms, softmax and functions of one operand are on CUDA's float list, not on the CPU's
/// (aten/src/ATen/autocast_mode.h).
Variable NetworkBuilder::highPrecisionOnGpu(Variable x)
{
    return m_options.rules.isOnCpu ? x : highPrecision(std::move(x));
}

Variable NetworkBuilder::softmax(Variable x)
{
    const Variable held = x; // named by the caller until the operator is done, beside its cast
    const bool isLow = x && elementBytes(x.dtype()) < 4;
    const bool inFloat = m_options.autocast && isLow && !m_options.rules.isOnCpu;
    const DType computed = x && !inFloat ? x.dtype() : DType::Float32;
    return softmax(std::move(x), computed);
}

// CUDA's kernel reads fp16 and writes fp32; bf16 is cast before it (ATen/native/SoftMax.cpp).
Variable NetworkBuilder::softmax(Variable x, DType computed)
{
    if (!ok())
        return {};
    const bool isFused = x.dtype() == DType::Float16 && computed == DType::Float32;
    x = contiguous(isFused ? std::move(x) : cast(std::move(x), computed));
    if (!ok())
        return {};
    Variable result = record(OperatorKind::Softmax, {x.id()}, {Layout(x.shape()), computed}, {noTensor});
    if (ok() && m_options.rules.softmaxSavesInput)
        save(x.id());
    return settled(std::move(result), x);
}

Variable NetworkBuilder::logSoftmax(Variable x)
{
    const Variable held = x; // named by the caller until the operator is done, beside its cast
    return logSoftmaxOf(highPrecisionOnGpu(std::move(x)));
}

Variable NetworkBuilder::logSoftmaxOf(Variable x, bool isDivided)
{
    x = contiguous(std::move(x));
    if (!ok())
        return {};
    Variable result = record(OperatorKind::LogSoftmax, {x.id()}, {Layout(x.shape()), x.dtype()}, {noTensor});
    if (ok() && m_options.rules.softmaxSavesInput)
        save(x.id());
    if (ok())
        m_graph.operators.back().attribute = std::int64_t(isDivided);
    return settled(std::move(result), x);
}

Variable NetworkBuilder::layerNorm(Variable x, Variable weight, Variable bias)
{
    const Variable held = x;                    // named by the caller until the operator is done, beside its cast
    bias = highPrecisionOnGpu(std::move(bias)); // arguments of a C++ call, which gcc evaluates from the last
    weight = highPrecisionOnGpu(std::move(weight));
    x = highPrecisionOnGpu(std::move(x));
    if (!ok())
        return {};
    Variable copy; // that the kernel reads row by row; autograd keeps what it was given
    if (!x.layout().isContiguous()) {
        copy = record(OperatorKind::Clone, {x.id()}, {Layout(x.shape()), x.dtype()});
        m_graph.operators.back().hasGradient = false;
    }
    Shape rows = x.shape();
    rows[rows.rank - 1] = 1;
    const bool inFloat = m_options.rules.normStatisticsInFloat && elementBytes(x.dtype()) < 4;
    const DType own = m_options.rules.isOnCpu && weight ? weight.dtype() : x.dtype(); // of a mixed layer there
    const DType statistics = inFloat ? DType::Float32 : own;
    const Layout layout(x.shape());
    const DType dtype = x.dtype();
    std::array<TensorId, 3> inputs{x.id(), weight.id(), bias.id()};
    begin(OperatorKind::LayerNorm, {inputs.data(), bias ? 3u : weight ? 2u : 1u});
    const TensorId result = addOutput({layout, dtype}, true);
    const TensorId mean = addOutput({Layout(rows), statistics}, false);
    const TensorId deviation = addOutput({Layout(rows), statistics}, false);
    for (const TensorId tensor : {inputs[0], mean, deviation})
        save(tensor);
    if (weight)
        save(weight.id());
    if (bias)
        save(bias.id());
    return settled(Variable(*this, result), copy, x, weight, bias);
}

/// torch.rms_norm on a CPU: operator by operator, in float (aten/src/ATen/native/layer_norm.cpp).
Variable NetworkBuilder::composedRmsNorm(Variable x, Variable weight)
{
    if (!ok())
        return {};
    const DType dtype = x.dtype();
    x = elementBytes(dtype) < 4 ? cast(std::move(x), DType::Float32) : std::move(x);
    Variable root;
    {
        const Variable squares = unary(OperatorKind::Power, x);
        Variable sum = mean(squares, -1);
        sum = unary(OperatorKind::Shift, std::move(sum), true);
        root = unary(OperatorKind::ReciprocalRoot, std::move(sum));
    }
    Variable result = multiply(std::move(x), std::move(root));
    result = multiply(std::move(result), std::move(weight));
    return cast(std::move(result), dtype);
}

Variable NetworkBuilder::fusedRmsNorm(Variable x, Variable weight)
{
    if (m_options.rules.isOnCpu)
        return composedRmsNorm(std::move(x), std::move(weight));
    const Variable held = x; // named by the caller until the operator is done, beside its cast
    weight = highPrecisionOnGpu(std::move(weight));
    x = contiguous(highPrecisionOnGpu(std::move(x)));
    if (!ok())
        return {};
    Shape rows = x.shape();
    rows[rows.rank - 1] = 1;
    const Layout layout(x.shape());
    const DType dtype = x.dtype();
    begin(OperatorKind::RmsNorm, std::array{x.id(), weight.id()});
    const TensorId result = addOutput({layout, dtype}, true);
    const TensorId deviation = addOutput({Layout(rows), DType::Float32}, false);
    for (const TensorId tensor : {x.id(), deviation, weight.id()})
        save(tensor);
    return settled(Variable(*this, result), x, weight);
}

Variable NetworkBuilder::groupNorm(Variable x, std::int64_t groups, Variable weight, Variable bias)
{
    const Variable held = x; // named by the caller until the operator is done, beside its cast
    bias = highPrecisionOnGpu(std::move(bias));
    weight = highPrecisionOnGpu(std::move(weight));
    x = contiguous(highPrecisionOnGpu(std::move(x)));
    if (!ok())
        return {};
    const Layout layout(x.shape());
    const Layout statistics(Shape{x.size(0), groups});
    const DType dtype = x.dtype();
    const bool isInFloat = m_options.rules.normStatisticsInFloat || weight.dtype() != dtype;
    const DType kept = isInFloat ? DType::Float32 : dtype; // a CPU's are of the parameters' type
    begin(OperatorKind::GroupNorm, std::array{x.id(), weight.id(), bias.id()});
    const TensorId result = addOutput({layout, dtype}, true);
    const TensorId mean = addOutput({statistics, kept}, false);
    const TensorId deviation = addOutput({statistics, kept}, false);
    for (const TensorId tensor : {x.id(), weight.id(), mean, deviation})
        save(tensor);
    return settled(Variable(*this, result), x, weight, bias);
}

Variable NetworkBuilder::batchNorm(Variable x, Variable weight, Variable bias, Variable runningMean,
                                   Variable runningVariance)
{
    if (!ok())
        return {};
    const Layout layout = x.layout();
    const Layout channels(Shape{x.size(1)});
    const DType dtype = x.dtype();
    const bool isInFloat = m_options.rules.normStatisticsInFloat || weight.dtype() != dtype;
    const DType statistics = isInFloat ? DType::Float32 : dtype; // a CPU's are of the parameters' type
    begin(OperatorKind::BatchNorm, std::array{x.id(), weight.id(), bias.id(), runningMean.id(), runningVariance.id()});
    const TensorId result = addOutput({layout, dtype}, true);
    const TensorId mean = addOutput({channels, statistics}, false);
    const TensorId deviation = addOutput({channels, statistics}, false);
    for (const TensorId tensor : {x.id(), weight.id(), runningMean.id(), runningVariance.id(), mean, deviation})
        save(tensor);
    return settled(Variable(*this, result), x, weight, bias, runningMean, runningVariance);
}

} // namespace memscape
