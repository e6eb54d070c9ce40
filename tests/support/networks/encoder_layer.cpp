// SPDX-License-Identifier: Apache-2.0
#include "tests/support/networks/encoder_layer.h"

#include <fmt/format.h>

namespace memscape {

namespace {

Variable selfAttention(NetworkBuilder& b, const EncoderStackShape& shape, const Variable& x)
{
    const ModuleScope scope(b, "self_attn", "MultiheadAttention");
    const std::int64_t batch = x.size(0), length = x.size(1), width = shape.hidden / shape.heads;
    const Variable turned = b.transpose(x, 1, 0);
    const Variable weight = b.parameter("in_proj_weight", {3 * shape.hidden, shape.hidden});
    const Variable bias = b.parameter("in_proj_bias", {3 * shape.hidden});
    std::vector<Variable> parts = b.chunk(b.linear(turned, weight, bias), 3, -1);
    for (Variable& part : parts)
        part = b.transpose(b.view(b.contiguous(std::move(part)), {length, batch * shape.heads, width}), 0, 1);
    const Variable scaled = b.scale(parts[0]);
    Variable scores = b.matmul(scaled, b.transpose(parts[1], -2, -1));
    scores = b.dropout(b.softmax(std::move(scores)), b.options().dropout);
    Variable output = b.matmul(scores, parts[2]);
    output = b.view(b.contiguous(b.transpose(std::move(output), 0, 1)), {length * batch, shape.hidden});
    output = b.linear("out_proj", std::move(output), shape.hidden);
    return b.transpose(b.view(std::move(output), {length, batch, shape.hidden}), 1, 0);
}

Variable attentionBranch(NetworkBuilder& b, const EncoderStackShape& shape, const Variable& x)
{
    return b.dropout(selfAttention(b, shape, x), b.options().dropout);
}

Variable feedForwardBranch(NetworkBuilder& b, const EncoderStackShape& shape, const Variable& x)
{
    Variable y = b.gelu(b.linear("linear1", x, shape.feedForward));
    y = b.linear("linear2", b.dropout(std::move(y), b.options().dropout), shape.hidden);
    return b.dropout(std::move(y), b.options().dropout);
}

Variable encoderLayer(NetworkBuilder& b, const EncoderStackShape& shape, const Variable& argument)
{
    const auto attend = [&](const Variable& y) { return attentionBranch(b, shape, y); };
    const auto feed = [&](const Variable& y) { return feedForwardBranch(b, shape, y); };
    Variable x = argument;
    if (shape.normFirst) {
        x = b.add(x, b.call(b.layerNorm("norm1", x), attend));
        return b.add(x, b.call(b.layerNorm("norm2", x), feed));
    }
    x = b.layerNorm("norm1", b.add(x, attend(x)));
    return b.layerNorm("norm2", b.add(x, feed(x)));
}

} // namespace

Result<Graph> encoderStack(const EncoderStackShape& shape, const BuildOptions& options, bool inputWantsGradient)
{
    NetworkBuilder b(options);
    if (shape.heads < 1 || shape.hidden % shape.heads != 0)
        b.refuse("network.shape",
                 fmt::format("hidden size {} is not a multiple of {} heads", shape.hidden, shape.heads));
    Variable x = b.input("x", {options.batch, options.sequence, shape.hidden}, options.weights, inputWantsGradient);
    for (std::int64_t i = 0; i < shape.layers && b.ok(); ++i) {
        const ModuleScope scope(b, fmt::format("layers.{}", i), "TransformerEncoderLayer");
        x = b.layer([&] { return encoderLayer(b, shape, x); });
    }
    return b.finish(std::move(x));
}

} // namespace memscape
