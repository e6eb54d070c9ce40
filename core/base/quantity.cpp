// SPDX-License-Identifier: Apache-2.0
#include "core/base/quantity.h"

#include <limits>

namespace memscape {

double Figure::number() const
{
    const double* number = std::get_if<double>(&value);
    return number ? *number : std::numeric_limits<double>::quiet_NaN();
}

std::string Figure::text(ByteStyle style) const
{
    if (const auto* word = std::get_if<std::string>(&value))
        return *word;
    return quantityText(number(), unit, style);
}

const Figure* findFigure(const Figures& figures, std::string_view key)
{
    for (const Figure& figure : figures) {
        if (figure.key == key)
            return &figure;
    }
    return nullptr;
}

} // namespace memscape
