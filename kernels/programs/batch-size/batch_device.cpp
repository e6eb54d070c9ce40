// SPDX-License-Identifier: Apache-2.0
#include "kernels/programs/batch-size/batch_device.h"

#include "kernels/programs/batch-size/batch_numbers.h"

#include <cmath>

namespace memscape {

std::vector<float> batchScales(std::int64_t inputs)
{
    std::vector<float> scales;
    for (std::int64_t j = 0; j < inputs; ++j)
        scales.push_back(float(std::sqrt(NoisyRegression::variance(j))));
    return scales;
}

float batchTruthMagnitude(std::int64_t inputs)
{
    double sum = 0;
    for (std::int64_t j = 0; j < inputs; ++j)
        sum += NoisyRegression::variance(j);
    return float(1 / std::sqrt(sum));
}

float batchNoise()
{
    return batchUnit * float(std::sqrt(NoisyRegression::labelVariance));
}

} // namespace memscape
