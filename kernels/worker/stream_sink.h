// SPDX-License-Identifier: Apache-2.0
// What a measurement says, as protocol lines. At most thirty points and thirty progress lines a second:
// more cannot be seen, and a window that draws each one would fall behind. What was held back is sent with
// the next line or at the end; of a point that came several times only the newest.
#pragma once

#include "kernels/measure/backend.h"
#include "kernels/measure/clock.h"
#include "kernels/worker/line_writer.h"

#include <atomic>
#include <utility>
#include <vector>

namespace memscape {

class StreamSink final : public RunSink
{
public:
    StreamSink(std::int64_t run, LineWriter& out, const std::atomic<bool>& cancelled, const Clock* clock = nullptr,
               bool isForced = false);

    void progress(int done, int total, const std::string& label) override;
    void point(const std::string& sweepKey, const Point& point) override;
    void note(const std::string& level, const std::string& code, const std::string& text) override;
    /// Also when the listener is gone.
    bool cancelled() const override { return m_cancelled || m_out.broken(); }

    bool isForced() const override { return m_isForced; }

    /// Sends what was held back.
    void flush();

private:
    void sendOldest();

    std::int64_t m_run;
    LineWriter& m_out;
    const std::atomic<bool>& m_cancelled;
    SteadyClock m_steady;
    const Clock* m_clock;
    bool m_isForced;
    std::vector<std::pair<std::string, Point>> m_held; ///< oldest first, one per point
    double m_nextPoint = 0, m_nextProgress = 0;
};

} // namespace memscape
