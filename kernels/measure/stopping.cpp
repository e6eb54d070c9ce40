// SPDX-License-Identifier: Apache-2.0
#include "kernels/measure/stopping.h"

#include "core/base/rounding.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace memscape {

namespace {

/// So many samples of no time, and fewer of some time, are no coarse clock but a broken one.
constexpr std::size_t timelessLimit = 100;

} // namespace

StoppingOptions StoppingOptions::perPass(int passes) const
{
    StoppingOptions options = *this;
    const auto count = static_cast<std::size_t>(std::max(passes, 1));
    options.minimumSamples = quotientUp(minimumSamples, count);
    options.minimumTime = minimumTime / static_cast<double>(count);
    options.wallLimit = wallLimit / static_cast<double>(count);
    return options;
}

std::string stopText(StopReason reason)
{
    switch (reason) {
    case StopReason::Running: return "still running";
    case StopReason::Precise: return "the median is known to the target";
    case StopReason::Plateau: return "more samples would not lower the noise";
    case StopReason::WallLimit: return "the time limit was reached";
    case StopReason::NoClock: return "the clock stood still or ran backwards";
    }
    return {};
}

StoppingRule::StoppingRule(const StoppingOptions& options, const Clock& clock)
    : m_options(options)
    , m_clock(&clock)
    , m_begin(clock.now())
    , m_nextDecision(options.minimumSamples)
{ }

void StoppingRule::add(double seconds)
{
    if (seconds <= 0)
        ++m_timeless;
    if (!std::isfinite(seconds) || seconds <= 0)
        return;
    m_samples.push_back(seconds);
    m_accumulated += seconds;
}

StopReason StoppingRule::state()
{
    if (m_state != StopReason::Running)
        return m_state;
    if (m_clock->now() - m_begin >= m_options.wallLimit)
        return m_state = StopReason::WallLimit;
    const std::size_t count = m_samples.size();
    if (m_timeless >= timelessLimit && m_timeless > count)
        return m_state = StopReason::NoClock;
    if (count == 0 || count < m_nextDecision || m_accumulated < m_options.minimumTime)
        return m_state;

    // Deciding sorts all samples, so decide more rarely as they grow: the rule must not cost more
    // than a 3 µs kernel.
    m_nextDecision = count + std::max<std::size_t>(1, count / 16);
    const Summary summary = summarize(m_samples);
    m_noise = summary.relativeIqr / std::sqrt(static_cast<double>(count));
    m_spreads.push_back(summary.relativeIqr);
    if (m_noise <= targetNoise(summary))
        m_state = StopReason::Precise;
    else if (onPlateau())
        m_state = StopReason::Plateau;
    return m_state;
}

double StoppingRule::targetNoise(const Summary& summary) const
{
    return summary.median < m_options.shortSample ? m_options.shortTarget : m_options.target;
}

bool StoppingRule::onPlateau() const
{
    const std::size_t window = m_options.plateauWindow;
    if (window < 2 || m_spreads.size() < window)
        return false;
    const std::span<const double> last(m_spreads.data() + m_spreads.size() - window, window);
    const Summary summary = summarize(last);
    double squares = 0;
    for (const double spread : last)
        squares += (spread - summary.mean) * (spread - summary.mean);
    const double deviation = std::sqrt(squares / static_cast<double>(window));
    return deviation < m_options.plateauSpread * summary.mean;
}

} // namespace memscape
