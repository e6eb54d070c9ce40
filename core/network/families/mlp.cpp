// SPDX-License-Identifier: Apache-2.0
#include "core/network/families/mlp.h"

#include "core/network/families/decoder_parts.h"

#include <fmt/format.h>

namespace memscape {

Result<Graph> mlpChain(const ModelDescription& model, const BuildOptions& options)
{
    MEMSCAPE_CHECK(checkModel(model));
    NetworkBuilder b(options);
    Variable x = b.input("x", {options.batch, model.mlpSizes.front()}, options.weights);
    const std::size_t layers = model.mlpSizes.size() - 1;
    for (std::size_t i = 0; i < layers && b.ok(); ++i) {
        x = b.layer([&] {
            Variable y = b.linear(fmt::format("layers.{}", i), x, model.mlpSizes[i + 1], model.biases.feedForward);
            return i + 1 < layers ? activated(b, model.activation, std::move(y)) : y;
        });
    }
    if (!options.loss || !b.ok())
        return b.finish(std::move(x));
    const Variable target = b.target("target", x.shape(), options.weights);
    Variable loss = b.mseLoss(x, target);
    return b.finish(std::move(x), std::move(loss));
}

} // namespace memscape
