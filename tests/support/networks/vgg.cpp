// SPDX-License-Identifier: Apache-2.0
#include "tests/support/networks/vgg.h"

#include "tests/support/networks/convolutional.h"

#include <fmt/format.h>

namespace memscape {

Result<Graph> vgg(const VggShape& shape, const BuildOptions& options)
{
    NetworkBuilder b(options);
    Variable x = images(b, shape.image);
    int index = 0; // of torchvision's `features`
    for (const std::int64_t channels : shape.features) {
        if (!b.ok())
            break;
        if (channels == 0) {
            x = b.maxPool(std::move(x), 2, 2);
            ++index;
            continue;
        }
        x = b.convolution(fmt::format("features.{}", index), std::move(x), channels, {3, 1, 1, 1, true});
        x = b.unary(OperatorKind::Relu, std::move(x), true);
        index += 2;
    }
    x = b.flatten(b.adaptiveAveragePool(std::move(x), 7), 1);
    for (int i = 0; i < 2; ++i) {
        x = b.linear(fmt::format("classifier.{}", 3 * i), std::move(x), shape.hidden);
        x = b.dropout(b.unary(OperatorKind::Relu, std::move(x), true), options.dropout);
    }
    return classified(b, b.linear("classifier.6", std::move(x), shape.classes));
}

} // namespace memscape
