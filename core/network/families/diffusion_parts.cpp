// SPDX-License-Identifier: Apache-2.0
#include "core/network/families/diffusion_parts.h"

namespace memscape {

Variable timeWaves(NetworkBuilder& b, std::int64_t channels)
{
    const BuildOptions& options = b.options();
    b.input("times", {options.batch}, DType::Int64);
    return b.cast(b.fill({options.batch, channels}, DType::Float32), options.weights);
}

Result<Graph> finishNoise(NetworkBuilder& b, Variable noise)
{
    if (!b.options().loss || !b.ok())
        return b.finish(std::move(noise));
    const Variable added = b.target("noise", noise.shape(), b.options().weights);
    Variable predicted = b.cast(noise, DType::Float32);
    Variable loss = b.mseLoss(std::move(predicted), b.cast(added, DType::Float32));
    return b.finish(std::move(noise), std::move(loss));
}

} // namespace memscape
