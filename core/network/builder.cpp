// SPDX-License-Identifier: Apache-2.0
#include "core/network/builder.h"

#include <algorithm>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr Layout emptyLayout{};

bool diesWithItsName(Role role)
{
    return role == Role::Activation || role == Role::WeightCast;
}

} // namespace

// --- Variable -------------------------------------------------------------------------------------

Variable::Variable(NetworkBuilder& builder, TensorId tensor)
    : m_builder(&builder)
    , m_tensor(tensor)
{
    builder.retain(tensor);
}

Variable::Variable(const Variable& other)
    : m_builder(other.m_builder)
    , m_tensor(other.m_tensor)
{
    if (m_builder)
        m_builder->retain(m_tensor);
}

Variable::Variable(Variable&& other) noexcept
    : m_builder(std::exchange(other.m_builder, nullptr))
    , m_tensor(std::exchange(other.m_tensor, noTensor))
{ }

Variable& Variable::operator=(Variable other) noexcept
{
    std::swap(m_builder, other.m_builder);
    std::swap(m_tensor, other.m_tensor);
    other.reset();
    return *this;
}

void Variable::reset()
{
    if (m_builder)
        m_builder->release(m_tensor);
    m_builder = nullptr;
    m_tensor = noTensor;
}

const Layout& Variable::layout() const
{
    return m_builder ? m_builder->m_graph.layoutOf(m_tensor) : emptyLayout;
}

std::int64_t Variable::size(int dimension) const
{
    const int i = shape().at(dimension);
    return i >= 0 && i < shape().rank ? shape()[i] : 1;
}

DType Variable::dtype() const
{
    return m_builder ? m_builder->m_graph.tensors[m_tensor].dtype : DType::Float32;
}

// --- the recorder ---------------------------------------------------------------------------------

NetworkBuilder::NetworkBuilder(const BuildOptions& options)
    : m_options(options)
{
    m_graph.modules.push_back({});
}

void NetworkBuilder::refuse(std::string code, std::string message, std::string hint)
{
    if (!m_error)
        m_error = Error{std::move(code), std::move(message), m_graph.path(m_module), std::move(hint)};
}

void NetworkBuilder::refuseBeyond(std::int64_t positions)
{
    const std::int64_t prefix = m_options.virtualTokens(AdapterKind::Prefix);
    const std::int64_t sequence = m_options.sequence * m_options.contextParallel + prefix;
    if (m_error || sequence <= positions)
        return;
    const std::int64_t most = positions - prefix - m_options.virtualTokens(AdapterKind::Prompt);
    refuse("network.shape",
           fmt::format("a sequence of {} is longer than the {} positions of this model", sequence, positions),
           most > 0 ? fmt::format("take at most {0} tokens: sequence={0}", most) : "take fewer virtual_tokens");
    m_error->remedy = most > 0 ? Remedy{"sequence", fmt::format("{}", most)} : Remedy{"virtual_tokens", "1"};
}

void NetworkBuilder::refuseBelow(std::int64_t count, std::string_view what)
{
    if (m_error || m_options.sequence >= count)
        return;
    refuse("network.shape", fmt::format("a sequence of {} is shorter than the {} {}", m_options.sequence, count, what),
           fmt::format("take at least {0} tokens, and some for words: sequence={0}", count));
    m_error->remedy = Remedy{"sequence", fmt::format("{}", count)};
}

Result<Graph> NetworkBuilder::finish(Variable output, Variable loss)
{
    return finish(std::vector{std::move(output)}, std::move(loss));
}

Result<Graph> NetworkBuilder::finish(const std::vector<Variable>& outputs, Variable loss)
{
    m_graph.output = outputs.empty() ? noTensor : outputs.back().id();
    for (std::size_t i = 0; i + 1 < outputs.size(); ++i)
        m_graph.otherOutputs.push_back(outputs[i].id());
    m_graph.loss = loss.id();
    m_graph.hasAdapters = m_options.adapters.has_value();
    m_graph.dequantizesInHalf = m_options.adapters && m_options.adapters->dequantizesInHalf;
    checkAdapterNames();
    m_casts.clear(); // autocast's region ends
    // The forward function returns: its locals die, what it returned goes on.
    const bool keepsOutputs = !loss || m_options.keepsLogits;
    const auto isKept = [&](TensorId tensor) {
        const auto isIt = [tensor](const Variable& output) { return output.id() == tensor; };
        return tensor == loss.id() || (keepsOutputs && std::any_of(outputs.begin(), outputs.end(), isIt));
    };
    for (TensorId tensor = 0; tensor < m_names.size(); ++tensor) {
        if (m_names[tensor] > 0 && !isKept(tensor)) {
            m_names[tensor] = 1;
            release(tensor);
        }
        m_names[tensor] = UINT32_MAX / 2; // variables that still exist in C++ mean nothing now
    }
    if (m_error)
        return fail(*m_error);
    Graph graph = std::move(m_graph);
    m_graph = Graph{}; // what is still named stays named: those names are the training loop's
    m_graph.tensors.resize(graph.tensors.size());
    m_graph.layouts.resize(1);
    m_layouts.clear();
    m_error = Error{"network.finished", "the network was finished before"};
    return graph;
}

StorageId NetworkBuilder::newStorage(const Shape& shape, DType dtype, OperatorKind source, Role role)
{
    const auto elements = shape.elements();
    std::int64_t bytes = 0;
    if (shape.rank > maxRank || !elements || __builtin_mul_overflow(*elements, elementBytes(dtype), &bytes)
        || bytes > (std::int64_t(1) << 62)) {
        refuse("network.size", fmt::format("a tensor of {} would be larger than 4 EiB", operatorText(source)),
               "make the model, the batch or the sequence smaller");
        bytes = 0;
    }
    m_graph.storages.push_back({bytes, m_module, source, role});
    return StorageId(m_graph.storages.size() - 1);
}

void NetworkBuilder::refuseTensors()
{
    refuse("network.size", "the network has more than 20 million tensors", "look at the number of layers");
}

LayoutId NetworkBuilder::layoutId(const Layout& layout)
{
    const auto [known, isNew] = m_layouts.try_emplace(layout, LayoutId(m_graph.layouts.size()));
    if (isNew)
        m_graph.layouts.push_back(layout);
    return known->second;
}

TensorId NetworkBuilder::newTensor(const Layout& layout, DType dtype, StorageId storage, bool gradient)
{
    if (m_graph.tensors.size() >= tensorLimit)
        refuseTensors();
    m_graph.tensors.push_back({layoutId(layout), storage, dtype, gradient});
    m_names.push_back(0);
    return TensorId(m_graph.tensors.size() - 1);
}

Variable NetworkBuilder::made(std::string_view, const Shape& shape, DType dtype, Role role, bool gradient)
{
    if (!ok())
        return {};
    const StorageId storage = newStorage(shape, dtype, OperatorKind::Fill, role);
    return {*this, newTensor(Layout(shape), dtype, storage, gradient && m_options.gradient)};
}

Variable NetworkBuilder::parameter(std::string_view name, const Shape& shape, bool isTrained)
{
    if (!m_options.adapters)
        return added(name, shape, m_options.weights, isTrained);
    const bool isSaved = isSavedModule();
    Variable original = added(name, shape, m_options.weights, false);
    if (!isSaved || !ok())
        return original;
    const ModuleScope scope(*this, "modules_to_save");
    Variable copy = added(name, shape, m_options.weights, isTrained);
    m_originals[copy.id()] = original.id();
    return copy;
}

Variable NetworkBuilder::added(std::string_view name, const Shape& shape, DType dtype, bool isTrained)
{
    Variable result = made(name, shape, dtype, Role::Parameter, isTrained);
    if (result)
        m_graph.parameters.push_back({std::string(name), result.id(), m_module, isTrained});
    return result;
}

Variable NetworkBuilder::buffer(std::string_view name, const Shape& shape, DType dtype)
{
    Variable result = made(name, shape, dtype, Role::Buffer, false);
    if (result)
        m_graph.buffers.push_back({std::string(name), result.id(), m_module, false});
    return result;
}

Variable NetworkBuilder::input(std::string_view name, const Shape& shape, DType dtype, bool wantsGradient)
{
    return made(name, shape, dtype, Role::Input, wantsGradient);
}

Variable NetworkBuilder::target(std::string_view name, const Shape& shape, DType dtype)
{
    return made(name, shape, dtype, Role::Target, false);
}

void NetworkBuilder::enterModule(std::string_view name, std::string_view type)
{
    if (!ok())
        return;
    m_graph.modules.push_back({std::string(name), std::string(type), m_module});
    m_module = ModuleIndex(m_graph.modules.size() - 1);
}

void NetworkBuilder::leaveModule()
{
    if (ok())
        m_module = m_graph.modules[m_module].parent;
}

std::size_t NetworkBuilder::beginBlock(Block::Kind kind)
{
    Block block;
    block.kind = kind;
    block.first = std::uint32_t(m_graph.operators.size());
    block.firstTensor = TensorId(m_graph.tensors.size());
    m_graph.blocks.push_back(block);
    return m_graph.blocks.size() - 1;
}

void NetworkBuilder::endBlock(std::size_t index, const Variable& output)
{
    if (!ok())
        return;
    Block& block = m_graph.blocks[index];
    block.last = std::uint32_t(m_graph.operators.size());
    block.lastTensor = TensorId(m_graph.tensors.size());
    block.output = output.id();
}

void NetworkBuilder::retain(TensorId tensor)
{
    if (tensor < m_names.size())
        ++m_names[tensor];
}

void NetworkBuilder::release(TensorId tensor)
{
    if (tensor >= m_names.size() || --m_names[tensor] > 0 || !ok())
        return;
    if (!diesWithItsName(m_graph.storageOf(tensor).role))
        return;
    Operator op;
    op.inputs = 1;
    op.module = m_module;
    op.first = std::uint32_t(m_graph.operands.size());
    m_graph.operands.push_back(tensor);
    m_graph.operators.push_back(op);
    if (const Gathered gathered = gatheredIn(tensor); gathered.whole == tensor)
        release(gathered.part);
}

NetworkBuilder::Gathered NetworkBuilder::gatheredIn(TensorId tensor) const
{
    const StorageId storage = m_graph.tensors[tensor].storage;
    return storage < m_gathered.size() ? m_gathered[storage] : Gathered{};
}

// --- recording an operator ------------------------------------------------------------------------

bool NetworkBuilder::wantsGradient(std::span<const TensorId> inputs) const
{
    if (!m_options.gradient)
        return false;
    for (const TensorId tensor : inputs)
        if (m_graph.tensors[tensor].needsGradient)
            return true;
    return false;
}

bool NetworkBuilder::needsGradient(const Variable& x) const
{
    return x && m_graph.tensors[x.id()].needsGradient;
}

Operator& NetworkBuilder::begin(OperatorKind kind, std::span<const TensorId> inputs)
{
    Operator op;
    op.kind = kind;
    op.inputs = std::uint8_t(inputs.size());
    op.hasGradient = wantsGradient(inputs);
    op.module = m_module;
    op.first = std::uint32_t(m_graph.operands.size());
    m_graph.operands.insert(m_graph.operands.end(), inputs.begin(), inputs.end());
    return m_graph.operators.emplace_back(op);
}

TensorId NetworkBuilder::addOutput(const Output& output, bool hasGradient)
{
    Operator& op = m_graph.operators.back();
    const StorageId storage = output.isFresh ? newStorage(output.layout.shape, output.dtype, op.kind, Role::Activation)
                                             : m_graph.tensors[m_graph.operands[op.first]].storage;
    const TensorId tensor = newTensor(output.layout, output.dtype, storage, hasGradient && op.hasGradient);
    ++op.outputs;
    m_graph.operands.push_back(tensor);
    return tensor;
}

void NetworkBuilder::save(TensorId tensor)
{
    Operator& op = m_graph.operators.back();
    if (!op.hasGradient)
        return;
    ++op.saved;
    const TensorId part = gatheredIn(tensor).part;
    m_graph.operands.push_back(part == noTensor ? tensor : part);
}

Variable NetworkBuilder::record(OperatorKind kind, std::initializer_list<TensorId> inputs, const Output& output,
                                std::initializer_list<TensorId> saved, std::int64_t attribute)
{
    begin(kind, {inputs.begin(), inputs.size()}).attribute = attribute;
    const TensorId result = addOutput(output, isFloating(output.dtype));
    for (const TensorId tensor : saved)
        save(tensor == noTensor ? result : tensor);
    return {*this, result};
}

} // namespace memscape
