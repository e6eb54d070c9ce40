// SPDX-License-Identifier: Apache-2.0
// ResNet with bottlenecks (He et al. 2015) as torchvision writes it (v1.5: the stride is in the 3 × 3
// convolution), in-place ReLU.
#pragma once

#include "core/network/builder.h"

namespace memscape {

struct ResNetShape
{
    std::vector<std::int64_t> layers{3, 4, 6, 3};
    std::int64_t width = 64;
    std::int64_t image = 224;
    std::int64_t classes = 1000;
};

Result<Graph> resNet(const ResNetShape& shape, const BuildOptions& options);

} // namespace memscape
