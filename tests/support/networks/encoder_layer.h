// SPDX-License-Identifier: Apache-2.0
// A stack of torch.nn.TransformerEncoderLayer(batch_first=True): PyTorch's own module turns the
// batch around, so that the sequence comes first, and copies q, k and v head by head.
#pragma once

#include "core/network/builder.h"

namespace memscape {

struct EncoderStackShape
{
    std::int64_t hidden = 512;
    std::int64_t heads = 8;
    std::int64_t feedForward = 2048;
    std::int64_t layers = 6;
    bool normFirst = false;
};

/// Result and input are (B, S, hidden).
Result<Graph> encoderStack(const EncoderStackShape& shape, const BuildOptions& options,
                           bool inputWantsGradient = false);

} // namespace memscape
