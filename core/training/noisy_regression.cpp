// SPDX-License-Identifier: Apache-2.0
#include "core/training/noisy_regression.h"

#include <cmath>

namespace memscape {

NoisyRegression::NoisyRegression(std::int64_t inputs, std::int64_t outputs)
    : m_outputs(double(outputs))
{
    double sum = 0;
    for (std::int64_t j = 0; j < inputs; ++j) {
        m_variances.push_back(variance(j));
        sum += m_variances.back();
    }
    m_weight = 1 / std::sqrt(sum);
    m_moments.assign(std::size_t(inputs), m_outputs / sum);
    summarise();
}

void NoisyRegression::summarise()
{
    double first = 0, second = 0, third = 0, variances = 0, squares = 0;
    for (std::size_t j = 0; j < m_moments.size(); ++j) {
        const double variance = m_variances[j], weighted = variance * m_moments[j];
        first += weighted;
        second += variance * weighted;
        third += variance * variance * weighted;
        variances += variance;
        squares += variance * variance;
    }
    m_risk = first + m_bias + m_outputs * labelVariance;
    m_squared = second + m_bias;
    m_curvature = third + m_bias;
    m_trace = variances * m_risk + (kurtosis - 2) * second + m_risk - m_bias;
    m_curved = squares * m_risk + (kurtosis - 2) * third + m_risk - m_bias;
}

double NoisyRegression::bestRate(double batch) const
{
    return rate(batch) * m_outputs / 2;
}

void NoisyRegression::step(double batch)
{
    const double rate = this->rate(batch), spread = rate * rate / batch;
    for (std::size_t j = 0; j < m_moments.size(); ++j) {
        const double variance = m_variances[j], kept = 1 - rate * variance;
        const double noise = variance * m_risk + (kurtosis - 2) * variance * variance * m_moments[j];
        m_moments[j] = kept * kept * m_moments[j] + spread * noise;
    }
    m_bias = (1 - rate) * (1 - rate) * m_bias + spread * (m_risk - m_bias);
    summarise();
}

} // namespace memscape
