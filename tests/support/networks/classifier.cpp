// SPDX-License-Identifier: Apache-2.0
#include "tests/support/networks/classifier.h"

#include <fmt/format.h>

namespace memscape {

Result<Graph> classifier(const ClassifierShape& shape, const BuildOptions& options)
{
    NetworkBuilder b(options);
    if (shape.sizes.size() < 2)
        return fail("network.shape", "a chain of linear layers needs at least two sizes");
    Variable x = b.input("x", {options.batch, shape.sizes[0]}, options.weights);
    for (std::size_t i = 1; i < shape.sizes.size() && b.ok(); ++i) {
        x = b.linear(fmt::format("layers.{}", i - 1), std::move(x), shape.sizes[i], shape.hasBias);
        if (i + 1 < shape.sizes.size() && shape.hasActivation)
            x = b.unary(shape.activation, std::move(x), shape.isInPlace);
    }
    if (!options.loss)
        return b.finish(std::move(x));
    Variable loss = b.crossEntropy(x, b.target("targets", {options.batch}, DType::Int64));
    return b.finish(std::move(x), std::move(loss));
}

} // namespace memscape
