// SPDX-License-Identifier: Apache-2.0
#include "tests/support/networks/resnet.h"

#include "tests/support/networks/convolutional.h"

#include <fmt/format.h>

namespace memscape {

namespace {

Variable reluInPlace(NetworkBuilder& b, Variable x)
{
    return b.unary(OperatorKind::Relu, std::move(x), true);
}

Variable bottleneck(NetworkBuilder& b, const Variable& x, std::int64_t width, std::int64_t stride, bool hasProjection)
{
    Variable y = reluInPlace(b, normalizedConvolution(b, "conv1", "bn1", x, width, {}));
    y = reluInPlace(b, normalizedConvolution(b, "conv2", "bn2", std::move(y), width, {3, stride, 1}));
    y = normalizedConvolution(b, "conv3", "bn3", std::move(y), 4 * width, {});
    Variable identity = x;
    if (hasProjection)
        identity = normalizedConvolution(b, "downsample.0", "downsample.1", x, 4 * width, {1, stride});
    y = b.addInPlace(std::move(y), std::move(identity));
    return reluInPlace(b, std::move(y));
}

} // namespace

Result<Graph> resNet(const ResNetShape& shape, const BuildOptions& options)
{
    NetworkBuilder b(options);
    Variable x = images(b, shape.image);
    x = normalizedConvolution(b, "conv1", "bn1", std::move(x), shape.width, {7, 2, 3});
    x = b.maxPool(reluInPlace(b, std::move(x)), 3, 2, 1);
    std::int64_t width = shape.width;
    for (std::size_t stage = 0; stage < shape.layers.size(); ++stage, width *= 2) {
        for (std::int64_t i = 0; i < shape.layers[stage] && b.ok(); ++i) {
            const ModuleScope scope(b, fmt::format("layer{}.{}", stage + 1, i), "Bottleneck");
            const std::int64_t stride = stage > 0 && i == 0 ? 2 : 1;
            x = b.layer([&] { return bottleneck(b, x, width, stride, i == 0); });
        }
    }
    x = b.flatten(b.adaptiveAveragePool(std::move(x), 1), 1);
    return classified(b, b.linear("fc", std::move(x), shape.classes));
}

} // namespace memscape
