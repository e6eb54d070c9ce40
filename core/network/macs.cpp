// SPDX-License-Identifier: Apache-2.0
#include "core/network/macs.h"

#include "core/network/cnn.h"
#include "core/network/inventory.h"
#include "core/network/network.h"

#include <algorithm>

namespace memscape {

namespace {

/// A sum of products that notices when it leaves 2^62.
class Sum
{
public:
    void add(std::initializer_list<std::int64_t> factors)
    {
        std::int64_t product = 1;
        for (const std::int64_t factor : factors)
            m_overflow = m_overflow || __builtin_mul_overflow(product, factor, &product);
        m_overflow = m_overflow || __builtin_add_overflow(m_total, product, &m_total);
    }
    Result<std::int64_t> result() const
    {
        if (m_overflow || m_total > (std::int64_t(1) << 62))
            return fail("model.size", "more multiply-adds than can be counted", "take smaller sizes");
        return m_total;
    }

private:
    std::int64_t m_total = 0;
    bool m_overflow = false;
};

/// Tokens that pass through a matrix: all of them, or one per picture or sequence for a classifier.
std::int64_t tokensThrough(const ModelDescription& model, const ModelTensor& tensor, std::int64_t tokens)
{
    const bool once = tensor.name.starts_with("classifier") || tensor.name.find("pooler") != std::string::npos;
    return once && model.head != HeadKind::LanguageModel ? 1 : tokens;
}

void addAttention(const ModelDescription& model, std::int64_t batch, std::int64_t tokens, Sum& sum)
{
    std::int64_t products = model.layers; // self-attention, and across in an encoder-decoder
    if (model.family == Family::EncoderDecoder)
        products += 2 * model.decoderLayers;
    sum.add({products, batch, model.heads, tokens, tokens, model.queryHeadDim() + model.valueHeadDim()});
}

/// Products and convolutions of the recorded network.
Result<std::int64_t> recordedMacs(const ModelDescription& model, std::int64_t batch, std::int64_t sequence)
{
    BuildOptions options;
    options.batch = batch;
    options.sequence = sequence;
    options.gradient = options.loss = false;
    MEMSCAPE_TRY(graph, buildNetwork(model, options));
    Sum sum;
    for (const Operator& op : graph.operators) {
        const bool isConvolution = op.kind == OperatorKind::Convolution;
        if (!isConvolution && !isMatrixProduct(op.kind))
            continue;
        const auto inputs = graph.inputs(op);
        const Layout& weight = graph.layoutOf(inputs[1]);
        const std::int64_t results = graph.layoutOf(graph.outputs(op)[0]).elements();
        const std::int64_t summed = isConvolution ? weight.elements() / std::max<std::int64_t>(weight[0], 1)
                                                  : graph.layoutOf(inputs[0]).shape.last();
        sum.add({results, summed});
    }
    return sum.result();
}

} // namespace

Result<std::int64_t> forwardMacs(const ModelDescription& model, std::int64_t batch, std::int64_t sequence)
{
    if (batch < 1 || sequence < 1)
        return fail("model.range", "batch and sequence must be at least 1");
    if (model.family == Family::Traced)
        return fail("model.macs", "the multiply-adds of a traced network are those of its operators, not of its sizes",
                    "ask for its step's timeline");
    Sum sum;
    if (model.family == Family::Cnn) {
        MEMSCAPE_TRY(layers, cnnLayers(model));
        for (const CnnLayer& layer : layers)
            sum.add({batch, layer.macs()});
        return sum.result();
    }
    if (isListedAsRecorded(model))
        return recordedMacs(model, batch, sequence);
    MEMSCAPE_TRY(parameters, inventory(model));
    std::int64_t tokens = model.family == Family::Mlp ? 1 : sequence;
    const std::int64_t side = model.picture.size / model.picture.patch;
    if (model.family == Family::VisionTransformer)
        tokens = side * side + 1;
    for (const ModelTensor& tensor : parameters.tensors) {
        if (tensor.role == TensorRole::Matrix)
            sum.add({batch, tokensThrough(model, tensor, tokens), tensor.elements(), tensor.activeCopies});
        else if (tensor.role == TensorRole::Convolution)
            sum.add({batch, side * side, tensor.elements()});
    }
    const bool tiedHead =
        model.tied && (model.head == HeadKind::LanguageModel || model.head == HeadKind::MaskedLanguageModel);
    if (tiedHead)
        sum.add({batch, tokens, model.vocab, model.embeddingWidth > 0 ? model.embeddingWidth : model.hidden});
    if (model.family != Family::Mlp)
        addAttention(model, batch, tokens, sum);
    return sum.result();
}

} // namespace memscape
