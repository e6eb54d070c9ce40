// SPDX-License-Identifier: Apache-2.0
// Time as a value that a test can replace. Everything in kernels/measure asks a Clock, so that the
// stopping rule and the grades are tested in microseconds with a clock that does not tick by itself.
#pragma once

namespace memscape {

class Clock
{
public:
    virtual ~Clock() = default;
    /// Seconds since some fixed moment; never runs backwards.
    virtual double now() const = 0;
};

/// CLOCK_MONOTONIC through std::chrono: about 20 ns a call, not stepped by NTP.
class SteadyClock : public Clock
{
public:
    double now() const override;
};

/// Stands still until advance() is called.
class FakeClock : public Clock
{
public:
    double now() const override { return m_now; }
    void advance(double seconds) { m_now += seconds; }

private:
    double m_now = 0;
};

} // namespace memscape
