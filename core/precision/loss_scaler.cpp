// SPDX-License-Identifier: Apache-2.0
#include "core/precision/loss_scaler.h"

#include <cmath>

namespace memscape {

LossScaler::LossScaler(const LossScalerOptions& options)
    : m_options(options)
    , m_scale(options.initialScale)
{ }

bool LossScaler::update(bool foundInfinite)
{
    if (foundInfinite) {
        m_scale = float(m_scale * m_options.backoffFactor);
        m_growthTracker = 0;
        ++m_skipped;
        return false;
    }
    if (++m_growthTracker == m_options.growthInterval) {
        const auto grown = float(m_scale * m_options.growthFactor);
        if (std::isfinite(grown))
            m_scale = grown;
        m_growthTracker = 0;
    }
    return true;
}

int skipsAtStart(const LossScalerOptions& options, double gradient, double threshold)
{
    LossScaler scaler(options);
    while (scaler.scale() > 0 && double(scaler.scale()) * gradient >= threshold)
        scaler.update(true);
    return scaler.skipped();
}

} // namespace memscape
