// SPDX-License-Identifier: Apache-2.0
// A number that can be asked why: formula, the user's own values in it, where each comes from, and
// what is left out. Figures of predictions carry a Why; figures of measurements carry a band.
#pragma once

#include "core/base/number.h"

#include <initializer_list>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace memscape {

/// One value inside a formula: symbol "B_dram", 4.3e12 B/s, "DRAM copy bandwidth", and its source.
struct Term
{
    std::string symbol;
    double value = 0;
    Unit unit = Unit::One;
    std::string meaning;
    std::string source;
};

struct Why
{
    std::string formula; ///< "bandwidth = B_dram × used / fetched"
    std::string with;    ///< "= 4.30 TB/s × 128 B / 512 B"
    std::vector<Term> terms;
    std::string source;             ///< the paper, manual or calibration that the formula comes from
    std::vector<std::string> omits; ///< what the model leaves out, a sentence each
};

/// A named value. Most are numbers in SI base units; a few are words (the level that holds a working set). `low`/`high`
/// is the measured band [minimum, third quartile] where there is one.
struct Figure
{
    std::string key;
    std::string label;
    Unit unit = Unit::One;
    std::variant<double, std::string> value = 0.0;
    std::optional<double> low = {};
    std::optional<double> high = {};
    std::optional<Why> why = {};
    /// It follows from what was asked (operations, sectors, lines): a measurement repeats it and measures nothing, so
    /// the two are not compared.
    bool isCounted = false;

    /// It counts floating-point operations, shown with three digits and a prefix: keys flops and …_flops.
    bool countsOperations() const;
    bool isNumber() const { return std::holds_alternative<double>(value); }
    /// The number, NaN for a word.
    double number() const;
    /// For people, with unit.
    std::string text(ByteStyle style = ByteStyle::Binary) const;
    /// "1.99 to 2.67 s" of its band; empty where it has none.
    std::string rangeText(ByteStyle style = ByteStyle::Binary) const;
};

/// A value and how it comes about.
Figure figureOf(std::string key, std::string label, Unit unit, std::variant<double, std::string> value, Why why);

using Figures = std::vector<Figure>; // in display order

/// Marks those that follow from what was asked.
void markCounted(Figures& figures, std::initializer_list<std::string_view> keys);

const Figure* findFigure(const Figures& figures, std::string_view key);

} // namespace memscape
