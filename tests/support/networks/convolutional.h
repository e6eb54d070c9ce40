// SPDX-License-Identifier: Apache-2.0
// What the convolutional families share: a convolution with batch norm, the head, and the loss.
#pragma once

#include "core/network/builder.h"

namespace memscape {

/// norm(conv(x)) without a bias; the modules are `conv` and `norm`.
inline Variable normalizedConvolution(NetworkBuilder& b, std::string_view conv, std::string_view norm, Variable x,
                                      std::int64_t channels, const ConvolutionShape& shape)
{
    return b.batchNorm(norm, b.convolution(conv, std::move(x), channels, shape));
}

/// The batch: (B, 3, image, image) in the weights' precision.
inline Variable images(NetworkBuilder& b, std::int64_t size)
{
    return b.input("images", {b.options().batch, 3, size, size}, b.options().weights);
}

/// Class scores to the end of the forward pass.
inline Result<Graph> classified(NetworkBuilder& b, Variable scores)
{
    if (!b.options().loss)
        return b.finish(std::move(scores));
    const Variable target = b.target("classes", {b.options().batch}, DType::Int64);
    Variable loss = b.crossEntropy(scores, target);
    return b.finish(std::move(scores), std::move(loss));
}

} // namespace memscape
