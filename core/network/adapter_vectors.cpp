// SPDX-License-Identifier: Apache-2.0
// Adapters whose trained part is a vector.
//
// IA3, after peft's ia3.Linear: the result times a vector over its columns; of a feed-forward layer the input times
// one. A trained vector keeps what it is multiplied with, and in fp32 beside half weights makes an fp32 copy of it
// (peft/tuners/ia3/layer.py).
//
// VeRA, after peft's vera.Linear: W x + b · B (d · A x), where A and B are frozen, random, as large as the largest
// layer needs, and shared: each layer takes their first columns and rows (peft/tuners/vera/layer.py, model.py).
//
// Left out: bases in 4 and 8 bits beside them, convolutions.
#include "core/network/builder.h"

#include <utility>

namespace memscape {

Variable NetworkBuilder::scaledByVector(Variable x, bool isInput)
{
    if (!ok())
        return {};
    const AdapterOptions& adapters = *m_options.adapters;
    const DType before = x.dtype(), type = adapters.weights.value_or(m_options.weights);
    const std::int64_t width = x.size(-1);
    const Variable vector = added("ia3_l", isInput ? Shape{1, width} : Shape{width, 1}, type, true);
    const Variable factors = scale(flatten(vector, 0)); // 1 * vector
    if (isInput)
        x = cast(std::move(x), type);
    return cast(multiply(std::move(x), factors), before);
}

/// The first `length` rows (dimension 0) or columns of A or B; the matrix grows to the largest that a layer asks for.
Variable NetworkBuilder::sharedMatrix(std::size_t which, int dimension, std::int64_t length)
{
    if (!ok())
        return {};
    const std::int64_t rank = m_options.adapters->rank;
    const Shape shape = dimension == 0 ? Shape{length, rank} : Shape{rank, length};
    TensorId& shared = m_sharedMatrices[which];
    if (shared == noTensor) {
        const ModuleIndex here = std::exchange(m_module, 0);
        shared =
            buffer(which == 0 ? "vera_A" : "vera_B", shape, m_options.adapters->weights.value_or(m_options.weights))
                .id();
        m_module = here;
    }
    if (!ok())
        return {};
    Tensor& tensor = m_graph.tensors[shared];
    if (m_graph.layouts[tensor.layout].shape[dimension] < length) {
        tensor.layout = layoutId(Layout(shape));
        m_graph.storages[tensor.storage].bytes = length * rank * elementBytes(tensor.dtype);
    }
    return narrow(Variable(*this, shared), dimension, length);
}

Variable NetworkBuilder::veraAdapted(Variable x, Variable result)
{
    if (!ok())
        return {};
    const AdapterOptions& adapters = *m_options.adapters;
    const DType before = result.dtype(), type = adapters.weights.value_or(m_options.weights);
    const std::int64_t inputs = x.size(-1), outputs = result.size(-1);
    const Variable outer = added("vera_lambda_b", {outputs}, type, true);
    const Variable inner = added("vera_lambda_d", {adapters.rank}, type, true);
    x = dropout(cast(std::move(x), type), adapters.dropout);
    Variable low = linear(std::move(x), sharedMatrix(0, 1, inputs));
    low = linear(multiply(inner, std::move(low)), sharedMatrix(1, 0, outputs));
    result = add(std::move(result), multiply(outer, std::move(low)));
    return cast(std::move(result), before);
}

} // namespace memscape
