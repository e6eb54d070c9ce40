// SPDX-License-Identifier: Apache-2.0
#include "core/lab/lab_expression.h"

#include "core/base/text.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr std::array<std::string_view, 5> sourceCalls{"at", "predicted", "detail", "capacity", "parameter"};

bool isTrueValue(const LabValue& value)
{
    return !value.isWord() && value.number() != 0;
}

/// Recursive descent; evaluates while it reads, or only reads.
class ExpressionReader
{
public:
    ExpressionReader(std::string_view text, const LabScope* scope)
        : m_text(text)
        , m_scope(scope)
    { }

    Result<LabValue> whole()
    {
        if (m_text.size() > 1000)
            return fail("lab.expression", "an expression of more than 1000 bytes", "divide it into values of the lab");
        MEMSCAPE_TRY(value, comparison());
        skipSpaces();
        if (m_at != m_text.size())
            return wrong("an operator or the end");
        return value;
    }
    const std::vector<std::string>& names() const { return m_names; }

private:
    Result<LabValue> comparison()
    {
        MEMSCAPE_TRY(left, sum());
        for (const std::string_view sign : {"<=", ">=", "==", "!=", "<", ">"}) {
            if (!take(sign))
                continue;
            MEMSCAPE_TRY(right, sum());
            if (!m_scope)
                return labNumber(1);
            if (left.isWord() != right.isWord())
                return fail("lab.dimension", fmt::format("\"{}\" compares a word with a number", m_text));
            if (left.isWord()) {
                if (sign != "==" && sign != "!=")
                    return fail("lab.dimension", fmt::format("\"{}\" orders words", m_text), "use == or !=");
                return labNumber((left.word() == right.word()) == (sign == "=="));
            }
            MEMSCAPE_CHECK(same(left, right));
            const double a = left.number(), b = right.number();
            return labNumber(sign == "<="       ? a <= b
                                 : sign == ">=" ? a >= b
                                 : sign == "==" ? a == b
                                 : sign == "!=" ? a != b
                                 : sign == "<"  ? a < b
                                                : a > b);
        }
        return left;
    }

    Result<LabValue> sum()
    {
        MEMSCAPE_TRY(value, product());
        for (;;) {
            const bool adds = take("+");
            if (!adds && !take("-"))
                return value;
            MEMSCAPE_TRY(other, product());
            MEMSCAPE_CHECK(numbers({value, other}));
            MEMSCAPE_CHECK(same(value, other));
            value.value = value.number() + (adds ? other.number() : -other.number());
        }
    }

    Result<LabValue> product()
    {
        MEMSCAPE_TRY(value, power());
        for (;;) {
            const bool multiplies = take("*");
            if (!multiplies && !take("/"))
                return value;
            MEMSCAPE_TRY(other, power());
            MEMSCAPE_CHECK(numbers({value, other}));
            const double sign = multiplies ? 1 : -1;
            value.value = multiplies ? value.number() * other.number() : value.number() / other.number();
            value.dimension = {value.dimension.bytes + sign * other.dimension.bytes,
                               value.dimension.seconds + sign * other.dimension.seconds,
                               value.dimension.operations + sign * other.dimension.operations};
        }
    }

    Result<LabValue> power()
    {
        MEMSCAPE_TRY(value, atom());
        if (!take("^"))
            return value;
        MEMSCAPE_TRY(other, power());
        MEMSCAPE_CHECK(numbers({value, other}));
        if (m_scope && other.dimension != LabDimension())
            return fail("lab.dimension", fmt::format("\"{}\": an exponent has no unit", m_text));
        const double n = other.number();
        return LabValue{std::pow(value.number(), n),
                        {value.dimension.bytes * n, value.dimension.seconds * n, value.dimension.operations * n}};
    }

    Result<LabValue> atom()
    {
        if (++m_depth > 200)
            return fail("lab.expression", "an expression of more than 200 values");
        skipSpaces();
        if (m_at == m_text.size())
            return wrong("a value");
        const char letter = m_text[m_at];
        if (take("(")) {
            MEMSCAPE_TRY(value, comparison());
            if (!take(")"))
                return wrong("\")\"");
            return value;
        }
        if (take("-")) {
            MEMSCAPE_TRY(value, power());
            MEMSCAPE_CHECK(numbers({value}));
            value.value = -value.number();
            return value;
        }
        if (letter == '"')
            return quoted();
        if (std::isdigit(static_cast<unsigned char>(letter)) != 0)
            return literal();
        if (isLetter(letter))
            return nameOrCall();
        return wrong("a value");
    }

    Result<LabValue> quoted()
    {
        const auto end = m_text.find('"', ++m_at);
        if (end == std::string_view::npos)
            return wrong("a closing quote");
        std::string word(m_text.substr(m_at, end - m_at));
        m_at = end + 1;
        return labWord(std::move(word));
    }

    Result<LabValue> literal()
    {
        const std::size_t begin = m_at;
        while (m_at < m_text.size()
               && (std::isdigit(static_cast<unsigned char>(m_text[m_at])) != 0 || m_text[m_at] == '.'
                   || (m_text[m_at] == 'e' && m_at + 1 < m_text.size()
                       && (std::isdigit(static_cast<unsigned char>(m_text[m_at + 1])) != 0 || m_text[m_at + 1] == '-'))
                   || (m_text[m_at] == '-' && m_text[m_at - 1] == 'e')))
            ++m_at;
        const std::size_t digits = m_at;
        while (m_at < m_text.size() && (isLetter(m_text[m_at]) || m_text[m_at] == '%'))
            ++m_at;
        const std::string_view text = m_text.substr(begin, m_at - begin);
        if (digits == m_at || text.back() == '%') {
            MEMSCAPE_TRY(number, parseQuantity(text, Unit::One));
            return labNumber(number);
        }
        if (const auto bytes = parseQuantity(text, Unit::Byte))
            return labNumber(*bytes, Unit::Byte);
        for (const Unit unit : {Unit::Second, Unit::BytePerSecond, Unit::FlopPerSecond, Unit::Hertz}) {
            if (parseQuantity(text, unit))
                return fail("lab.absolute", fmt::format("\"{}\" is an absolute time or rate", text),
                            "machines differ: use ratios, orders, positions of knees or counts");
        }
        return wrong("a number, alone or with a unit of bytes");
    }

    Result<LabValue> nameOrCall()
    {
        const std::string name = word();
        if (take("("))
            return call(name);
        if (!take("."))
            return named(name);
        skipSpaces();
        if (m_at == m_text.size() || !isLetter(m_text[m_at]))
            return wrong("the figure's key");
        return named(name + "." + word());
    }

    Result<LabValue> named(const std::string& name)
    {
        m_names.push_back(name);
        return m_scope ? m_scope->name(name) : Result<LabValue>(labNumber(1));
    }

    Result<LabValue> call(const std::string& function)
    {
        const bool asksSource = std::find(sourceCalls.begin(), sourceCalls.end(), function) != sourceCalls.end();
        std::vector<LabValue> arguments;
        if (asksSource) { // its first argument is a source's name, not a value
            skipSpaces();
            if (m_at == m_text.size() || !isLetter(m_text[m_at]))
                return wrong("the name of a run or prediction");
            std::string source = word();
            m_names.push_back(source + ".");
            arguments.push_back(labWord(std::move(source)));
            if (!take(","))
                return wrong("\",\"");
        }
        do {
            MEMSCAPE_TRY(argument, comparison());
            arguments.push_back(std::move(argument));
        } while (take(","));
        if (!take(")"))
            return wrong("\",\" or \")\"");
        if (asksSource)
            return m_scope ? m_scope->call(function, arguments) : Result<LabValue>(labNumber(1));
        return ownFunction(function, arguments);
    }

    Result<LabValue> ownFunction(const std::string& function, const std::vector<LabValue>& arguments)
    {
        struct Row
        {
            std::string_view name;
            std::size_t arguments;
        };
        constexpr std::array<Row, 10> rows{Row{"sqrt", 1}, {"log2", 1}, {"floor", 1}, {"ceil", 1}, {"round", 1},
                                           {"abs", 1},     {"min", 2},  {"max", 2},   {"if", 3},   {"count", 1}};
        const auto row = std::find_if(rows.begin(), rows.end(), [&](const Row& one) { return one.name == function; });
        if (row == rows.end()) {
            std::vector<std::string> known(sourceCalls.begin(), sourceCalls.end());
            for (const Row& one : rows)
                known.emplace_back(one.name);
            return fail("lab.expression", fmt::format("there is no function {}", function),
                        didYouMean(function, known));
        }
        if (arguments.size() != row->arguments)
            return fail(
                "lab.expression",
                fmt::format("{} takes {} argument{}", function, row->arguments, row->arguments == 1 ? "" : "s"));
        if (!m_scope)
            return labNumber(1);
        if (function == "if")
            return isTrueValue(arguments[0]) ? arguments[1] : arguments[2];
        for (const LabValue& argument : arguments)
            MEMSCAPE_CHECK(numbers({argument}));
        LabValue value = arguments.front();
        const double x = value.number();
        if (function == "min" || function == "max") {
            MEMSCAPE_CHECK(same(value, arguments[1]));
            value.value = function == "min" ? std::min(x, arguments[1].number()) : std::max(x, arguments[1].number());
            return value;
        }
        if (function == "count") {
            if (value.dimension.isTimed())
                return fail("lab.absolute", fmt::format("\"{}\" makes a plain number of a time or a rate", m_text),
                            "divide it by another time or rate");
            return labNumber(x);
        }
        if (function == "sqrt")
            return LabValue{std::sqrt(x),
                            {value.dimension.bytes / 2, value.dimension.seconds / 2, value.dimension.operations / 2}};
        if (function == "log2") {
            if (value.dimension != LabDimension())
                return fail("lab.dimension", fmt::format("\"{}\": a logarithm is taken of a plain number", m_text));
            return labNumber(std::log2(x));
        }
        value.value = function == "floor" ? std::floor(x)
            : function == "ceil"          ? std::ceil(x)
            : function == "abs"           ? std::abs(x)
                                          : std::round(x);
        return value;
    }

    Result<void> numbers(std::initializer_list<LabValue> values) const
    {
        for (const LabValue& value : values)
            if (m_scope && value.isWord())
                return fail(
                    "lab.dimension",
                    fmt::format("\"{}\" computes with the word \"{}\"", m_text, quotedForMessage(value.word())));
        return {};
    }
    Result<void> same(const LabValue& a, const LabValue& b) const
    {
        if (m_scope && a.dimension != b.dimension)
            return fail("lab.dimension", fmt::format("\"{}\" mixes units: {} and {}", m_text, a.text(), b.text()));
        return {};
    }

    static bool isLetter(char letter) { return std::isalpha(static_cast<unsigned char>(letter)) != 0 || letter == '_'; }
    std::string word()
    {
        const std::size_t begin = m_at;
        while (m_at < m_text.size()
               && (isLetter(m_text[m_at]) || std::isdigit(static_cast<unsigned char>(m_text[m_at])) != 0))
            ++m_at;
        return std::string(m_text.substr(begin, m_at - begin));
    }
    void skipSpaces()
    {
        while (m_at < m_text.size() && m_text[m_at] == ' ')
            ++m_at;
    }
    bool take(std::string_view sign)
    {
        skipSpaces();
        if (!m_text.substr(m_at).starts_with(sign))
            return false;
        m_at += sign.size();
        return true;
    }
    tl::unexpected<Error> wrong(std::string_view expected) const
    {
        return fail("lab.expression", fmt::format("in \"{}\": expected {}", quotedForMessage(m_text, 200), expected),
                    {}, fmt::format("column {}", m_at + 1));
    }

    std::string_view m_text;
    const LabScope* m_scope;
    std::size_t m_at = 0;
    int m_depth = 0;
    std::vector<std::string> m_names;
};

Result<std::string> styledText(const LabValue& value, std::string_view style)
{
    if (value.isWord())
        return value.word();
    const double x = value.number();
    if (style.empty())
        return value.text();
    if (style == "percent")
        return percentText(x);
    if (style == "count")
        return countText(x);
    if (style == "decimal")
        return quantityText(x, Unit::Byte, ByteStyle::Decimal);
    if (style.starts_with("digits ") && style.size() == 8 && style[7] >= '1' && style[7] <= '9')
        return value.text(style[7] - '0');
    return fail("lab.expression", fmt::format("there is no style \"{}\"", quotedForMessage(style)),
                "percent, count, decimal, digits 1 to digits 9");
}

/// Calls replace(expression, style) for each placeholder, and puts its answer there.
Result<std::string> replaced(std::string_view text,
                             const std::function<Result<std::string>(std::string_view, std::string_view)>& replace)
{
    std::string all;
    std::size_t at = 0;
    for (;;) {
        const auto begin = text.find("{{", at);
        all += text.substr(at, begin - at);
        if (begin == std::string_view::npos)
            return all;
        const auto line = 1 + std::count(text.begin(), text.begin() + std::ptrdiff_t(begin), '\n');
        const auto end = text.find("}}", begin);
        if (end == std::string_view::npos)
            return fail("lab.expression", "a placeholder that begins with {{ has no }}", {},
                        fmt::format("line {}", line));
        const std::string_view inside = text.substr(begin + 2, end - begin - 2);
        const auto bar = inside.rfind('|');
        const bool styled = bar != std::string_view::npos;
        auto put = replace(trimmed(styled ? inside.substr(0, bar) : inside),
                           styled ? trimmed(inside.substr(bar + 1)) : std::string_view());
        if (!put) {
            Error error = put.error();
            error.place = fmt::format("line {}{}{}", line, error.place.empty() ? "" : ", ", error.place);
            return fail(std::move(error));
        }
        all += *put;
        at = end + 2;
    }
}

} // namespace

LabDimension dimensionOf(Unit unit)
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

double LabValue::number() const
{
    return isWord() ? nan : std::get<double>(value);
}

std::string LabValue::text(int digits) const
{
    if (isWord())
        return word();
    for (const Unit unit : {Unit::Byte, Unit::Second, Unit::BytePerSecond, Unit::FlopPerSecond, Unit::Hertz})
        if (dimensionOf(unit) == dimension)
            return quantityText(number(), unit, ByteStyle::Binary, digits);
    return quantityText(number(), Unit::One, ByteStyle::Binary, digits);
}

LabValue labNumber(double value, Unit unit)
{
    return {value, dimensionOf(unit)};
}

LabValue labWord(std::string word)
{
    return {std::move(word), {}};
}

Result<LabValue> evaluateLab(std::string_view text, const LabScope& scope)
{
    return ExpressionReader(text, &scope).whole();
}

Result<std::vector<std::string>> namesInLab(std::string_view text)
{
    ExpressionReader reader(text, nullptr);
    MEMSCAPE_CHECK(reader.whole());
    return reader.names();
}

Result<std::string> filledLabText(std::string_view text, const LabScope& scope)
{
    return replaced(text, [&](std::string_view expression, std::string_view style) -> Result<std::string> {
        const auto value = evaluateLab(expression, scope);
        if (!value && value.error().code == "lab.missing")
            return std::string("(not measured yet)");
        if (!value)
            return tl::unexpected(value.error());
        return styledText(*value, style);
    });
}

Result<std::vector<std::string>> placeholdersOf(std::string_view text)
{
    std::vector<std::string> all;
    const auto read = [&](std::string_view expression, std::string_view style) -> Result<std::string> {
        MEMSCAPE_CHECK(namesInLab(expression));
        MEMSCAPE_CHECK(styledText(labNumber(1), style));
        all.emplace_back(expression);
        return std::string();
    };
    if (const auto filled = replaced(text, read); !filled)
        return tl::unexpected(filled.error());
    return all;
}

Result<std::string> filledLabParameter(std::string_view text,
                                       const std::vector<std::pair<std::string, std::string>>& variant)
{
    std::string all;
    for (std::size_t at = 0; at < text.size();) {
        const auto begin = text.find('{', at);
        all += text.substr(at, begin - at);
        if (begin == std::string_view::npos)
            break;
        const auto end = text.find('}', begin);
        const std::string_view key =
            end == std::string_view::npos ? text.substr(begin + 1) : text.substr(begin + 1, end - begin - 1);
        const auto found =
            std::find_if(variant.begin(), variant.end(), [&](const auto& one) { return one.first == key; });
        if (end == std::string_view::npos || found == variant.end()) {
            std::vector<std::string> known;
            for (const auto& one : variant)
                known.push_back(one.first);
            return fail("lab.name", fmt::format("\"{{{}}}\" is no key of the variants", quotedForMessage(key)),
                        known.empty() ? "add it to each of \"variants\"" : didYouMean(key, known));
        }
        all += found->second;
        at = end + 1;
    }
    return all;
}

} // namespace memscape
