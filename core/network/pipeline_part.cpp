// SPDX-License-Identifier: Apache-2.0
#include "core/network/pipeline_part.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr std::uint32_t noOperator = UINT32_MAX;

struct Range
{
    std::uint32_t first = 0, last = 0;
    bool contains(std::uint32_t op) const { return op >= first && op < last; }
};

bool existsBefore(const Storage& storage)
{
    return storage.role != Role::Activation && storage.role != Role::WeightCast;
}

/// The first layer of a chunk that is not the first.
std::size_t firstLayer(std::size_t layers, std::size_t chunk, std::size_t count)
{
    if (layers % count == 0)
        return chunk * (layers / count);
    const std::size_t parts = layers + 2; // with the embedding in front and the head behind
    return std::min(layers, chunk * (parts / count) + std::min(chunk, parts % count) - 1);
}

/// What is asked of the whole network again and again.
class WholeNetwork
{
public:
    explicit WholeNetwork(const Graph& graph);

    /// Where each chunk begins and ends. Errors: network.pipeline.
    Result<std::vector<Range>> chunks(std::size_t count) const;
    std::uint32_t makerOf(TensorId tensor) const { return m_maker[tensor]; }
    bool isConstant(TensorId tensor) const { return m_isConstant[tensor] != 0; }
    /// The one tensor that chunk `index` is sent. Errors: network.pipeline.
    Result<TensorId> sentTo(std::size_t index, const std::vector<Range>& chunks) const;
    /// A parameter that first and last chunk use, or noTensor.
    TensorId sharedParameter(const std::vector<Range>& chunks) const;

private:
    const Graph& m_graph;
    std::vector<std::uint32_t> m_maker;     ///< by tensor
    std::vector<std::uint8_t> m_isConstant; ///< by tensor: no parameter reaches it
};

WholeNetwork::WholeNetwork(const Graph& graph)
    : m_graph(graph)
    , m_maker(graph.tensors.size(), noOperator)
    , m_isConstant(graph.tensors.size(), 1)
{
    for (const NamedTensor& parameter : graph.parameters)
        m_isConstant[parameter.tensor] = 0;
    for (std::uint32_t i = 0; i < graph.operators.size(); ++i) {
        const Operator& op = graph.operators[i];
        if (op.kind == OperatorKind::Release)
            continue;
        const auto inputs = graph.inputs(op);
        const bool isConstant = std::all_of(inputs.begin(), inputs.end(), [&](TensorId t) { return m_isConstant[t]; });
        for (const TensorId tensor : graph.outputs(op)) {
            m_maker[tensor] = i;
            m_isConstant[tensor] = isConstant;
        }
    }
}

Result<std::vector<Range>> WholeNetwork::chunks(std::size_t count) const
{
    std::vector<std::uint32_t> layers;
    std::uint32_t behind = 0; // the layers
    for (const Block& block : m_graph.blocks)
        if (block.kind == Block::Kind::Layer) {
            layers.push_back(block.first);
            behind = block.last;
        }
    if (layers.size() < count)
        return fail("network.pipeline",
                    fmt::format("{} stages share the layers of a network that has {}", count, layers.size()),
                    "choose fewer: pipeline_parallel × virtual_stages of at most the layers", "pipeline_parallel");
    layers.push_back(behind);
    std::vector<Range> chunks;
    for (std::size_t i = 0; i < count; ++i)
        chunks.push_back(
            {i == 0 ? 0 : layers[firstLayer(layers.size() - 1, i, count)], std::uint32_t(m_graph.operators.size())});
    for (std::size_t i = 0; i + 1 < count; ++i)
        chunks[i].last = chunks[i + 1].first;
    return chunks;
}

Result<TensorId> WholeNetwork::sentTo(std::size_t index, const std::vector<Range>& chunks) const
{
    TensorId sent = noTensor;
    for (std::uint32_t i = chunks[index].first; i < chunks[index].last; ++i) {
        const Operator& op = m_graph.operators[i];
        if (op.kind == OperatorKind::Release)
            continue;
        for (const TensorId tensor : m_graph.inputs(op)) {
            const std::uint32_t maker = m_maker[tensor];
            if (maker == noOperator || m_isConstant[tensor] || chunks[index].contains(maker) || tensor == sent)
                continue;
            if (sent != noTensor || !chunks[index - 1].contains(maker))
                return fail("network.pipeline", "a layer of this network uses more than what the layer before it made",
                            "choose pipeline_parallel=1", "pipeline_parallel");
            sent = tensor;
        }
    }
    return sent;
}

TensorId WholeNetwork::sharedParameter(const std::vector<Range>& chunks) const
{
    const auto uses = [&](const Range& range, TensorId parameter) {
        for (std::uint32_t i = range.first; i < range.last; ++i) {
            const auto inputs = m_graph.inputs(m_graph.operators[i]);
            if (std::find(inputs.begin(), inputs.end(), parameter) != inputs.end())
                return true;
        }
        return false;
    };
    for (std::uint32_t i = 0; i < chunks.front().last; ++i) {
        const Operator& op = m_graph.operators[i];
        if (op.kind == OperatorKind::Embedding && uses(chunks.back(), m_graph.inputs(op)[0]))
            return m_graph.inputs(op)[0];
    }
    return noTensor;
}

/// Copies chunks of one network, one behind the other, into another.
class Cut
{
public:
    Cut(const Graph& whole, const WholeNetwork& network)
        : m_whole(whole)
        , m_network(network)
        , m_tensor(whole.tensors.size(), noTensor)
        , m_storage(whole.storages.size(), noTensor)
    {
        m_part.layouts = whole.layouts;
        m_part.modules = whole.modules;
        m_part.attention = whole.attention;
        m_part.hasAdapters = whole.hasAdapters;
        m_part.dequantizesInHalf = whole.dequantizesInHalf;
    }
    /// `received` and `sent` are tensors of the whole; noTensor for the first and behind the last.
    void add(Range range, TensorId received, TensorId sent);
    Graph finish(bool isLast, TensorId shared);

private:
    void findConstants(Range range);
    void findTensors(Range range);
    void copy(const Operator& op);
    void copyBlocks(Range range);
    bool isHere(TensorId tensor) const { return m_tensor[tensor] != noTensor; }
    bool isRelease(const Operator& op) const { return op.kind == OperatorKind::Release; }

    const Graph& m_whole;
    const WholeNetwork& m_network;
    Graph m_part;
    std::vector<TensorId> m_tensor; ///< of the whole -> of the part
    std::vector<StorageId> m_storage;
    std::vector<std::uint32_t> m_constants; ///< operators before the chunk that make what it needs
    std::vector<TensorId> m_fresh;          ///< that are new with the chunk, in order
    TensorId m_received = noTensor;
    TensorId m_firstFresh = 0;
    std::vector<std::uint32_t> m_place; ///< of the chunk's operators in the part, and of its end
};

void Cut::findConstants(Range range)
{
    m_constants.clear();
    std::vector<std::uint8_t> isTaken(range.first, 0);
    std::vector<std::uint32_t> open;
    const auto need = [&](const Operator& op) {
        for (const TensorId tensor : m_whole.inputs(op)) {
            const std::uint32_t maker = m_network.makerOf(tensor);
            if (maker < range.first && tensor != m_received && !std::exchange(isTaken[maker], 1))
                open.push_back(maker);
        }
    };
    for (std::uint32_t i = range.first; i < range.last; ++i)
        if (!isRelease(m_whole.operators[i]))
            need(m_whole.operators[i]);
    while (!open.empty()) {
        m_constants.push_back(open.back());
        open.pop_back();
        need(m_whole.operators[m_constants.back()]);
    }
    std::sort(m_constants.begin(), m_constants.end());
}

/// New numbers for what the chunk uses, in the order of the old ones. Parameters, buffers and the batch keep the number
/// that an earlier chunk gave them.
void Cut::findTensors(Range range)
{
    for (std::size_t i = 0; i < m_tensor.size(); ++i) // the chunk before had its own
        if (m_network.makerOf(TensorId(i)) != noOperator)
            m_tensor[i] = noTensor;
    for (std::size_t i = 0; i < m_storage.size(); ++i)
        if (!existsBefore(m_whole.storages[i]))
            m_storage[i] = noTensor;
    m_fresh.clear();
    const auto take = [&](std::uint32_t index) {
        const Operator& op = m_whole.operators[index];
        if (isRelease(op))
            return;
        const TensorId* const operands = m_whole.operands.data() + op.first;
        for (int i = 0; i < op.inputs + op.outputs + op.saved; ++i) {
            if (!isHere(operands[i])) {
                m_tensor[operands[i]] = 0;
                m_fresh.push_back(operands[i]);
            }
        }
    };
    std::for_each(m_constants.begin(), m_constants.end(), take);
    for (std::uint32_t i = range.first; i < range.last; ++i)
        take(i);
    std::sort(m_fresh.begin(), m_fresh.end());
    m_firstFresh = TensorId(m_part.tensors.size());
    for (const TensorId old : m_fresh) {
        m_tensor[old] = TensorId(m_part.tensors.size());
        Tensor tensor = m_whole.tensors[old];
        StorageId& storage = m_storage[tensor.storage];
        if (storage == noTensor) {
            storage = StorageId(m_part.storages.size());
            m_part.storages.push_back(m_whole.storages[tensor.storage]);
        }
        tensor.storage = storage;
        m_part.tensors.push_back(tensor);
    }
}

void Cut::copy(const Operator& op)
{
    Operator copied = op;
    copied.first = std::uint32_t(m_part.operands.size());
    for (int i = 0; i < op.inputs + op.outputs + op.saved; ++i)
        m_part.operands.push_back(m_tensor[m_whole.operands[op.first + std::uint32_t(i)]]);
    m_part.operators.push_back(copied);
}

void Cut::copyBlocks(Range range)
{
    const auto placed = [&](std::uint32_t op) { return m_place[op - range.first]; };
    const auto numbered = [&](TensorId tensor) {
        return m_firstFresh + TensorId(std::lower_bound(m_fresh.begin(), m_fresh.end(), tensor) - m_fresh.begin());
    };
    for (Block block : m_whole.blocks) {
        if (!range.contains(block.first))
            continue;
        block.first = placed(block.first);
        block.last = placed(block.last);
        block.firstTensor = numbered(block.firstTensor);
        block.lastTensor = numbered(block.lastTensor);
        block.output = block.output == noTensor ? noTensor : m_tensor[block.output];
        m_part.blocks.push_back(block);
    }
    for (const CopiedOperators& copies : m_whole.copies) {
        // The first iteration lacks the release of what was sent.
        const std::uint64_t from = std::max<std::uint64_t>(copies.first, range.first + 2ull * copies.period);
        const std::uint32_t to = std::min(copies.last, range.last);
        if (from < to)
            m_part.copies.push_back({placed(std::uint32_t(from)), placed(to), copies.period});
    }
}

void Cut::add(Range range, TensorId received, TensorId sent)
{
    m_received = received;
    PipelineChunk chunk;
    chunk.first = std::uint32_t(m_part.operators.size());
    findConstants(range);
    findTensors(range);
    if (received != noTensor) {
        chunk.received = m_tensor[received];
        const Tensor& tensor = m_part.tensors[chunk.received];
        Storage& storage = m_part.storages[tensor.storage];
        storage.bytes = m_part.layouts[tensor.layout].elements() * elementBytes(tensor.dtype);
        storage.source = OperatorKind::Receive;
        Operator receive;
        receive.kind = OperatorKind::Receive;
        receive.outputs = 1;
        receive.first = std::uint32_t(m_part.operands.size());
        m_part.operands.push_back(chunk.received);
        m_part.operators.push_back(receive);
    }
    auto constant = m_constants.begin();
    const std::uint32_t end = std::uint32_t(m_whole.operators.size());
    for (std::uint32_t i = m_constants.empty() ? range.first : m_constants.front(); i < end; ++i) {
        const Operator& op = m_whole.operators[i];
        if (i == range.first)
            m_place.clear();
        if (i >= range.first && i <= range.last)
            m_place.push_back(std::uint32_t(m_part.operators.size()));
        if (isRelease(op)) { // a name of the chunk's own ends, wherever that is in the whole
            const TensorId tensor = m_whole.operands[op.first];
            if (isHere(tensor) && tensor != received && m_network.makerOf(tensor) != noOperator)
                copy(op);
        } else if (range.contains(i)) {
            copy(op);
        } else if (constant != m_constants.end() && *constant == i) {
            copy(op);
            ++constant;
        }
    }
    if (range.last == end)
        m_place.push_back(std::uint32_t(m_part.operators.size()));
    copyBlocks(range);
    chunk.sent = sent == noTensor ? noTensor : m_tensor[sent];
    chunk.last = std::uint32_t(m_part.operators.size());
    m_part.chunks.push_back(chunk);
}

Graph Cut::finish(bool isLast, TensorId shared)
{
    m_part.sharedParameter = shared == noTensor ? noTensor : m_tensor[shared];
    for (const auto& [from, to] :
         {std::pair(&m_whole.parameters, &m_part.parameters), std::pair(&m_whole.buffers, &m_part.buffers)}) {
        for (NamedTensor named : *from) {
            if (!isHere(named.tensor))
                continue;
            named.tensor = m_tensor[named.tensor];
            to->push_back(std::move(named));
        }
    }
    if (!isLast)
        return std::move(m_part);
    const auto here = [&](TensorId tensor) { return tensor == noTensor ? noTensor : m_tensor[tensor]; };
    m_part.loss = here(m_whole.loss);
    m_part.output = here(m_whole.output);
    for (const TensorId output : m_whole.otherOutputs)
        m_part.otherOutputs.push_back(here(output));
    m_part.returnsLoss = m_whole.returnsLoss;
    return std::move(m_part);
}

} // namespace

Result<Graph> pipelinePart(const Graph& whole, const PipelinePart& part)
{
    const WholeNetwork network(whole);
    const auto count = std::size_t(part.ranks) * std::size_t(part.chunks);
    MEMSCAPE_TRY(chunks, network.chunks(count));
    std::vector<TensorId> sent(count + 1, noTensor); // by the chunk that gets it
    for (std::size_t i = 1; i < count; ++i) {
        MEMSCAPE_TRY(tensor, network.sentTo(i, chunks));
        sent[i] = tensor;
    }
    Cut cut(whole, network);
    for (std::size_t i = std::size_t(part.rank); i < count; i += std::size_t(part.ranks))
        cut.add(chunks[i], sent[i], sent[i + 1]);
    const bool isLast = part.rank + 1 == part.ranks;
    return cut.finish(isLast, part.rank == 0 || isLast ? network.sharedParameter(chunks) : noTensor);
}

} // namespace memscape
