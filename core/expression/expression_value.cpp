// SPDX-License-Identifier: Apache-2.0
#include "core/expression/expression_value.h"

namespace memscape {

Dimension dimensionOf(Unit unit)
{
    switch (unit) {
    case Unit::Byte: return {1, 0, 0};
    case Unit::Second: return {0, 1, 0};
    case Unit::BytePerSecond: return {1, -1, 0};
    case Unit::FlopPerSecond: return {0, -1, 1};
    case Unit::Hertz: return {0, -1, 0};
    case Unit::One: break;
    }
    return {};
}

double ExpressionValue::number() const
{
    return isWord() ? nan : std::get<double>(value);
}

Unit ExpressionValue::unit() const
{
    for (const Unit unit : {Unit::Byte, Unit::Second, Unit::BytePerSecond, Unit::FlopPerSecond, Unit::Hertz})
        if (dimensionOf(unit) == dimension)
            return unit;
    return Unit::One;
}

std::string ExpressionValue::text(int digits) const
{
    return isWord() ? word() : quantityText(number(), unit(), ByteStyle::Binary, digits);
}

ExpressionValue numberValue(double value, Unit unit)
{
    return {value, dimensionOf(unit)};
}

ExpressionValue wordValue(std::string word)
{
    return {std::move(word), {}};
}

} // namespace memscape
