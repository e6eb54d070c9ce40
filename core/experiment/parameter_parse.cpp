// SPDX-License-Identifier: Apache-2.0
// Text to values: one value, a sweep, the assignments of a command line. What is wrong is said with the
// parameter as its place and what would be allowed.
//
// A comma separates the values of a sweep, and in half of the world the fraction of a number. "1,5 GiB" can only be
// one number; "0,1" of a parameter that takes fractions may be either, and is refused with both ways to write it.
//
// Where the choices are versions (2.1, 2.14), any version may be given: what changed last before it holds for it.
#include "core/base/text.h"
#include "core/experiment/parameter_text.h"

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

namespace memscape {

namespace {

/// The error with the parameter's key as its place.
Error placed(Error error, const std::string& key)
{
    if (error.place.empty())
        error.place = key;
    return error;
}

bool isNumeric(const ParameterSpec& spec)
{
    return spec.kind == ParameterKind::Integer || spec.kind == ParameterKind::Real;
}

/// The longest text that the spec allows, in bytes.
std::size_t longestText(const ParameterSpec& spec)
{
    return spec.maximum > 0 ? static_cast<std::size_t>(spec.maximum) : textLimit;
}

std::string rangeText(const ParameterSpec& spec)
{
    if (spec.kind == ParameterKind::Text)
        return fmt::format("a text of {} to {} bytes", numberText(spec.minimum), longestText(spec));
    return numbersText(spec);
}

Result<ParameterValue> checkedNumber(const ParameterSpec& spec, double value)
{
    if (!std::isfinite(value) || value < spec.minimum || value > spec.maximum) {
        return fail("parameter.range", fmt::format("{} is out of range", valueLabel(spec, value)),
                    "allowed: " + rangeText(spec), spec.key);
    }
    if (spec.kind == ParameterKind::Integer && value != std::floor(value)) {
        return fail("parameter.type", fmt::format("expected a whole number, found {}", numberText(value)),
                    "allowed: " + rangeText(spec), spec.key);
    }
    return ParameterValue(value);
}

bool isCounted(const ParameterSpec& spec, std::string_view text)
{
    return !spec.counted.empty() && text.starts_with(spec.counted + ":");
}

/// `every:4`
Result<ParameterValue> parseCounted(const ParameterSpec& spec, std::string_view text)
{
    constexpr double most = 65536;
    const auto count = parseNumber(text.substr(spec.counted.size() + 1));
    if (!count || *count < 1 || *count > most || *count != std::floor(*count)) {
        return fail("parameter.choice",
                    fmt::format("\"{}\": after {}: comes a whole number", quotedForMessage(text), spec.counted),
                    fmt::format("allowed: {0}:1 to {0}:{1}", spec.counted, most), spec.key);
    }
    return ParameterValue(fmt::format("{}:{}", spec.counted, *count));
}

/// Major and minor of `2.14` or `2.14.1`; none where the text is something else.
std::optional<std::pair<int, int>> parseVersion(std::string_view text)
{
    std::vector<int> numbers;
    for (std::size_t begin = 0; begin <= text.size() && numbers.size() < 4;) {
        const std::size_t end = std::min(text.find('.', begin), text.size());
        int number = 0;
        const auto [last, error] = std::from_chars(text.data() + begin, text.data() + end, number);
        if (error != std::errc() || last != text.data() + end || number < 0)
            return std::nullopt;
        numbers.push_back(number);
        begin = end + 1;
    }
    if (numbers.size() < 2 || numbers.size() > 3)
        return std::nullopt;
    return std::pair(numbers[0], numbers[1]);
}

/// The newest choice that is no newer than `text`. None where not all choices are versions, or all are newer.
std::optional<std::string> versionChoice(const ParameterSpec& spec, std::string_view text)
{
    const auto asked = parseVersion(text);
    std::optional<std::pair<int, int>> newest;
    std::optional<std::string> key;
    for (const ChoiceValue& choice : spec.choices) {
        const auto version = parseVersion(choice.key);
        if (!version)
            return std::nullopt;
        if (asked && *version <= *asked && (!newest || *newest < *version)) {
            newest = version;
            key = choice.key;
        }
    }
    return key;
}

Result<ParameterValue> parseChoice(const ParameterSpec& spec, std::string_view text)
{
    if (isCounted(spec, text))
        return parseCounted(spec, text);
    std::vector<std::string> keys;
    for (const ChoiceValue& choice : spec.choices) {
        if (choice.key == text)
            return ParameterValue(choice.key);
        keys.push_back(choice.key);
    }
    if (auto version = versionChoice(spec, text))
        return ParameterValue(*std::move(version));
    return fail("parameter.choice", fmt::format("\"{}\" is not a choice", quotedForMessage(text)),
                didYouMean(text, keys), spec.key);
}

Result<ParameterValue> parseFlag(const ParameterSpec& spec, std::string_view text)
{
    if (text == "true" || text == "yes" || text == "on" || text == "1")
        return ParameterValue(true);
    if (text == "false" || text == "no" || text == "off" || text == "0")
        return ParameterValue(false);
    return fail("parameter.type", fmt::format("expected true or false, found \"{}\"", quotedForMessage(text)), {},
                spec.key);
}

Result<ParameterValue> parseText(const ParameterSpec& spec, std::string_view text)
{
    if (text.size() > longestText(spec) || static_cast<double>(text.size()) < spec.minimum) {
        return fail("parameter.range",
                    text.empty() ? std::string("is empty")
                                 : fmt::format("a text of {} bytes is out of range", text.size()),
                    "allowed: " + rangeText(spec), spec.key);
    }
    if (!validUtf8(text))
        return fail("parameter.type", "the text is not UTF-8", {}, spec.key);
    const bool control =
        std::any_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
    if (control)
        return fail("parameter.type", fmt::format("\"{}\" holds a control character", quotedForMessage(text)),
                    "write it on one line, without tabs", spec.key);
    return ParameterValue(std::string(text));
}

/// Two groups of digits around one comma, with whatever follows: "1,5 GiB".
struct CommaNumber
{
    std::string_view whole, fraction, unit;
};
std::optional<CommaNumber> commaNumber(std::string_view text)
{
    constexpr std::string_view digits = "0123456789";
    const std::size_t comma = text.find(',');
    if (comma == 0 || comma == std::string_view::npos || text.find_first_not_of(digits) != comma)
        return std::nullopt;
    const std::string_view behind = text.substr(comma + 1);
    const std::size_t end = std::min(behind.find_first_not_of(digits), behind.size());
    if (end == 0)
        return std::nullopt;
    return CommaNumber{text.substr(0, comma), behind.substr(0, end), trimmed(behind.substr(end))};
}

/// "1.5 GiB" of "1,5 GiB"; nothing when it is no such number.
std::optional<std::string> withDecimalPoint(std::string_view text)
{
    constexpr std::size_t longest = 3; // digits of a fraction that a person writes before a unit
    const auto parts = commaNumber(text);
    const bool isUnit =
        parts && !parts->unit.empty() && parts->unit.find_first_of(",:.0123456789") == std::string_view::npos;
    if (!isUnit || parts->fraction.size() > longest)
        return std::nullopt;
    return fmt::format("{}.{} {}", parts->whole, parts->fraction, parts->unit);
}

tl::unexpected<Error> sweepSyntax(const ParameterSpec& spec, std::string_view text, std::string why)
{
    return fail("sweep.syntax", fmt::format("\"{}\": {}", quotedForMessage(text), why),
                "a sweep is written 1:128:x2, 0:64:8 or 1,2,5", spec.key);
}

Result<std::vector<ParameterValue>> sweepList(const ParameterSpec& spec, std::string_view text)
{
    std::vector<ParameterValue> values;
    for (const std::string& part : split(text, ',')) {
        if (trimmed(part).empty())
            return sweepSyntax(spec, text, "a value is empty");
        if (values.size() == sweepLimit)
            return fail("sweep.limit", fmt::format("more than {} points", sweepLimit), "take fewer points", spec.key);
        MEMSCAPE_TRY(value, parseValue(spec, part));
        values.push_back(value);
    }
    return values;
}

/// `"a","b"`: a comma or an equals sign inside the quotes belongs to the text.
Result<std::vector<ParameterValue>> sweepTexts(const ParameterSpec& spec, std::string_view text)
{
    const auto wrong = [&] {
        return fail("sweep.syntax",
                    fmt::format("\"{}\": each text needs its own double quotes", quotedForMessage(text)),
                    "several texts are written \"one\",\"two\"", spec.key);
    };
    std::vector<ParameterValue> values;
    for (std::string_view rest = text;;) {
        const std::size_t end = rest.starts_with('"') ? rest.find('"', 1) : std::string_view::npos;
        if (end == std::string_view::npos)
            return wrong();
        if (values.size() == sweepLimit)
            return fail("sweep.limit", fmt::format("more than {} points", sweepLimit), "take fewer points", spec.key);
        MEMSCAPE_TRY(value, parseValue(spec, rest.substr(1, end - 1)));
        values.push_back(value);
        rest = trimmed(rest.substr(end + 1));
        if (rest.empty())
            return values;
        if (!rest.starts_with(','))
            return wrong();
        rest = trimmed(rest.substr(1));
    }
}

/// To two digits, away from zero; `value` is above 0.
double roundedUp(double value)
{
    const double digit = std::pow(10.0, std::floor(std::log10(value)) - 1);
    return std::ceil(value / digit) * digit;
}

/// first:last:step, or first:last:xFACTOR.
struct SweepRange
{
    double first = 0, last = 0, step = 1;
    bool isGeometric = false;

    template <typename Number> Number at(Number i) const
    {
        const Number by = step;
        return isGeometric ? first * std::pow(by, i) : first + i * by;
    }
    double at(std::size_t i) const
    {
        const double value = at(double(i));
        return std::isfinite(value) ? value
                                    : double(at(static_cast<long double>(i))); // a product on the way overflowed
    }
    /// How often the step fits between the ends, a fraction included; wider than a double, which overflows.
    long double steps() const
    {
        if (first == last)
            return 0;
        const long double from = first, to = last;
        return isGeometric ? std::log(to / from) / std::log(static_cast<long double>(step)) : (to - from) / step;
    }
    /// A step with which the limit of points is kept, as text that parses.
    std::string largerStep() const
    {
        const long double from = first, to = last, most = sweepLimit - 1;
        if (isGeometric)
            return "x" + numberText(1 + roundedUp(double(std::pow(to / from, 1 / most) - 1)));
        return numberText(roundedUp(double((to - from) / most)));
    }
};

Result<SweepRange> parseRange(const ParameterSpec& spec, std::string_view text)
{
    const auto parts = split(text, ':');
    if (parts.size() < 2 || parts.size() > 3)
        return sweepSyntax(spec, text, "a range has the form first:last:step");
    if (!isNumeric(spec))
        return sweepSyntax(spec, text, "a range needs numbers; list the choices with commas");
    MEMSCAPE_TRY(first, parseValue(spec, parts[0]));
    MEMSCAPE_TRY(last, parseValue(spec, parts[1]));
    SweepRange range{std::get<double>(first), std::get<double>(last)};
    if (range.last < range.first)
        return sweepSyntax(spec, text, "the last value is below the first");
    std::string step = parts.size() == 3 ? std::string(trimmed(parts[2])) : "1";
    range.isGeometric = step.starts_with('x') || step.starts_with('X');
    if (range.isGeometric)
        step.erase(0, 1);
    const auto size = range.isGeometric ? parseNumber(step) : parseQuantity(step, spec.unit);
    if (!size)
        return sweepSyntax(spec, text, "the step is not a number");
    if (range.isGeometric ? *size <= 1 : *size <= 0)
        return sweepSyntax(spec, text, range.isGeometric ? "the factor must be above 1" : "the step must be above 0");
    if (range.isGeometric && range.first <= 0)
        return sweepSyntax(spec, text, "a range by a factor starts above 0");
    range.step = *size;
    return range;
}

/// Steps are counted before the first one is made: one that is tiny beside the values would go on for ever.
Result<std::vector<ParameterValue>> sweepRange(const ParameterSpec& spec, std::string_view text)
{
    constexpr long double slack = 1e-9L; // of a step: the end belongs to the sweep when one lands on it up to rounding
    MEMSCAPE_TRY(range, parseRange(spec, text));
    const long double steps = std::floor(range.steps() + slack);
    if (!(steps < static_cast<long double>(sweepLimit)))
        return fail("sweep.limit", fmt::format("\"{}\": more than {} points", quotedForMessage(text), sweepLimit),
                    fmt::format("take a larger step, {} or more", range.largerStep()), spec.key);
    std::vector<ParameterValue> values;
    for (std::size_t i = 0; i <= static_cast<std::size_t>(steps); ++i) {
        double value = range.at(i);
        if (i > 0 && value == range.at(i - 1))
            return fail("sweep.step",
                        fmt::format("\"{}\": the step does not move {}", quotedForMessage(text), numberText(value)),
                        "take a larger step, or list the values: 1,2,5", spec.key);
        if (spec.kind == ParameterKind::Integer)
            value = std::round(value);
        const ParameterValue next = std::min(value, range.last);
        if (values.empty() || values.back() != next) // 1:4:x1.1 rounds to the same integer twice
            values.push_back(next);
    }
    return values;
}

} // namespace

Result<ParameterValue> parseValue(const ParameterSpec& spec, std::string_view text)
{
    text = trimmed(text);
    switch (spec.kind) {
    case ParameterKind::Choice: return parseChoice(spec, text);
    case ParameterKind::Flag: return parseFlag(spec, text);
    case ParameterKind::Text: return parseText(spec, text);
    case ParameterKind::Integer:
    case ParameterKind::Real: break;
    }
    for (const ChoiceValue& word : spec.choices) {
        if (text == word.label)
            text = word.key;
    }
    auto number = parseQuantity(text, spec.unit);
    if (!number) {
        Error error = placed(number.error(), spec.key);
        error.code = error.code == "number.range" ? "parameter.range" : "parameter.type";
        if (error.hint.empty())
            error.hint = "allowed: " + rangeText(spec);
        return fail(std::move(error));
    }
    return checkedNumber(spec, *number);
}

Result<std::vector<ParameterValue>> parseSweep(const ParameterSpec& spec, std::string_view text)
{
    text = trimmed(text);
    if (spec.kind == ParameterKind::Text) {
        if (text.starts_with('"'))
            return sweepTexts(spec, text);
        MEMSCAPE_TRY(value, parseValue(spec, text));
        return std::vector<ParameterValue>{value};
    }
    if (const auto number = isNumeric(spec) ? withDecimalPoint(text) : std::nullopt) {
        MEMSCAPE_TRY(value, parseValue(spec, *number));
        return std::vector<ParameterValue>{value};
    }
    if (const auto parts = commaNumber(text); parts && parts->unit.empty() && spec.kind == ParameterKind::Real)
        return fail("sweep.syntax", fmt::format("\"{}\" may be one number or two", text),
                    fmt::format("write {0}.{1} for the number, {0}, {1} with a blank for a sweep over both",
                                parts->whole, parts->fraction),
                    spec.key);
    if (text.find(',') != std::string_view::npos)
        return sweepList(spec, text);
    if (text.find(':') != std::string_view::npos && !isCounted(spec, text))
        return sweepRange(spec, text);
    MEMSCAPE_TRY(value, parseValue(spec, text));
    return std::vector<ParameterValue>{value};
}

bool isNamed(const ParameterSpec& spec, const ParameterValue& value)
{
    const auto standard = parseValue(spec, spec.standard);
    return spec.group.empty() || !standard || *standard != value;
}

Result<Parameters> resolve(const Schema& schema, const std::vector<std::pair<std::string, std::string>>& assignments)
{
    Parameters parameters;
    for (const ParameterSpec& spec : schema) {
        auto standard = parseValue(spec, spec.standard);
        assert(standard && "the default of a parameter must be valid");
        parameters.set(spec.key, *standard);
    }
    std::vector<std::string> seen;
    for (const auto& [key, text] : assignments) {
        const ParameterSpec* spec = findParameter(schema, key);
        if (!spec) {
            return fail("parameter.unknown", fmt::format("no parameter \"{}\"", quotedForMessage(key)),
                        didYouMean(key, keysOf(schema)), quotedForMessage(key));
        }
        if (std::find(seen.begin(), seen.end(), key) != seen.end())
            return fail("parameter.twice", "is given twice", "give it once", key);
        seen.push_back(key);
        MEMSCAPE_TRY(values, parseSweep(*spec, text));
        // 8192:8192 is a sweep of one point; 8192 is a value beside which the experiment has its own axis.
        const bool isRange = std::holds_alternative<double>(values.front()) && text.find(':') != std::string::npos;
        if (values.size() == 1 && !isRange) {
            parameters.set(key, values.front());
        } else if (parameters.sweep()) {
            return fail("sweep.several",
                        fmt::format("only one parameter may be swept, and {} already is", parameters.sweep()->key),
                        "run the command once per value of the other", key);
        } else {
            parameters.setSweep(Sweep{key, values});
        }
    }
    return parameters;
}

Result<Parameters> resolve(const Schema& schema, const std::vector<std::string>& assignments)
{
    std::vector<std::pair<std::string, std::string>> pairs;
    for (const std::string& assignment : assignments) {
        const auto equals = assignment.find('=');
        if (equals == std::string::npos || equals == 0) {
            return fail("parameter.syntax",
                        fmt::format("expected KEY=VALUE, found \"{}\"", quotedForMessage(assignment)),
                        "parameters: " + join(keysOf(schema), ", "));
        }
        pairs.emplace_back(assignment.substr(0, equals), assignment.substr(equals + 1));
    }
    return resolve(schema, pairs);
}

} // namespace memscape
