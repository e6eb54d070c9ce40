// SPDX-License-Identifier: Apache-2.0
#include "tests/support/networks/mobilenet.h"

#include "tests/support/networks/convolutional.h"

#include <array>

#include <fmt/format.h>

namespace memscape {

namespace {

/// Modules "features.0", "features.1", … : convolution, norm, activation.
class Features
{
public:
    Features(NetworkBuilder& builder, OperatorKind activation)
        : m_builder(builder)
        , m_activation(activation)
    { }

    Variable linear(Variable x, std::int64_t channels, const ConvolutionShape& shape)
    {
        const int index = m_next;
        m_next += 2;
        return normalizedConvolution(m_builder, fmt::format("{}", index), fmt::format("{}", index + 1), std::move(x),
                                     channels, shape);
    }

    Variable activated(Variable x, std::int64_t channels, const ConvolutionShape& shape)
    {
        x = linear(std::move(x), channels, shape);
        ++m_next;
        return m_builder.unary(m_activation, std::move(x), true);
    }

private:
    NetworkBuilder& m_builder;
    OperatorKind m_activation;
    int m_next = 0;
};

struct Stage
{
    std::int64_t expansion, channels, repeats, stride;
};

constexpr std::array<Stage, 7> stages{{
    {1, 16, 1, 1},
    {6, 24, 2, 2},
    {6, 32, 3, 2},
    {6, 64, 4, 2},
    {6, 96, 3, 1},
    {6, 160, 3, 2},
    {6, 320, 1, 1},
}};

Variable invertedResidual(NetworkBuilder& b, const Variable& x, const Stage& stage, std::int64_t stride)
{
    Features conv(b, OperatorKind::HardTanh);
    const std::int64_t width = x.size(1) * stage.expansion;
    Variable y = x;
    if (stage.expansion != 1)
        y = conv.activated(std::move(y), width, {});
    y = conv.activated(std::move(y), width, {3, stride, 1, width});
    y = conv.linear(std::move(y), stage.channels, {});
    const bool isResidual = stride == 1 && x.size(1) == stage.channels;
    return isResidual ? b.add(x, std::move(y)) : y;
}

} // namespace

Result<Graph> mobileNetV1(const MobileNetShape& shape, const BuildOptions& options)
{
    constexpr std::array<std::array<std::int64_t, 2>, 13> blocks{{
        {64, 1},
        {128, 2},
        {128, 1},
        {256, 2},
        {256, 1},
        {512, 2},
        {512, 1},
        {512, 1},
        {512, 1},
        {512, 1},
        {512, 1},
        {1024, 2},
        {1024, 1},
    }};
    NetworkBuilder b(options);
    Variable x = images(b, shape.image);
    {
        const ModuleScope scope(b, "features", "Sequential");
        Features features(b, OperatorKind::Relu);
        x = features.activated(std::move(x), 32, {3, 2, 1});
        for (const auto& [channels, stride] : blocks) {
            const std::int64_t width = x.size(1);
            x = features.activated(std::move(x), width, {3, stride, 1, width});
            x = features.activated(std::move(x), channels, {});
        }
    }
    x = b.flatten(b.adaptiveAveragePool(std::move(x), 1), 1);
    return classified(b, b.linear("fc", std::move(x), shape.classes));
}

Result<Graph> mobileNetV2(const MobileNetShape& shape, const BuildOptions& options)
{
    NetworkBuilder b(options);
    Variable x = images(b, shape.image);
    int index = 0;
    const auto named = [&] { return fmt::format("features.{}", index++); };
    const auto stem = [&](Variable input, std::int64_t channels, const ConvolutionShape& conv) {
        const ModuleScope scope(b, named(), "ConvNormActivation");
        return Features(b, OperatorKind::HardTanh).activated(std::move(input), channels, conv);
    };
    x = stem(std::move(x), 32, {3, 2, 1});
    for (const Stage& stage : stages) {
        for (std::int64_t i = 0; i < stage.repeats && b.ok(); ++i) {
            const ModuleScope scope(b, named(), "InvertedResidual");
            x = b.layer([&] { return invertedResidual(b, x, stage, i == 0 ? stage.stride : 1); });
        }
    }
    x = stem(std::move(x), 1280, {});
    x = b.flatten(b.adaptiveAveragePool(std::move(x), 1), 1);
    x = b.dropout(std::move(x), options.dropout);
    return classified(b, b.linear("classifier.1", std::move(x), shape.classes));
}

} // namespace memscape
