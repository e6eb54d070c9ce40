// SPDX-License-Identifier: Apache-2.0
// How long our own work takes, for figures such as `solver_time`. The one clock of core: no other
// figure of a prediction depends on it, so the same input keeps giving the same answer but for that
// one.
#pragma once

#include <chrono>

namespace memscape {

class Stopwatch
{
public:
    double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - m_start).count(); }

private:
    std::chrono::steady_clock::time_point m_start = std::chrono::steady_clock::now();
};

} // namespace memscape
