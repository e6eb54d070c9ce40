// SPDX-License-Identifier: Apache-2.0
// Links of this host, probed over sizes from which α and β follow: by the calibration once, and by a run in turn with
// its points, since cores move and others come and go (core/experiment/probed_links.h).
#pragma once

#include "core/experiment/probed_links.h"
#include "kernels/host/session.h"
#include "kernels/measure/canary.h"

#include <functional>
#include <utility>
#include <vector>

namespace memscape::host {

/// A link and how it is probed.
struct LinkPlan
{
    LinkProbes link;           ///< without points
    std::vector<double> sizes; ///< B
    /// Seconds of one size. Errors: run.cancelled, check.failed; others leave that size out.
    std::function<Result<std::vector<double>>(double bytes, const StoppingOptions&)> measure;
};

/// Of one probe: five samples, `wallLimit` seconds at most.
StoppingOptions probeOptions(double wallLimit);

/// Takes a few probes at each visit of a run, every size in its turn. Those beside which others had more than a
/// twentieth of the processors' time are not kept.
class LinkProber
{
public:
    using Ticks = std::function<SystemTicks()>;
    /// `ticks`: the system's counters; without them none is known to be disturbed.
    explicit LinkProber(Ticks ticks = {})
        : m_ticks(std::move(ticks))
    { }
    /// Nothing where a link of that id is probed already.
    void add(LinkPlan plan);
    /// The next probes. Errors: run.cancelled, check.failed.
    Result<void> take();
    const std::vector<LinkSamples>& samples() const { return m_samples; }

private:
    struct Probe
    {
        std::size_t plan;
        double bytes;
    };
    SystemTicks ticksNow() const { return m_ticks ? m_ticks() : SystemTicks(); }

    Ticks m_ticks;
    std::vector<LinkPlan> m_plans;
    std::vector<LinkSamples> m_samples; ///< one for each plan
    std::vector<Probe> m_turns;
    std::size_t m_taken = 0;
};

} // namespace memscape::host
