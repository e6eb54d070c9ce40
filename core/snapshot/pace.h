// SPDX-License-Identifier: Apache-2.0
// How far an analysis is: long loops over the events of a trace say where they are and ask whether it is still wanted
// (core/base/cancellation.h), every 65,536 events: about a millisecond.
#pragma once

#include "core/base/cancellation.h"

#include <cstddef>
#include <functional>
#include <utility>

namespace memscape {

class Pace
{
public:
    using Tell = std::function<void(double share)>; ///< 0 to 1, rising

    explicit Pace(Tell tell = {})
        : m_tell(std::move(tell))
    { }

    /// A part begins that will have ended at the share `until` of the whole.
    void begin(double until)
    {
        m_from = std::exchange(m_until, until);
        tell(0);
    }
    /// Asked at each event of a part; false when the analysis is not wanted any more.
    bool goesOn(std::size_t event, std::size_t events)
    {
        if (event % 65'536 != 0)
            return true;
        tell(double(event) / double(events + 1));
        return !isCancelled();
    }

private:
    void tell(double share) const
    {
        if (m_tell)
            m_tell(m_from + (m_until - m_from) * share);
    }

    Tell m_tell;
    double m_from = 0, m_until = 0;
};

} // namespace memscape
