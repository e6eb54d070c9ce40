// SPDX-License-Identifier: Apache-2.0
#include "core/network/families/cnn_network.h"

#include "core/network/cnn.h"
#include "core/network/families/language_head.h"

namespace memscape {

namespace {

/// Runs one layer after the other on a current picture, and remembers where a block began.
class CnnRunner
{
public:
    CnnRunner(NetworkBuilder& b, const ModelDescription& model, Variable picture)
        : m_b(b)
        , m_model(model)
        , m_x(std::move(picture))
    { }

    const Variable& picture() const { return m_x; }
    void setPicture(Variable x) { m_x = std::move(x); }
    Variable take() { return std::move(m_x); }

    void run(const CnnLayer& layer)
    {
        switch (layer.kind) {
        case CnnLayerKind::Convolution:
            m_x = m_b.convolution(layer.name, std::move(m_x), layer.outputs,
                                  {layer.kernel, layer.stride, layer.padding, layer.groups, layer.hasBias});
            break;
        case CnnLayerKind::BatchNorm: m_x = m_b.batchNorm(layer.name, std::move(m_x)); break;
        case CnnLayerKind::Relu: m_x = m_b.unary(OperatorKind::Relu, std::move(m_x), true); break;
        case CnnLayerKind::Relu6: m_x = m_b.unary(OperatorKind::HardTanh, std::move(m_x), true); break;
        case CnnLayerKind::Silu: m_x = m_b.unary(OperatorKind::Silu, std::move(m_x), true); break;
        case CnnLayerKind::Sigmoid: m_x = m_b.sigmoid(std::move(m_x)); break;
        case CnnLayerKind::MaxPool: m_x = m_b.maxPool(std::move(m_x), layer.kernel, layer.stride, layer.padding); break;
        case CnnLayerKind::AveragePool: m_x = m_b.averagePool(std::move(m_x), layer.kernel); break;
        case CnnLayerKind::AdaptiveAveragePool: m_x = m_b.adaptiveAveragePool(std::move(m_x), layer.size); break;
        case CnnLayerKind::Flatten: m_x = m_b.flatten(std::move(m_x), 1); break;
        case CnnLayerKind::Dropout: m_x = m_b.dropout(std::move(m_x), m_b.options().dropout); break;
        case CnnLayerKind::Linear: m_x = m_b.linear(layer.name, std::move(m_x), layer.outputs, layer.hasBias); break;
        case CnnLayerKind::BlockBegin: m_identity = m_x; break;
        case CnnLayerKind::ShortcutBegin:
            std::swap(m_x, m_identity);
            m_swapped = true;
            break;
        case CnnLayerKind::BlockEnd: endBlock(); break;
        case CnnLayerKind::GateBegin: m_gated = m_x; break;
        case CnnLayerKind::GateEnd: m_x = m_b.multiply(std::move(m_x), std::move(m_gated)); break;
        case CnnLayerKind::DenseBegin: m_features = {std::move(m_x)}; break;
        case CnnLayerKind::Concatenate: m_x = m_b.cat(m_features, 1); break;
        case CnnLayerKind::Collect: m_features.push_back(std::move(m_x)); break;
        case CnnLayerKind::DenseEnd: m_features.clear(); break;
        }
    }

private:
    void endBlock()
    {
        if (m_swapped) // the shortcut was run last: m_x is the identity
            std::swap(m_x, m_identity);
        m_swapped = false;
        const bool isMobileNet = m_model.cnn.kind == CnnKind::MobileNetV2;
        m_x = isMobileNet ? m_b.add(std::move(m_identity), std::move(m_x))
                          : m_b.addInPlace(std::move(m_x), std::move(m_identity));
        m_identity.reset();
    }

    NetworkBuilder& m_b;
    const ModelDescription& m_model;
    Variable m_x, m_identity, m_gated;
    std::vector<Variable> m_features; ///< of a dense block
    bool m_swapped = false;
};

/// Layers [begin, end) that checkpointing may run again: a residual block with its last activation; in a dense layer
/// what DenseNet's memory_efficient runs again, up to the first convolution.
std::size_t blockEnd(const std::vector<CnnLayer>& layers, std::size_t begin)
{
    const CnnLayerKind last =
        layers[begin].kind == CnnLayerKind::BlockBegin ? CnnLayerKind::BlockEnd : CnnLayerKind::Convolution;
    std::size_t end = begin;
    while (end < layers.size() && layers[end].kind != last)
        ++end;
    end = std::min(end + 1, layers.size());
    if (last == CnnLayerKind::Convolution)
        return end;
    if (end < layers.size() && layers[end].kind == CnnLayerKind::Relu)
        ++end;
    return end;
}

bool beginsBlock(const std::vector<CnnLayer>& layers, std::size_t i)
{
    const bool endsDense = i + 1 < layers.size() && layers[i + 1].kind == CnnLayerKind::DenseEnd;
    return layers[i].kind == CnnLayerKind::BlockBegin || (layers[i].kind == CnnLayerKind::Concatenate && !endsDense);
}

} // namespace

Result<Graph> cnnNetwork(const ModelDescription& model, const BuildOptions& options)
{
    MEMSCAPE_TRY(layers, cnnLayers(model));
    NetworkBuilder b(options);
    const PictureInput& picture = model.picture;
    CnnRunner runner(
        b, model, b.input("pictures", {options.batch, picture.channels, picture.size, picture.size}, options.weights));
    for (std::size_t i = 0; i < layers.size() && b.ok();) {
        if (!beginsBlock(layers, i)) {
            runner.run(layers[i++]);
            continue;
        }
        const std::size_t end = blockEnd(layers, i);
        const Variable argument = runner.picture(); // named until the block has returned
        runner.setPicture(b.layer([&] {
            for (std::size_t k = i; k < end && b.ok(); ++k)
                runner.run(layers[k]);
            return runner.take();
        }));
        i = end;
    }
    return finishClassifier(b, runner.take());
}

} // namespace memscape
