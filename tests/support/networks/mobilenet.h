// SPDX-License-Identifier: Apache-2.0
// MobileNet v1 (Howard et al. 2017) and v2 (Sandler et al. 2018): a depthwise convolution (one group
// a channel) and a pointwise one instead of a standard convolution; v2 with inverted residuals and
// in-place ReLU6, which keeps a clone of its input.
#pragma once

#include "core/network/builder.h"

namespace memscape {

struct MobileNetShape
{
    std::int64_t image = 224;
    std::int64_t classes = 1000;
};

Result<Graph> mobileNetV1(const MobileNetShape& shape, const BuildOptions& options);
Result<Graph> mobileNetV2(const MobileNetShape& shape, const BuildOptions& options);

} // namespace memscape
