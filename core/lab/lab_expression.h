// SPDX-License-Identifier: Apache-2.0
// The arithmetic of labs: what a text shows and what a check compares is an expression over the student's variant,
// predictions, runs and answers, so that no figure is written down that could be computed.
//     sqrt(stages)      all.peak / best.peak      at(run, "latency", 4 * l1) >= 2 * at(run, "latency", l1 / 2)
// Values carry their dimension (bytes, seconds, operations): adding or comparing bytes with seconds is an error. A
// literal may have a unit of bytes or a share (16KiB, 25%), never one of time or rate: a lab that knows how long
// something takes would grade the machine, not the student.
// Left out: assignments, loops, vectors.
#pragma once

#include "core/base/number.h"

#include <functional>
#include <string>
#include <variant>
#include <vector>

namespace memscape {

/// Exponents of bytes, seconds and floating-point operations: B/s is {1, -1, 0}.
struct LabDimension
{
    double bytes = 0, seconds = 0, operations = 0;
    bool operator==(const LabDimension&) const = default;
    /// A time, a rate or a frequency: what differs from machine to machine.
    bool isTimed() const { return seconds != 0; }
};

LabDimension dimensionOf(Unit unit);

/// A number in SI base units with its dimension, or a word.
struct LabValue
{
    std::variant<double, std::string> value = 0.0;
    LabDimension dimension = {};

    bool isWord() const { return std::holds_alternative<std::string>(value); }
    double number() const; ///< NaN of a word
    const std::string& word() const { return std::get<std::string>(value); }
    /// For people: "48 KiB", "12.6 ns", "0.25", the word itself.
    std::string text(int digits = 3) const;
};

LabValue labNumber(double value, Unit unit = Unit::One);
LabValue labWord(std::string word);

/// What an expression may ask for; each answers with a value or says why there is none.
struct LabScope
{
    /// A name alone: "stages", or of a source: "best.peak".
    std::function<Result<LabValue>(const std::string& name)> name;
    /// A call of a source: at(run, "latency", x), predicted(run, "latency", x), detail(best, "peak.allocated"),
    /// capacity(run, "L1"), parameter(run, "bytes"). Words come as words, the source's name too.
    std::function<Result<LabValue>(const std::string& function, const std::vector<LabValue>& arguments)> call;
};

/// Errors: lab.expression (what is wrong in the text, with its column), lab.dimension, and those of the scope.
/// At most 1000 bytes and 200 values.
Result<LabValue> evaluateLab(std::string_view text, const LabScope& scope);

/// Reads an expression without evaluating it: its errors of syntax, and every name in it.
Result<std::vector<std::string>> namesInLab(std::string_view text);

/// Text whose {{expression}} and {{expression | style}} are replaced by values. Styles: percent, count, decimal (bytes
/// of 10^n), digits N. What has no value yet (a run that was not made) reads "(not measured yet)". Errors: those of
/// evaluateLab(), with the line as place.
Result<std::string> filledLabText(std::string_view text, const LabScope& scope);

/// The expressions of the placeholders of a text. Errors: lab.expression with the line as place.
Result<std::vector<std::string>> placeholdersOf(std::string_view text);

/// `{key}` of texts of parameters replaced by the variant's text of that key. Errors: lab.name.
Result<std::string> filledLabParameter(std::string_view text,
                                       const std::vector<std::pair<std::string, std::string>>& variant);

} // namespace memscape
