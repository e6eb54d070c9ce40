// SPDX-License-Identifier: Apache-2.0
// Layers of a NetworkBuilder: a module of the layer's name, its parameters under PyTorch's names, and
// the operator.
#include "core/network/builder.h"

#include <utility>

namespace memscape {

Variable NetworkBuilder::linear(std::string_view name, Variable x, std::int64_t outputs, bool hasBias)
{
    const ModuleScope scope(*this, name, "Linear");
    Variable weight = linearWeight({outputs, x.size(-1)});
    Variable bias = hasBias ? linearBias(outputs, x.dtype()) : Variable();
    if (!hasAdapter())
        return storedLinear(std::move(x), std::move(weight), std::move(bias));
    if (scalesInput())
        return storedLinear(scaledByVector(std::move(x), true), std::move(weight), std::move(bias));
    Variable result = storedLinear(x, weight, bias);
    return adapted(std::move(x), std::move(result), weight, bias);
}

std::vector<Variable> NetworkBuilder::linearOfEach(std::string_view name, std::vector<Variable> pieces,
                                                   std::int64_t outputs, bool hasBias)
{
    const ModuleScope scope(*this, name, "Linear");
    if (!ok() || pieces.empty())
        return {};
    const Variable weight = linearWeight({outputs, pieces[0].size(-1)});
    const Variable bias = hasBias ? linearBias(outputs, pieces[0].dtype()) : Variable();
    if (hasAdapter())
        refuse("network.loss", "an adapter of a head that makes its logits in pieces is not modelled",
               "leave the head out of adapter_targets");
    for (Variable& piece : pieces)
        piece = storedLinear(std::move(piece), weight, bias);
    return pieces;
}

Variable NetworkBuilder::jointLinear(std::string_view name, Variable x, const std::array<std::int64_t, 3>& widths,
                                     bool hasBias)
{
    const ModuleScope scope(*this, name, "Linear");
    const std::int64_t outputs = widths[0] + widths[1] + widths[2];
    Variable weight = linearWeight({outputs, x.size(-1)});
    Variable bias = hasBias ? linearBias(outputs, x.dtype()) : Variable();
    Variable result = storedLinear(x, std::move(weight), std::move(bias));
    return jointAdapted(std::move(x), std::move(result), widths);
}

Variable NetworkBuilder::layerNorm(std::string_view name, Variable x, bool hasBias)
{
    const ModuleScope scope(*this, name, "LayerNorm");
    Variable weight = parameter("weight", {x.size(-1)});
    Variable bias = hasBias ? parameter("bias", {x.size(-1)}) : Variable();
    return layerNorm(std::move(x), std::move(weight), std::move(bias));
}

// Hugging Face's LlamaRMSNorm: x.float(), square, mean, rsqrt, product, back, times the weight.
Variable NetworkBuilder::rmsNorm(std::string_view name, Variable argument)
{
    const ModuleScope scope(*this, name, "RMSNorm");
    Variable weight = parameter("weight", {argument.size(-1)});
    if (m_options.isAllFused) { // Liger's and Unsloth's kernels take what comes, whatever autocast has for PyTorch's
        const std::optional<DType> autocast = std::exchange(m_options.autocast, {});
        Variable result = fusedRmsNorm(std::move(argument), std::move(weight));
        m_options.autocast = autocast;
        return result;
    }
    const DType dtype = argument.dtype();
    Variable x = cast(argument, DType::Float32);
    Variable variance = mean(unary(OperatorKind::Power, x), -1);
    x = multiply(x, unary(OperatorKind::ReciprocalRoot, shift(variance)));
    Variable result = multiply(std::move(weight), cast(x, dtype));
    return settled(std::move(result), x, variance, argument);
}

Variable NetworkBuilder::embedding(std::string_view name, Variable indices, std::int64_t count, std::int64_t width)
{
    const ModuleScope scope(*this, name, "Embedding");
    return embedding(std::move(indices), parameter("weight", {count, width}));
}

Variable NetworkBuilder::convolution(std::string_view name, Variable x, std::int64_t channels, ConvolutionShape shape)
{
    const ModuleScope scope(*this, name, "Conv2d");
    if (ok() && (shape.groups < 1 || x.size(1) % shape.groups != 0))
        refuse("network.shape", "channels are not a multiple of the groups of a convolution");
    const std::int64_t inputs = x.size(1) / std::max<std::int64_t>(shape.groups, 1);
    Variable weight = parameter("weight", {channels, inputs, shape.kernel, shape.kernel});
    Variable bias = shape.hasBias ? parameter("bias", {channels}) : Variable();
    return convolution(std::move(x), std::move(weight), std::move(bias), shape);
}

Variable NetworkBuilder::convolution1d(std::string_view name, Variable x, std::int64_t channels, ConvolutionShape shape)
{
    const ModuleScope scope(*this, name, "Conv1d");
    const std::int64_t length = ok() ? (x.size(2) + 2 * shape.padding - shape.kernel) / shape.stride + 1 : 1;
    if (ok() && (length < 1 || x.size(1) % shape.groups != 0))
        refuse("network.shape", "the kernel of a convolution does not fit on its input");
    Variable weight = parameter("weight", {channels, x.size(1) / shape.groups, shape.kernel});
    Variable bias = shape.hasBias ? parameter("bias", {channels}) : Variable();
    const Shape result{x.size(0), channels, length};
    return convolution(std::move(x), std::move(weight), std::move(bias), result, shape.groups);
}

Variable NetworkBuilder::batchNorm(std::string_view name, Variable x)
{
    const ModuleScope scope(*this, name, "BatchNorm2d");
    const Shape channels{x.size(1)};
    Variable weight = parameter("weight", channels);
    Variable bias = parameter("bias", channels);
    Variable mean = buffer("running_mean", channels, DType::Float32);
    Variable variance = buffer("running_var", channels, DType::Float32);
    buffer("num_batches_tracked", {}, DType::Int64);
    return batchNorm(std::move(x), std::move(weight), std::move(bias), std::move(mean), std::move(variance));
}

} // namespace memscape
