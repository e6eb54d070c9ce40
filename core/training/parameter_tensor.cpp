// SPDX-License-Identifier: Apache-2.0
#include "core/training/parameter_tensor.h"

namespace memscape {

namespace {

constexpr std::size_t noParameter = SIZE_MAX;

/// Which parameter lies in each storage: itself, seen in any way, or a copy that autocast made.
std::vector<std::size_t> parameterOfStorage(const Graph& graph)
{
    std::vector<std::size_t> parameter(graph.storages.size(), noParameter);
    const auto of = [&](TensorId tensor) -> std::size_t& { return parameter[graph.tensors[tensor].storage]; };
    for (std::size_t i = 0; i < graph.parameters.size(); ++i)
        of(graph.parameters[i].tensor) = i;
    for (const Operator& op : graph.operators)
        if (op.kind == OperatorKind::Cast || op.kind == OperatorKind::Dequantize)
            of(graph.outputs(op)[0]) = of(graph.inputs(op)[0]);
    return parameter;
}

bool isTableLookup(OperatorKind kind)
{
    return kind == OperatorKind::Embedding || kind == OperatorKind::Index;
}

/// Marks what is looked up, and the last matrix of a product when it has a row per word.
void markEmbeddings(const Graph& graph, std::vector<ParameterTensor>& parameters)
{
    const auto lying = parameterOfStorage(graph);
    const auto parameterOf = [&](TensorId tensor) { return lying[graph.tensors[tensor].storage]; };
    std::int64_t words = 0;
    std::size_t head = noParameter;
    for (const Operator& op : graph.operators) {
        const auto inputs = graph.inputs(op);
        if (isTableLookup(op.kind) && parameterOf(inputs[0]) != noParameter) {
            ParameterTensor& table = parameters[parameterOf(inputs[0])];
            if (table.isExpert) // one of the matrices that lie in one parameter
                continue;
            table.isEmbedding = true;
            words = std::max(words, table.shape[0]);
        } else if (isMatrixProduct(op.kind)) {
            head = parameterOf(inputs[1]);
        }
    }
    const bool hasTable = graph.chunks.empty() || words > 0; // else it is another rank's
    if (head != noParameter && (hasTable ? words > 0 && parameters[head].shape[0] == words : graph.loss != noTensor))
        parameters[head].isEmbedding = true;
}

} // namespace

std::vector<ParameterTensor> parameterTensors(const Graph& graph, Trace& trace)
{
    std::vector<ParameterTensor> parameters;
    parameters.reserve(graph.parameters.size());
    const std::vector<std::string> paths = graph.paths();
    for (const NamedTensor& named : graph.parameters) {
        const Layout& layout = graph.layoutOf(named.tensor);
        const std::string& path = paths[named.module];
        ParameterTensor parameter;
        parameter.name = path.empty() ? named.name : path + '.' + named.name;
        for (int i = 0; i < layout.rank(); ++i)
            parameter.shape.push_back(layout[i]);
        parameter.elements = layout.elements();
        parameter.isTrained = graph.tensors[named.tensor].needsGradient;
        parameter.module = trace.module(path);
        parameter.isExpert = parameter.name.find(".experts.") != std::string::npos;
        if (graph.hasAdapters)
            parameter.storedBytes = graph.storageOf(named.tensor).bytes;
        parameters.push_back(std::move(parameter));
    }
    markEmbeddings(graph, parameters);
    return parameters;
}

std::int64_t elementCount(const std::vector<ParameterTensor>& parameters)
{
    std::int64_t sum = 0;
    for (const ParameterTensor& parameter : parameters)
        sum += parameter.elements;
    return sum;
}

std::int64_t trainedCount(const std::vector<ParameterTensor>& parameters)
{
    std::int64_t sum = 0;
    for (const ParameterTensor& parameter : parameters)
        sum += parameter.isTrained ? parameter.elements : 0;
    return sum;
}

} // namespace memscape
