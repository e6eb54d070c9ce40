// SPDX-License-Identifier: Apache-2.0
// What models share that predict the noise of a latent picture: the time of each picture, and the loss.
#pragma once

#include "core/network/builder.h"

namespace memscape {

/// Sines and cosines of one time for each picture: (B, channels), in the weights' type. Left out: the handful of
/// operators on B × channels numbers that make them.
Variable timeWaves(NetworkBuilder& b, std::int64_t channels);

/// Ends in the noise (B, C, H, W), or in its mean squared error, computed in float.
Result<Graph> finishNoise(NetworkBuilder& b, Variable noise);

} // namespace memscape
