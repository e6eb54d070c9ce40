// SPDX-License-Identifier: Apache-2.0
// VGG (Simonyan and Zisserman 2014) as torchvision writes it: 3 × 3 convolutions with in-place ReLU,
// pooling in between, three linear layers.
#pragma once

#include "core/network/builder.h"

namespace memscape {

struct VggShape
{
    /// Channels of each convolution; 0 is a 2 × 2 max pooling. The default is VGG-16.
    std::vector<std::int64_t> features{64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0};
    std::int64_t hidden = 4096;
    std::int64_t image = 224;
    std::int64_t classes = 1000;
};

Result<Graph> vgg(const VggShape& shape, const BuildOptions& options);

} // namespace memscape
