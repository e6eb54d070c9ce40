// SPDX-License-Identifier: Apache-2.0
#include "kernels/measure/timed_figures.h"

#include <limits>

namespace memscape {

Figure timeFigure(std::string key, std::string label, const Summary& seconds, bool fromMinimum)
{
    Figure figure{std::move(key), std::move(label), Unit::Second};
    if (seconds.empty()) {
        figure.value = std::numeric_limits<double>::quiet_NaN();
        return figure;
    }
    figure.value = fromMinimum ? seconds.minimum : seconds.median;
    figure.low = seconds.minimum;
    figure.high = seconds.q3;
    return figure;
}

Figure rateFigure(std::string key, std::string label, double amount, const Summary& seconds)
{
    Figure figure{std::move(key), std::move(label), Unit::BytePerSecond};
    if (seconds.empty() || seconds.minimum <= 0) {
        figure.value = std::numeric_limits<double>::quiet_NaN();
        return figure;
    }
    figure.value = amount / seconds.median;
    figure.low = amount / seconds.q3;
    figure.high = amount / seconds.minimum;
    return figure;
}

} // namespace memscape
