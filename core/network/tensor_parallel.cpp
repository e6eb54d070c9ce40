// SPDX-License-Identifier: Apache-2.0
#include "core/network/tensor_parallel.h"

#include "core/base/rounding.h"

#include <string>

#include <fmt/format.h>

namespace memscape {

namespace {

/// "choose tensor_parallel=2, or tensor_parallel=4: it divides 32": the nearest below and, where there is one, above.
std::string nearDivisors(std::int64_t size, int devices)
{
    const auto fits = [&](std::int64_t count) { return size % count == 0; };
    std::int64_t below = devices, above = devices;
    while (below > 1 && !fits(below))
        --below;
    while (above < size && !fits(above))
        ++above;
    const std::string more = fits(above) && above > devices ? fmt::format(", or tensor_parallel={}", above) : "";
    return fmt::format("choose tensor_parallel={}{}: it divides {}", below, more, size);
}

Result<void> divide(std::int64_t& size, const char* field, int devices)
{
    if (size % devices != 0)
        return fail("network.parallel",
                    fmt::format("{} {} cannot be shared evenly by {} devices", size, field, devices),
                    nearDivisors(size, devices), "tensor_parallel");
    size /= devices;
    return {};
}

Result<void> divideKeys(ModelDescription& model, int devices)
{
    if (model.kvHeads >= devices)
        return divide(model.kvHeads, "key/value heads", devices);
    if (devices % model.kvHeads != 0)
        return fail("network.parallel",
                    fmt::format("{} devices cannot repeat {} key/value heads evenly", devices, model.kvHeads),
                    "choose a multiple of the key/value heads", "tensor_parallel");
    model.kvHeads = 1;
    return {};
}

/// Whether the layers are those that Megatron divides: attention by heads, then a feed-forward layer by columns.
bool isDivided(const ModelDescription& model)
{
    switch (model.family) {
    case Family::Cnn:
    case Family::Mlp:
    case Family::Traced:
    case Family::Diffusion:
    case Family::StateSpace: return false;
    default: return model.windows.depths.empty() && model.vision.layers == 0;
    }
}

} // namespace

Result<ModelDescription> tensorParallelPart(const ModelDescription& model, int devices, bool dividesExperts)
{
    ModelDescription part = model;
    if (devices == 1)
        return part;
    if (!isDivided(model)) {
        Error error{"network.parallel",
                    fmt::format("tensor parallelism divides plain transformers; {} is a {}{}{}", model.name,
                                model.windows.depths.empty() ? "" : "windowed ", familyText(model.family),
                                model.vision.layers > 0 ? " with a vision tower" : ""),
                    "tensor_parallel", "choose tensor_parallel=1"};
        error.remedy = Remedy{"tensor_parallel", "1"};
        return fail(std::move(error));
    }
    MEMSCAPE_CHECK(divide(part.heads, "heads", devices));
    MEMSCAPE_CHECK(divideKeys(part, devices));
    MEMSCAPE_CHECK(divide(part.ffn, "feed-forward columns", devices));
    if (part.experts.count > 0) {
        if (dividesExperts)
            MEMSCAPE_CHECK(divide(part.experts.ffn, "columns of an expert", devices));
        MEMSCAPE_CHECK(divide(part.experts.sharedFfn, "columns of the shared expert", devices));
    }
    part.vocab = quotientUp(part.vocab, devices);
    return part;
}

} // namespace memscape
