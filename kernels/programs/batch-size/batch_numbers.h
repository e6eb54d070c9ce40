// SPDX-License-Identifier: Apache-2.0
// The examples that `batch-size` trains on, made from their numbers: arithmetic that the host, a GPU and the
// check share. The data set has no end and no file. C++17, no library of ours: nvcc reads this file too.
//
//   inputs    x_j uniform with variance λ_j = 1/(j + 1)
//   targets   one layer learns t = W*x + n, a deeper chain t = √2 max(W*x, 0) + n; W* has entries ±1/√Σλ,
//             n is uniform with variance 0.1 (core/training/noisy_regression.h)
//
// An index is example × inputs + j, or example × outputs + k.
#pragma once

#include "kernels/programs/common/mlp_numbers.h"

namespace memscape {

inline constexpr std::uint64_t batchTruthSeed = 901, batchInputSeed = 902, batchNoiseSeed = 903;
inline constexpr float batchUnit = 1.7320508F;      ///< uniform numbers in ± this have variance 1
inline constexpr float batchReluScale = 1.4142135F; ///< √2: half of a symmetric number's square is left

/// x_j, `scale` = √λ_j.
MEMSCAPE_EVERYWHERE float batchInput(std::uint64_t index, float scale)
{
    return batchUnit * scale * mlpUniform(batchInputSeed, index);
}

/// Entry `index` = k × inputs + j of W*.
MEMSCAPE_EVERYWHERE float batchTruth(std::uint64_t index, float magnitude)
{
    return mlpUniform(batchTruthSeed, index) < 0 ? -magnitude : magnitude;
}

/// t from (W*x)_k; `noise` = √3 × the noise's standard deviation.
MEMSCAPE_EVERYWHERE float batchTarget(std::uint64_t index, float product, bool isLinear, float noise)
{
    const float clean = isLinear ? product : batchReluScale * (product > 0 ? product : 0.0F);
    return clean + noise * mlpUniform(batchNoiseSeed, index);
}

} // namespace memscape
