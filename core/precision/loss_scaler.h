// SPDX-License-Identifier: Apache-2.0
// Dynamic loss scaling, as PyTorch's GradScaler does it (torch/amp/grad_scaler.py and the kernel
// _amp_update_scale_): the loss is multiplied by a scale S before backward and the gradients by 1/S
// before the optimizer. When any gradient is infinite or not a number, the step is skipped and S
// backs off; after `growthInterval` steps in a row without one, S grows, unless that would be
// infinite. S is kept in FP32, as there.
//
// Expected at the start: while S × the largest gradient overflows, every step is skipped,
// ⌈log2(S g / threshold)⌉ of them. Micikevicius et al. 2018 (arXiv:1710.03740).
#pragma once

namespace memscape {

struct LossScalerOptions
{
    float initialScale = 65536;
    double growthFactor = 2;
    double backoffFactor = 0.5;
    int growthInterval = 2000;
};

class LossScaler
{
public:
    explicit LossScaler(const LossScalerOptions& options = {});

    float scale() const { return m_scale; }
    /// Steps without an infinite gradient since the scale last changed.
    int growthTracker() const { return m_growthTracker; }
    /// Steps that were skipped so far.
    int skipped() const { return m_skipped; }

    /// After the gradients of a step are known: whether the optimizer may step. Changes the scale
    /// for the next step.
    bool update(bool foundInfinite);

private:
    LossScalerOptions m_options;
    float m_scale;
    int m_growthTracker = 0, m_skipped = 0;
};

/// Steps in a row that are skipped at the start, when the largest unscaled gradient stays `gradient`
/// and what is `threshold` or more overflows.
int skipsAtStart(const LossScalerOptions& options, double gradient, double threshold);

} // namespace memscape
