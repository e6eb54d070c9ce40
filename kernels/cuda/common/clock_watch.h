// SPDX-License-Identifier: Apache-2.0
// Disturbances of a long run of dense kernels on a GPU, as far as its clock shows them.
#pragma once

#include "kernels/cuda/session.h"
#include "kernels/measure/quality.h"
#include "kernels/measure/sampled_points.h"

#include <algorithm>
#include <vector>

namespace memscape::cuda {

/// The SM clock between operations, as shares of what it reaches under a light load.
class ClockWatch
{
public:
    ClockWatch(GpuSession& session, double reference)
        : m_session(session)
        , m_reference(reference)
    { }
    void restart() { m_shares.clear(); }
    /// Keeps the GPU busy for a while: 10 ms.
    void read()
    {
        if (const auto clock = m_session.warmClock(0.01); clock && *clock > 0 && m_reference > 0)
            m_shares.push_back(*clock / m_reference);
    }
    RunConditions seen() const
    {
        RunConditions seen;
        if (m_shares.empty())
            return seen;
        seen.clockShare = *std::min_element(m_shares.begin(), m_shares.end());
        seen.clockDrift = driftOf(m_shares);
        return seen;
    }

private:
    GpuSession& m_session;
    double m_reference;
    std::vector<double> m_shares;
};

/// The clock before and after a visit of sampled points.
class ClockVisit final : public VisitWatch
{
public:
    ClockVisit(GpuSession& session, double reference)
        : m_watch(session, reference)
    { }
    void begin() override
    {
        m_watch.restart();
        m_watch.read();
    }
    RunConditions end(std::size_t) override
    {
        m_watch.read();
        return m_watch.seen();
    }

private:
    ClockWatch m_watch;
};

} // namespace memscape::cuda
