// SPDX-License-Identifier: Apache-2.0
// A training problem whose gradient noise is known in closed form: one linear layer that learns a linear map from
// noisy examples, by SGD from zero weights.
//
//   x_j = √λ_j u, λ_j = 1/(j + 1), u uniform with variance 1; y = W*x + n, n uniform with variance σ²
//   loss = mean over batch and outputs of (Wx + b − y)² = R / K,   R = Σ_k (Σ_j λ_j w_kj² + b_k²) + Kσ²
//   where w = W − W*, K outputs. W*_kj = ±1/√Σλ: outputs have variance 1, the loss starts at 1 + σ².
//
// Of the gradient (up to the factor 2/K of the loss, which the rate absorbs), summed over outputs, with
// m_j = Σ_k w_kj² and κ = 9/5 the kurtosis of a uniform number:
//   |G|² = Σ λ_j² m_j + b²,   GᵀHG = Σ λ_j³ m_j + b²
//   Var of entry j = λ_j R + (κ − 2) λ_j² m_j,   of the bias R − b²
//   tr(Σ), tr(HΣ) their sums, weighted with λ_j
// One step of SGD with batch B and rate ε changes the second moments by
//   m_j ← (1 − ελ_j)² m_j + ε²/B · Var_j
// exactly, in expectation (for one rate that does not look at the drawn batch). So the expected loss after
// every step, and with it the steps to a loss, are computed, not simulated. The rate is the best one of the
// paper: ε = |G|²/GᵀHG / (1 + B_noise/B). Cf. the noisy quadratic model of Zhang et al. 2019 (arXiv:1907.04164).
//
// Left out: the spread around the expectation; momentum.
#pragma once

#include <cstdint>
#include <vector>

namespace memscape {

class NoisyRegression
{
public:
    static constexpr double labelVariance = 0.1; ///< σ²
    static constexpr double kurtosis = 1.8;      ///< of a uniform number

    NoisyRegression(std::int64_t inputs, std::int64_t outputs);

    static double variance(std::int64_t input) { return 1 / (1 + double(input)); } ///< λ_j
    double weightMagnitude() const { return m_weight; }                            ///< |W*_kj|

    double loss() const { return m_risk / m_outputs; }
    double floor() const { return labelVariance; }                ///< no loss is below it
    double simpleNoise() const { return m_trace / m_squared; }    ///< tr(Σ)/|G|²
    double trace() const { return m_trace; }                      ///< tr(Σ), without the factor (2/K)² of the loss
    double curvedNoise() const { return m_curved / m_curvature; } ///< tr(HΣ)/(GᵀHG)
    /// Of the loss as it is written above: ε_max(2/K)⁻¹ / (1 + B_noise/B).
    double bestRate(double batch) const;
    /// One step at the best rate.
    void step(double batch);

private:
    void summarise();
    double rate(double batch) const { return m_squared / m_curvature / (1 + curvedNoise() / batch); }

    double m_outputs = 1, m_weight = 1;
    std::vector<double> m_variances, m_moments; ///< by input
    double m_bias = 0;                          ///< Σ_k b_k²
    double m_risk = 0, m_squared = 0, m_curvature = 0, m_trace = 0, m_curved = 0;
};

} // namespace memscape
