// SPDX-License-Identifier: Apache-2.0
// A running measurement as a terminal or a program sees it: a progress bar when standard error is a
// terminal, notes as lines, or JSON lines on standard output. Keeps every point, so that a run that
// is stopped or fails leaves what it had.
#pragma once

#include "kernels/measure/backend.h"

#include <chrono>

namespace memscape::cli {

/// Ctrl+C (or SIGTERM) once: cancelled() becomes true. Again: the program ends, as it would have.
class InterruptGuard
{
public:
    InterruptGuard();
    ~InterruptGuard();
    InterruptGuard(const InterruptGuard&) = delete;
    InterruptGuard& operator=(const InterruptGuard&) = delete;
    static bool interrupted();
};

class ConsoleSink : public RunSink
{
public:
    /// With `events`, JSON lines go to standard output and nothing to standard error.
    explicit ConsoleSink(bool events = false);
    ~ConsoleSink() override;
    ConsoleSink(const ConsoleSink&) = delete;
    ConsoleSink& operator=(const ConsoleSink&) = delete;

    void progress(int done, int total, const std::string& label) override;
    void point(const std::string& sweepKey, const Point& point) override;
    void note(const std::string& level, const std::string& code, const std::string& text) override;
    bool cancelled() const override; ///< interrupted, or the reader of the events is gone

    const std::vector<Point>& points() const { return m_points; }
    void clearBar();

private:
    using Clock = std::chrono::steady_clock;

    bool m_events;
    bool m_bar; ///< standard error is a terminal
    bool m_drawn = false;
    Clock::time_point m_lastDrawn;
    std::vector<Point> m_points;
};

} // namespace memscape::cli
