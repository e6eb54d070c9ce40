// SPDX-License-Identifier: Apache-2.0
// What an expression computes with: a number with its dimension, or a word.
#pragma once

#include "core/base/number.h"

#include <string>
#include <variant>

namespace memscape {

/// Exponents of bytes, seconds and floating-point operations: B/s is {1, -1, 0}.
struct Dimension
{
    double bytes = 0, seconds = 0, operations = 0;
    bool operator==(const Dimension&) const = default;
    bool isPlain() const { return *this == Dimension(); }
    /// A time, a rate or a frequency: what differs from machine to machine.
    bool isTimed() const { return seconds != 0; }
};

Dimension dimensionOf(Unit unit);

/// A number in SI base units with its dimension (NaN where it is not known), or a word.
struct ExpressionValue
{
    std::variant<double, std::string> value = 0.0;
    Dimension dimension = {};

    bool isWord() const { return std::holds_alternative<std::string>(value); }
    bool isTrue() const { return !isWord() && number() != 0; }
    double number() const; ///< NaN of a word
    const std::string& word() const { return std::get<std::string>(value); }
    /// That of documents with this dimension; One where there is none (bytes²).
    Unit unit() const;
    /// For people: "48 KiB", "12.6 ns", "0.25", the word itself.
    std::string text(int digits = 3) const;
};

ExpressionValue numberValue(double value, Unit unit = Unit::One);
ExpressionValue wordValue(std::string word);

} // namespace memscape
