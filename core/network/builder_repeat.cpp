// SPDX-License-Identifier: Apache-2.0
// A network of a hundred layers with a hundred experts each is a few programs, each many times. Three
// iterations of a loop are recorded; where everything that the third recorded is what the second did, later by one
// iteration, the others are copied from it: every index that belongs to this iteration or the one before moves on
// by what an iteration holds, everything older stays.
//
// Left out: loops whose iterations differ from the fourth on. Callers of repeat() ensure that they do not.
#include "core/network/builder.h"

#include <algorithm>

#include <fmt/format.h>

namespace memscape {

namespace {

/// What moves and by how much: indices at and behind `from`.
struct Shift
{
    std::uint32_t from = 0, by = 0;
    std::uint32_t operator()(std::uint32_t id) const { return id == noTensor || id < from ? id : id + by; }
};

/// `same(i, i + period)` for all i of [first, first + period).
template <typename Same> bool allSame(std::uint32_t first, std::uint32_t last, std::uint32_t period, Same same)
{
    for (std::uint32_t i = first; i < last; ++i)
        if (!same(i, i + period))
            return false;
    return true;
}

} // namespace

NetworkBuilder::Mark NetworkBuilder::mark() const
{
    const auto size = [](const auto& list) { return std::uint32_t(list.size()); };
    return {size(m_graph.operators), size(m_graph.operands), size(m_graph.tensors),
            size(m_graph.storages),  size(m_graph.modules),  size(m_graph.parameters),
            size(m_graph.buffers),   size(m_graph.blocks),   size(m_casts)};
}

bool NetworkBuilder::isCopy(const Marks& marks) const
{
    const auto& [before, first, second, end] = marks;
    for (const auto part : {&Mark::operators, &Mark::operands, &Mark::tensors, &Mark::storages, &Mark::modules,
                            &Mark::parameters, &Mark::buffers, &Mark::blocks, &Mark::casts})
        if (second.*part - first.*part != end.*part - second.*part)
            return false;
    const Shift tensor{before.tensors, end.tensors - second.tensors},
        storage{before.storages, end.storages - second.storages}, module{before.modules, end.modules - second.modules};
    const Graph& g = m_graph;
    const auto isSameName = [&](const NamedTensor& a, const NamedTensor& b) {
        return a.name == b.name && tensor(a.tensor) == b.tensor && module(a.module) == b.module
            && a.isTrained == b.isTrained;
    };
    return allSame(first.operators, second.operators, end.operators - second.operators,
                   [&](auto i, auto j) {
                       const Operator &a = g.operators[i], &b = g.operators[j];
                       return a.kind == b.kind && a.inputs == b.inputs && a.outputs == b.outputs && a.saved == b.saved
                           && a.hasGradient == b.hasGradient && a.inPlace == b.inPlace && a.attribute == b.attribute
                           && module(a.module) == b.module;
                   })
        && allSame(first.operands, second.operands, end.operands - second.operands,
                   [&](auto i, auto j) { return tensor(g.operands[i]) == g.operands[j]; })
        && allSame(first.tensors, second.tensors, tensor.by,
                   [&](auto i, auto j) {
                       const Tensor &a = g.tensors[i], &b = g.tensors[j];
                       return a.layout == b.layout && a.dtype == b.dtype && a.needsGradient == b.needsGradient
                           && storage(a.storage) == b.storage;
                   })
        && allSame(first.storages, second.storages, storage.by,
                   [&](auto i, auto j) {
                       const Storage &a = g.storages[i], &b = g.storages[j];
                       return a.bytes == b.bytes && a.source == b.source && a.role == b.role
                           && module(a.module) == b.module;
                   })
        && allSame(first.modules, second.modules, module.by,
                   [&](auto i, auto j) {
                       const ModuleCall &a = g.modules[i], &b = g.modules[j];
                       return a.type == b.type && module(a.parent) == b.parent
                           && (a.name == b.name || a.parent == m_module);
                   })
        && allSame(first.parameters, second.parameters, end.parameters - second.parameters,
                   [&](auto i, auto j) { return isSameName(g.parameters[i], g.parameters[j]); })
        && allSame(first.buffers, second.buffers, end.buffers - second.buffers,
                   [&](auto i, auto j) { return isSameName(g.buffers[i], g.buffers[j]); })
        && allSame(first.blocks, second.blocks, end.blocks - second.blocks,
                   [&](auto i, auto j) {
                       return g.blocks[i].kind == g.blocks[j].kind && tensor(g.blocks[i].output) == g.blocks[j].output;
                   })
        && allSame(first.casts, second.casts, end.casts - second.casts,
                   [&](auto i, auto j) { return tensor(m_casts[i].id()) == m_casts[j].id(); });
}

void NetworkBuilder::copyIterations(const Marks& marks, std::string_view prefix, std::int64_t first, std::int64_t count,
                                    Variable& x)
{
    const Mark &before = marks[1], &from = marks[2], &to = marks[3];
    const std::uint32_t tensors = to.tensors - from.tensors;
    if (count < 1)
        return;
    if (!ok() || count > std::int64_t((tensorLimit - m_graph.tensors.size()) / std::max(tensors, 1u)))
        return refuseTensors();
    const std::vector<std::uint32_t> last(m_names.begin() + from.tensors, m_names.begin() + to.tensors),
        inner(m_names.begin() + before.tensors, m_names.begin() + from.tensors);
    const std::uint32_t operators = to.operators - from.operators;
    m_graph.copies.push_back({to.operators, std::uint32_t(to.operators + operators * std::uint64_t(count)), operators});
    for (std::int64_t i = 0; i < count; ++i)
        copyIteration(marks, fmt::format("{}.{}", prefix, first + i), std::uint32_t(i + 1));
    // Only what the last iteration leaves is still named as the third left it.
    std::copy(inner.begin(), inner.end(), m_names.begin() + from.tensors);
    for (std::int64_t i = 0; i < count; ++i)
        m_names.insert(m_names.end(), i + 1 < count ? inner.begin() : last.begin(),
                       i + 1 < count ? inner.end() : last.end());
    const std::uint32_t shift = tensors * std::uint32_t(count);
    if (x && x.m_tensor >= from.tensors)
        x.m_tensor += shift;
}

/// The `number`-th copy of the third iteration.
void NetworkBuilder::copyIteration(const Marks& marks, std::string name, std::uint32_t number)
{
    const Mark &before = marks[1], &from = marks[2], &to = marks[3];
    const auto shiftOf = [&](std::uint32_t Mark::*part) {
        return Shift{before.*part, (to.*part - from.*part) * number};
    };
    const Shift tensor = shiftOf(&Mark::tensors), storage = shiftOf(&Mark::storages), module = shiftOf(&Mark::modules);
    const Shift op{0, (to.operators - from.operators) * number}, operand{0, (to.operands - from.operands) * number};
    Graph& g = m_graph;
    for (std::uint32_t i = from.operators; i < to.operators; ++i) {
        Operator copy = g.operators[i];
        copy.module = module(copy.module);
        copy.first = operand(copy.first);
        g.operators.push_back(copy);
    }
    for (std::uint32_t i = from.operands; i < to.operands; ++i)
        g.operands.push_back(tensor(g.operands[i]));
    for (std::uint32_t i = from.tensors; i < to.tensors; ++i) {
        Tensor copy = g.tensors[i];
        copy.storage = storage(copy.storage);
        g.tensors.push_back(copy);
    }
    for (std::uint32_t i = from.storages; i < to.storages; ++i) {
        Storage copy = g.storages[i];
        copy.module = module(copy.module);
        g.storages.push_back(copy);
    }
    for (std::uint32_t i = from.modules; i < to.modules; ++i) {
        ModuleCall copy = g.modules[i];
        if (copy.parent == m_module)
            copy.name = name;
        copy.parent = module(copy.parent);
        g.modules.push_back(std::move(copy));
    }
    const auto copyNamed = [&](std::vector<NamedTensor>& list, std::uint32_t begin, std::uint32_t end) {
        for (std::uint32_t i = begin; i < end; ++i) {
            NamedTensor copy = list[i];
            copy.tensor = tensor(copy.tensor);
            copy.module = module(copy.module);
            list.push_back(std::move(copy));
        }
    };
    copyNamed(g.parameters, from.parameters, to.parameters);
    copyNamed(g.buffers, from.buffers, to.buffers);
    for (std::uint32_t i = from.blocks; i < to.blocks; ++i) {
        Block copy = g.blocks[i];
        copy.first = op(copy.first);
        copy.last = op(copy.last);
        copy.firstTensor = tensor(copy.firstTensor);
        copy.lastTensor = tensor(copy.lastTensor);
        copy.output = tensor(copy.output);
        g.blocks.push_back(copy);
    }
    copyBesides(marks, tensor, storage);
}

/// Autocast's casts, whose names last until finish(), and what was gathered.
template <typename Map> void NetworkBuilder::copyBesides(const Marks& marks, Map tensor, Map storage)
{
    const Mark &from = marks[2], &to = marks[3];
    for (std::uint32_t i = from.casts; i < to.casts; ++i) {
        Variable copy; // its name is counted with those of the iteration
        copy.m_builder = this;
        copy.m_tensor = tensor(m_casts[i].id());
        m_casts.push_back(std::move(copy));
    }
    for (std::uint32_t i = from.tensors; i < to.tensors && i < m_castOf.size(); ++i) {
        if (m_castOf[i] == noTensor)
            continue;
        m_castOf.resize(std::max<std::size_t>(m_castOf.size(), tensor(i) + 1), noTensor);
        m_castOf[tensor(i)] = tensor(m_castOf[i]);
    }
    for (std::uint32_t i = from.storages; i < to.storages && i < m_gathered.size(); ++i) {
        if (m_gathered[i].whole == noTensor)
            continue;
        m_gathered.resize(std::max<std::size_t>(m_gathered.size(), storage(i) + 1));
        m_gathered[storage(i)] = {tensor(m_gathered[i].whole), tensor(m_gathered[i].part)};
    }
}

} // namespace memscape
