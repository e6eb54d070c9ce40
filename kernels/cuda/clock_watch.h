// SPDX-License-Identifier: Apache-2.0
// What a long run on a GPU was disturbed by, as far as its clock tells.
#pragma once

#include "kernels/cuda/session.h"
#include "kernels/measure/quality.h"

#include <algorithm>
#include <limits>

namespace memscape::cuda {

/// The lowest SM clock between operations, as a share of what it reaches when busy.
class ClockWatch
{
public:
    ClockWatch(Session& session, double reference)
        : m_session(session)
        , m_reference(reference)
    {
    }
    void restart() { m_share = std::numeric_limits<double>::infinity(); }
    /// Keeps the GPU busy for a while: 10 ms.
    void read()
    {
        if (const auto clock = m_session.warmClock(0.01); clock && *clock > 0 && m_reference > 0)
            m_share = std::min(m_share, *clock / m_reference);
    }
    Circumstances seen() const
    {
        Circumstances seen;
        if (m_share < std::numeric_limits<double>::infinity())
            seen.clockShare = m_share;
        return seen;
    }

private:
    Session& m_session;
    double m_reference;
    double m_share = std::numeric_limits<double>::infinity();
};

} // namespace memscape::cuda
