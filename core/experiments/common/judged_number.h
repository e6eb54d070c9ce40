// SPDX-License-Identifier: Apache-2.0
// The number that a textbook's claim is judged by: the measured one where there is one, else the
// predicted one. A claim says which it was.
#pragma once

#include "core/experiment/outcome.h"

#include <cmath>

namespace memscape {

struct JudgedNumber
{
    double value = 0;
    bool isMeasured = false;

    const char* side() const { return isMeasured ? "measured" : "predicted"; }
};

inline JudgedNumber judgedNumber(const Measurement& measured, std::string_view key, double predicted)
{
    const Figure* figure = findFigure(measured.figures, key);
    if (figure && figure->isNumber() && std::isfinite(figure->number()))
        return {figure->number(), true};
    return {predicted, false};
}

} // namespace memscape
