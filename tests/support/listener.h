// SPDX-License-Identifier: Apache-2.0
// A sink of a measurement.
#pragma once

#include "kernels/measure/backend.h"

#include <atomic>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace memscape::test {

/// Keeps everything; says stop when it has been asked `stopAfter` times, or when `stop` is set.
class Listener : public RunSink
{
public:
    void progress(int done, int total, const std::string& label) override
    {
        progressed.push_back(done);
        steps.push_back(label);
        lastDone = done;
        lastTotal = total;
    }
    void point(const std::string&, const Point& point) override { points.push_back(point); }
    void note(const std::string&, const std::string& code, const std::string& text) override
    {
        notes.emplace_back(code, text);
    }
    bool isForced() const override { return forced; }
    bool cancelled() const override { return stop || ++m_asked > stopAfter; }

    int count(const std::string& code) const
    {
        int count = 0;
        for (const auto& note : notes)
            count += note.first == code;
        return count;
    }

    std::atomic<bool> stop{false};
    bool forced = false; ///< tries what does not fit
    int stopAfter = std::numeric_limits<int>::max();
    std::vector<int> progressed; ///< of lastTotal, as reported
    std::vector<std::string> steps;
    int lastDone = -1, lastTotal = -1;
    std::vector<Point> points;
    std::vector<std::pair<std::string, std::string>> notes; ///< code and text

private:
    mutable int m_asked = 0;
};

} // namespace memscape::test
