// SPDX-License-Identifier: Apache-2.0
// What is published about the loss of language models over steps and batch: Kaplan, McCandlish et al. 2020,
// "Scaling Laws for Neural Language Models" (arXiv:2001.08361): equation 1.6 with the fit of table 3 (α_N 0.077,
// α_S 0.76, N_c 6.5e13, S_c 2.1e3), and figure 10 with B_* 2.1e8 tokens and 1/α_B 4.8.
//
//   L(N, S) = (N_c / N)^α_N + (S_c / S_min)^α_S     loss of N parameters without embeddings, nats per token
//   B_crit(L) = B_* / L^(1/α_B)                     tokens
//   E_min = B_crit S_min                            tokens; S and E at other batches by noise_scale.h
//
// The noise scale along the way is what makes constant batches obey those totals: b = dE_min/dS_min
//   = B_crit (1 + α_S/α_B · (L − L_∞)/L).
//
// Left out: everything that is no decoder trained on web text with their tokenizer and rate schedule; the limit of
// the data (epochs). It is a law fitted to models from 768 to 1.5e9 parameters, here read as an estimate.
#pragma once

#include "core/base/result.h"
#include "core/training/noise_scale.h"

namespace memscape {

struct LanguageLaw
{
    static constexpr double parametersScale = 6.5e13, parametersExponent = 0.077;
    static constexpr double stepsScale = 2.1e3, stepsExponent = 0.76;
    static constexpr double batchScale = 2.1e8, batchExponent = 0.21;

    double parameters = 1; ///< without embeddings

    double leastLoss() const; ///< L_∞, of training without end
    double loss(double fewestSteps) const;
    double criticalTokens(double loss) const;
    double noiseTokens(double loss) const; ///< b
    /// Errors: batch.target when the loss is never reached, naming the least that is.
    Result<BatchHyperbola> toLoss(double loss) const; ///< examples are tokens
};

} // namespace memscape
