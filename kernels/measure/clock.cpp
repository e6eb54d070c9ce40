// SPDX-License-Identifier: Apache-2.0
#include "kernels/measure/clock.h"

#include <chrono>

namespace memscape {

double SteadyClock::now() const
{
    using namespace std::chrono;
    return duration<double>(steady_clock::now().time_since_epoch()).count();
}

} // namespace memscape
