// SPDX-License-Identifier: Apache-2.0
#include "core/network/cnn.h"

#include "core/network/inventory_writer.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace memscape {

namespace {

/// Appends layers and follows the channels and the side of the picture.
class CnnWriter
{
public:
    CnnWriter(std::int64_t channels, std::int64_t size)
        : m_channels(channels)
        , m_size(size)
    { }

    std::int64_t channels() const { return m_channels; }
    std::int64_t size() const { return m_size; }

    void convolution(std::string name, std::int64_t outputs, std::int64_t kernel, std::int64_t stride,
                     std::int64_t padding, bool hasBias, std::int64_t groups = 1)
    {
        CnnLayer layer{CnnLayerKind::Convolution,
                       std::move(name),
                       m_channels,
                       outputs,
                       kernel,
                       stride,
                       padding,
                       groups,
                       hasBias,
                       0};
        m_channels = outputs;
        shrink(layer);
    }
    void maxPool(std::int64_t kernel, std::int64_t stride, std::int64_t padding = 0)
    {
        CnnLayer layer{CnnLayerKind::MaxPool, "", m_channels, m_channels, kernel, stride, padding, 1, false, 0};
        shrink(layer);
    }
    void averagePoolOf(std::int64_t kernel)
    {
        CnnLayer layer{CnnLayerKind::AveragePool, "", m_channels, m_channels, kernel, kernel, 0, 1, false, 0};
        shrink(layer);
    }
    void plain(CnnLayerKind kind, std::string name = {})
    {
        m_layers.push_back({kind, std::move(name), m_channels, m_channels, 1, 1, 0, 1, false, m_size});
    }
    void batchNorm(std::string name) { plain(CnnLayerKind::BatchNorm, std::move(name)); }
    void averagePool(std::int64_t side)
    {
        m_size = side;
        plain(CnnLayerKind::AdaptiveAveragePool);
    }
    void flatten()
    {
        m_channels *= m_size * m_size;
        m_size = 1;
        plain(CnnLayerKind::Flatten);
    }
    void linear(std::string name, std::int64_t outputs)
    {
        m_layers.push_back({CnnLayerKind::Linear, std::move(name), m_channels, outputs, 1, 1, 0, 1, true, 1});
        m_channels = outputs;
    }
    void blockBegin(std::string name)
    {
        plain(CnnLayerKind::BlockBegin, std::move(name));
        m_blockChannels = m_channels;
        m_blockSize = m_size;
    }
    void shortcutBegin()
    {
        std::swap(m_channels, m_blockChannels);
        std::swap(m_size, m_blockSize);
        plain(CnnLayerKind::ShortcutBegin);
    }

    /// Squeeze-and-excite: the mean of each channel through two 1×1 convolutions, a factor for the channel.
    void squeezeExcite(const std::string& name, std::int64_t squeezed)
    {
        const std::int64_t channels = m_channels, size = m_size;
        plain(CnnLayerKind::GateBegin, name);
        averagePool(1);
        convolution(name + ".fc1", squeezed, 1, 1, 0, true);
        plain(CnnLayerKind::Silu);
        convolution(name + ".fc2", channels, 1, 1, 0, true);
        plain(CnnLayerKind::Sigmoid);
        m_size = size;
        plain(CnnLayerKind::GateEnd, name);
    }
    void concatenate(std::string name, std::int64_t channels)
    {
        m_channels = channels;
        plain(CnnLayerKind::Concatenate, std::move(name));
    }

    Result<std::vector<CnnLayer>> finish()
    {
        if (m_vanished)
            return fail("model.contradiction", "the picture is too small for this network", "take a larger picture",
                        "image size");
        return std::move(m_layers);
    }

private:
    void shrink(CnnLayer& layer)
    {
        const std::int64_t room = m_size + 2 * layer.padding - layer.kernel;
        m_vanished = m_vanished || room < 0;
        m_size = std::max<std::int64_t>(room, 0) / layer.stride + 1;
        layer.size = m_size;
        m_layers.push_back(std::move(layer));
    }

    std::vector<CnnLayer> m_layers;
    std::int64_t m_channels, m_size;
    std::int64_t m_blockChannels = 0, m_blockSize = 0;
    bool m_vanished = false;
};

void writeClassifier(const ModelDescription& model, CnnWriter& out, std::initializer_list<const char*> names,
                     bool dropoutFirst)
{
    std::size_t left = names.size();
    for (const char* name : names) {
        if (dropoutFirst && left > 1)
            out.plain(CnnLayerKind::Dropout);
        out.linear(name, --left == 0 ? model.picture.classes : 4096);
        if (left == 0)
            return;
        out.plain(CnnLayerKind::Relu);
        if (!dropoutFirst)
            out.plain(CnnLayerKind::Dropout);
    }
}

void writeAlexNet(const ModelDescription& model, CnnWriter& out)
{
    const auto convolution = [&](const char* name, std::int64_t outputs, std::int64_t kernel, std::int64_t stride,
                                 std::int64_t padding) {
        out.convolution(name, outputs, kernel, stride, padding, true);
        out.plain(CnnLayerKind::Relu);
    };
    convolution("features.0", 64, 11, 4, 2);
    out.maxPool(3, 2);
    convolution("features.3", 192, 5, 1, 2);
    out.maxPool(3, 2);
    convolution("features.6", 384, 3, 1, 1);
    convolution("features.8", 256, 3, 1, 1);
    convolution("features.10", 256, 3, 1, 1);
    out.maxPool(3, 2);
    out.averagePool(6);
    out.flatten();
    writeClassifier(model, out, {"classifier.1", "classifier.4", "classifier.6"}, true);
}

void writeVgg(const ModelDescription& model, CnnWriter& out)
{
    const CnnDescription& cnn = model.cnn;
    int index = 0;
    for (std::size_t stage = 0; stage < cnn.depths.size(); ++stage) {
        for (std::int64_t i = 0; i < cnn.depths[stage]; ++i) {
            out.convolution(fmt::format("features.{}", index++), cnn.widths[stage], 3, 1, 1, true);
            if (cnn.batchNorm)
                out.batchNorm(fmt::format("features.{}", index++));
            out.plain(CnnLayerKind::Relu);
            ++index;
        }
        out.maxPool(2, 2);
        ++index;
    }
    out.averagePool(7);
    out.flatten();
    writeClassifier(model, out, {"classifier.0", "classifier.3", "classifier.6"}, false);
}

void writeResidualBlock(const CnnDescription& cnn, const std::string& name, std::int64_t width, std::int64_t stride,
                        CnnWriter& out)
{
    const bool resized = stride != 1 || out.channels() != width;
    out.blockBegin(name);
    const auto step = [&](int index, std::int64_t outputs, std::int64_t kernel, std::int64_t by, bool last) {
        out.convolution(fmt::format("{}.conv{}", name, index), outputs, kernel, by, kernel / 2, false);
        out.batchNorm(fmt::format("{}.bn{}", name, index));
        if (!last)
            out.plain(CnnLayerKind::Relu);
    };
    if (cnn.bottleneck) {
        step(1, width / 4, 1, 1, false);
        step(2, width / 4, 3, stride, false);
        step(3, width, 1, 1, true);
    } else {
        step(1, width, 3, stride, false);
        step(2, width, 3, 1, true);
    }
    if (resized) {
        out.shortcutBegin();
        out.convolution(name + ".downsample.0", width, 1, stride, 0, false);
        out.batchNorm(name + ".downsample.1");
    }
    out.plain(CnnLayerKind::BlockEnd, name);
    out.plain(CnnLayerKind::Relu);
}

void writeResNet(const ModelDescription& model, CnnWriter& out)
{
    const CnnDescription& cnn = model.cnn;
    out.convolution("conv1", 64, 7, 2, 3, false);
    out.batchNorm("bn1");
    out.plain(CnnLayerKind::Relu);
    out.maxPool(3, 2, 1);
    for (std::size_t stage = 0; stage < cnn.depths.size(); ++stage) {
        for (std::int64_t i = 0; i < cnn.depths[stage]; ++i)
            writeResidualBlock(cnn, fmt::format("layer{}.{}", stage + 1, i), cnn.widths[stage],
                               stage > 0 && i == 0 ? 2 : 1, out);
    }
    out.averagePool(1);
    out.flatten();
    out.linear("fc", model.picture.classes);
}

void writeMobileNetV1(const ModelDescription& model, CnnWriter& out)
{
    const CnnDescription& cnn = model.cnn;
    const auto width = [&](double channels) {
        return std::max<std::int64_t>(1, std::llround(channels * cnn.widthMultiplier));
    };
    const auto step = [&](const std::string& name, std::int64_t outputs, std::int64_t kernel, std::int64_t stride,
                          std::int64_t groups) {
        out.convolution(name + ".convolution", outputs, kernel, stride, kernel / 2, false, groups);
        out.batchNorm(name + ".normalization");
        out.plain(CnnLayerKind::Relu6);
    };
    step("mobilenet_v1.conv_stem", width(32), 3, 2, 1);
    constexpr std::int64_t widths[] = {64, 128, 128, 256, 256, 512, 512, 512, 512, 512, 512, 1024, 1024};
    constexpr std::int64_t strides[] = {1, 2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 2, 1};
    for (std::size_t i = 0; i < std::size(widths); ++i) {
        const std::int64_t outputs = width(static_cast<double>(widths[i]));
        if (cnn.separable) {
            step(fmt::format("mobilenet_v1.layer.{}", 2 * i), out.channels(), 3, strides[i], out.channels());
            step(fmt::format("mobilenet_v1.layer.{}", 2 * i + 1), outputs, 1, 1, 1);
        } else {
            step(fmt::format("mobilenet_v1.layer.{}", i), outputs, 3, strides[i], 1);
        }
    }
    out.averagePool(1);
    out.flatten();
    out.linear("classifier", model.picture.classes);
}

/// torchvision's _make_divisible: to a multiple of 8, never more than a tenth below.
std::int64_t divisibleByEight(double value)
{
    const auto rounded = std::max<std::int64_t>(8, static_cast<std::int64_t>(value + 4) / 8 * 8);
    return static_cast<double>(rounded) < 0.9 * value ? rounded + 8 : rounded;
}

void writeInvertedResidual(int index, std::int64_t outputs, std::int64_t stride, std::int64_t expansion, CnnWriter& out)
{
    const std::string name = fmt::format("features.{}", index);
    const std::int64_t inputs = out.channels(), inner = inputs * expansion;
    const bool residual = stride == 1 && inputs == outputs;
    if (residual)
        out.blockBegin(name);
    int part = 0;
    const auto step = [&](std::int64_t width, std::int64_t kernel, std::int64_t by, std::int64_t groups) {
        out.convolution(fmt::format("{}.conv.{}.0", name, part), width, kernel, by, kernel / 2, false, groups);
        out.batchNorm(fmt::format("{}.conv.{}.1", name, part++));
        out.plain(CnnLayerKind::Relu6);
    };
    if (expansion != 1)
        step(inner, 1, 1, 1);
    step(inner, 3, stride, inner);
    out.convolution(fmt::format("{}.conv.{}", name, part), outputs, 1, 1, 0, false);
    out.batchNorm(fmt::format("{}.conv.{}", name, part + 1));
    if (residual)
        out.plain(CnnLayerKind::BlockEnd, name);
}

void writeMobileNetV2(const ModelDescription& model, CnnWriter& out)
{
    struct Stage
    {
        std::int64_t expansion, channels, blocks, stride;
    };
    constexpr Stage stages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                                {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
    const double by = model.cnn.widthMultiplier;
    const auto step = [&](int index, std::int64_t width, std::int64_t kernel, std::int64_t stride) {
        out.convolution(fmt::format("features.{}.0", index), width, kernel, stride, kernel / 2, false);
        out.batchNorm(fmt::format("features.{}.1", index));
        out.plain(CnnLayerKind::Relu6);
    };
    step(0, divisibleByEight(32 * by), 3, 2);
    int index = 1;
    for (const Stage& stage : stages) {
        for (std::int64_t i = 0; i < stage.blocks; ++i)
            writeInvertedResidual(index++, divisibleByEight(static_cast<double>(stage.channels) * by),
                                  i == 0 ? stage.stride : 1, stage.expansion, out);
    }
    step(index, divisibleByEight(1280 * std::max(1.0, by)), 1, 1);
    out.averagePool(1);
    out.flatten();
    out.plain(CnnLayerKind::Dropout);
    out.linear("classifier.1", model.picture.classes);
}

/// One MBConv: widened, depthwise, squeezed and excited, narrowed.
void writeMbConv(const std::string& name, std::int64_t outputs, std::int64_t kernel, std::int64_t stride,
                 std::int64_t expansion, CnnWriter& out)
{
    const std::int64_t inputs = out.channels();
    const std::int64_t inner = divisibleByEight(static_cast<double>(inputs * expansion));
    const bool residual = stride == 1 && inputs == outputs;
    if (residual)
        out.blockBegin(name);
    int part = 0;
    const auto step = [&](std::int64_t width, std::int64_t size, std::int64_t by, std::int64_t groups) {
        out.convolution(fmt::format("{}.block.{}.0", name, part), width, size, by, size / 2, false, groups);
        out.batchNorm(fmt::format("{}.block.{}.1", name, part++));
    };
    if (inner != inputs) {
        step(inner, 1, 1, 1);
        out.plain(CnnLayerKind::Silu);
    }
    step(inner, kernel, stride, inner);
    out.plain(CnnLayerKind::Silu);
    out.squeezeExcite(fmt::format("{}.block.{}", name, part++), std::max<std::int64_t>(1, inputs / 4));
    step(outputs, 1, 1, 1);
    if (residual)
        out.plain(CnnLayerKind::BlockEnd, name);
}

void writeEfficientNet(const ModelDescription& model, CnnWriter& out)
{
    struct Stage
    {
        std::int64_t expansion, kernel, stride, channels, blocks;
    };
    constexpr Stage stages[] = {{1, 3, 1, 16, 1},  {6, 3, 2, 24, 2},  {6, 5, 2, 40, 2}, {6, 3, 2, 80, 3},
                                {6, 5, 1, 112, 3}, {6, 5, 2, 192, 4}, {6, 3, 1, 320, 1}};
    const auto width = [&](std::int64_t channels) {
        return divisibleByEight(static_cast<double>(channels) * model.cnn.widthMultiplier);
    };
    const auto step = [&](std::size_t index, std::int64_t outputs, std::int64_t kernel, std::int64_t stride) {
        out.convolution(fmt::format("features.{}.0", index), outputs, kernel, stride, kernel / 2, false);
        out.batchNorm(fmt::format("features.{}.1", index));
        out.plain(CnnLayerKind::Silu);
    };
    step(0, width(32), 3, 2);
    for (std::size_t i = 0; i < std::size(stages); ++i) {
        const Stage& stage = stages[i];
        const double blocks = std::ceil(static_cast<double>(stage.blocks) * model.cnn.depthMultiplier);
        for (std::int64_t k = 0; k < static_cast<std::int64_t>(blocks); ++k)
            writeMbConv(fmt::format("features.{}.{}", i + 1, k), width(stage.channels), stage.kernel,
                        k == 0 ? stage.stride : 1, stage.expansion, out);
    }
    step(std::size(stages) + 1, 4 * out.channels(), 1, 1);
    out.averagePool(1);
    out.flatten();
    out.plain(CnnLayerKind::Dropout);
    out.linear("classifier.1", model.picture.classes);
}

/// Every layer reads all that the block has made so far, and adds `growth` channels to it.
void writeDenseBlock(const std::string& name, std::int64_t layers, std::int64_t growth, CnnWriter& out)
{
    const std::int64_t inputs = out.channels();
    out.plain(CnnLayerKind::DenseBegin, name);
    for (std::int64_t i = 0; i < layers; ++i) {
        const std::string layer = fmt::format("{}.denselayer{}", name, i + 1);
        out.concatenate(layer, inputs + i * growth);
        out.batchNorm(layer + ".norm1");
        out.plain(CnnLayerKind::Relu);
        out.convolution(layer + ".conv1", 4 * growth, 1, 1, 0, false);
        out.batchNorm(layer + ".norm2");
        out.plain(CnnLayerKind::Relu);
        out.convolution(layer + ".conv2", growth, 3, 1, 1, false);
        out.plain(CnnLayerKind::Collect, layer);
    }
    out.concatenate(name, inputs + layers * growth);
    out.plain(CnnLayerKind::DenseEnd, name);
}

void writeDenseNet(const ModelDescription& model, CnnWriter& out)
{
    const CnnDescription& cnn = model.cnn;
    out.convolution("features.conv0", cnn.stem, 7, 2, 3, false);
    out.batchNorm("features.norm0");
    out.plain(CnnLayerKind::Relu);
    out.maxPool(3, 2, 1);
    for (std::size_t i = 0; i < cnn.depths.size(); ++i) {
        writeDenseBlock(fmt::format("features.denseblock{}", i + 1), cnn.depths[i], cnn.growth, out);
        if (i + 1 == cnn.depths.size())
            break;
        const std::string name = fmt::format("features.transition{}", i + 1);
        out.batchNorm(name + ".norm");
        out.plain(CnnLayerKind::Relu);
        out.convolution(name + ".conv", std::max<std::int64_t>(1, out.channels() / 2), 1, 1, 0, false);
        out.averagePoolOf(2);
    }
    out.batchNorm("features.norm5");
    out.plain(CnnLayerKind::Relu);
    out.averagePool(1);
    out.flatten();
    out.linear("classifier", model.picture.classes);
}

} // namespace

Result<std::vector<CnnLayer>> cnnLayers(const ModelDescription& model)
{
    MEMSCAPE_CHECK(checkModel(model));
    CnnWriter out(model.picture.channels, model.picture.size);
    switch (model.cnn.kind) {
    case CnnKind::AlexNet: writeAlexNet(model, out); break;
    case CnnKind::Vgg: writeVgg(model, out); break;
    case CnnKind::ResNet: writeResNet(model, out); break;
    case CnnKind::MobileNetV1: writeMobileNetV1(model, out); break;
    case CnnKind::MobileNetV2: writeMobileNetV2(model, out); break;
    case CnnKind::EfficientNet: writeEfficientNet(model, out); break;
    case CnnKind::DenseNet: writeDenseNet(model, out); break;
    }
    return out.finish();
}

void writeCnn(const ModelDescription& model, InventoryWriter& out)
{
    const auto layers = cnnLayers(model);
    if (!layers)
        return out.refuse(layers.error());
    out.enter("");
    for (const CnnLayer& layer : *layers) {
        if (layer.kind == CnnLayerKind::Linear) {
            out.linear(layer.name, layer.outputs, layer.inputs, layer.hasBias);
        } else if (layer.kind == CnnLayerKind::BatchNorm) {
            out.norm(layer.name, layer.outputs, true);
        } else if (layer.kind == CnnLayerKind::Convolution) {
            out.add(layer.name + ".weight", {layer.outputs, layer.inputs / layer.groups, layer.kernel, layer.kernel},
                    TensorRole::Convolution);
            if (layer.hasBias)
                out.add(layer.name + ".bias", {layer.outputs}, TensorRole::Bias);
        }
    }
}

} // namespace memscape
