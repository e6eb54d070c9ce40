// SPDX-License-Identifier: Apache-2.0
// Recursive descent, from the loosest operator to the tightest; the tree is a list of nodes.
#include "core/expression/expression.h"

#include "core/base/text.h"
#include "core/expression/expression_functions.h"

#include <algorithm>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr std::size_t longestExpression = 1000;
constexpr int deepestExpression = 60;

bool isNameLetter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool isNumberDigit(char c)
{
    return c >= '0' && c <= '9';
}

} // namespace

class ExpressionParser
{
public:
    ExpressionParser(std::string_view text, const ExpressionRules& rules)
        : m_text(text)
        , m_rules(rules)
    { }

    Result<Expression> parsed()
    {
        if (m_text.size() > longestExpression)
            return fail("expression.syntax", fmt::format("an expression of more than {} bytes", longestExpression),
                        "divide it into named values");
        MEMSCAPE_SET(m_made.m_root, either());
        skipSpaces();
        if (m_at != m_text.size())
            return wrong("an operator or the end");
        m_made.m_text = m_text;
        m_made.m_anyMachine = m_rules.anyMachine;
        return std::move(m_made);
    }

private:
    using Kind = Expression::Kind;
    using Index = std::size_t;
    using Rule = Result<Index> (ExpressionParser::*)();

    /// Refuses what would go too deep.
    Result<Index> deeper(Rule rule)
    {
        if (m_depth >= deepestExpression)
            return fail("expression.syntax", fmt::format("an expression of more than {} levels", deepestExpression),
                        "divide it into named values", place());
        ++m_depth;
        auto made = (this->*rule)();
        --m_depth;
        return made;
    }

    /// Operands of one precedence, joined from the left.
    Result<Index> joined(std::initializer_list<std::string_view> operators, Rule next)
    {
        MEMSCAPE_TRY(left, (this->*next)());
        for (;;) {
            const auto* found = std::ranges::find_if(operators, [&](std::string_view one) { return take(one); });
            if (found == operators.end())
                return left;
            MEMSCAPE_TRY(right, (this->*next)());
            left = add(Kind::Function, std::string(*found), {left, right});
        }
    }

    Result<Index> either() { return joined({"or"}, &ExpressionParser::both); }
    Result<Index> both() { return joined({"and"}, &ExpressionParser::negation); }

    Result<Index> negation()
    {
        if (!take("not"))
            return comparison();
        MEMSCAPE_TRY(operand, deeper(&ExpressionParser::negation));
        return add(Kind::Function, "not", {operand});
    }

    Result<Index> comparison()
    {
        MEMSCAPE_TRY(left, sum());
        for (const std::string_view sign : {"<=", ">=", "==", "!=", "<", ">"}) {
            if (!take(sign))
                continue;
            MEMSCAPE_TRY(right, sum());
            return add(Kind::Function, std::string(sign), {left, right});
        }
        return left;
    }

    Result<Index> sum() { return joined({"+", "-"}, &ExpressionParser::product); }
    Result<Index> product() { return joined({"*", "/"}, &ExpressionParser::power); }

    Result<Index> power()
    {
        MEMSCAPE_TRY(base, atom());
        if (!take("^"))
            return base;
        MEMSCAPE_TRY(exponent, deeper(&ExpressionParser::power));
        return add(Kind::Function, "^", {base, exponent});
    }

    Result<Index> atom()
    {
        if (take("(")) {
            MEMSCAPE_TRY(inner, deeper(&ExpressionParser::either));
            if (!take(")"))
                return wrong("\")\"");
            return inner;
        }
        if (take("-")) {
            MEMSCAPE_TRY(operand, deeper(&ExpressionParser::power));
            return add(Kind::Function, "-", {operand});
        }
        skipSpaces();
        const char letter = m_at < m_text.size() ? m_text[m_at] : ' ';
        if (letter == '"')
            return quoted();
        if (isNumberDigit(letter))
            return literal();
        if (isNameLetter(letter))
            return nameOrCall();
        return wrong("a value");
    }

    Result<Index> quoted()
    {
        const auto end = m_text.find('"', ++m_at);
        if (end == std::string_view::npos)
            return wrong("a closing quote");
        std::string word(m_text.substr(m_at, end - m_at));
        m_at = end + 1;
        return addLiteral(wordValue(std::move(word)));
    }

    /// "1.5e-3", "25%", "16KiB".
    Result<Index> literal()
    {
        const std::size_t begin = m_at;
        const auto digitAt = [&](std::size_t at) { return at < m_text.size() && isNumberDigit(m_text[at]); };
        while (digitAt(m_at) || (m_at < m_text.size() && m_text[m_at] == '.'))
            ++m_at;
        const bool hasSign = m_at + 1 < m_text.size() && (m_text[m_at + 1] == '-' || m_text[m_at + 1] == '+');
        if (m_at < m_text.size() && m_text[m_at] == 'e' && digitAt(m_at + 1 + std::size_t(hasSign))) {
            m_at += 1 + std::size_t(hasSign);
            while (digitAt(m_at))
                ++m_at;
        }
        const std::size_t digits = m_at;
        while (m_at < m_text.size() && (isNameLetter(m_text[m_at]) || m_text[m_at] == '%'))
            ++m_at;
        const std::string_view text = m_text.substr(begin, m_at - begin);
        if (digits == m_at || text.back() == '%') {
            const auto number = parseQuantity(text, Unit::One);
            if (!number)
                return fail("expression.syntax", number.error().message, number.error().hint, place());
            return addLiteral(numberValue(*number));
        }
        for (const Unit unit : {Unit::Byte, Unit::Second, Unit::Hertz}) {
            const auto value = parseQuantity(text, unit);
            if (value && m_rules.anyMachine && unit != Unit::Byte)
                return fail("expression.absolute", fmt::format("\"{}\" is an absolute time or rate", text),
                            "machines differ: use ratios, orders, positions of knees or counts", place());
            if (value)
                return addLiteral(numberValue(*value, unit));
        }
        return wrong(m_rules.anyMachine ? "a number, alone or with a unit of bytes"
                                        : "a number with a unit known here");
    }

    Result<Index> nameOrCall()
    {
        std::string name(word());
        while (m_at + 1 < m_text.size() && m_text[m_at] == '.'
               && (isNameLetter(m_text[m_at + 1]) || isNumberDigit(m_text[m_at + 1]))) {
            ++m_at;
            name += "." + word();
        }
        if (take("("))
            return call(name);
        addName(name);
        return add(Kind::Name, name, {});
    }

    Result<Index> call(const std::string& function)
    {
        const auto& sources = m_rules.sourceFunctions;
        const bool asksSource = std::ranges::find(sources, function) != sources.end();
        const auto count = argumentsOfFunction(function);
        if (!asksSource && !count) {
            auto known = namesOfFunctions();
            known.insert(known.end(), sources.begin(), sources.end());
            return fail("expression.syntax", fmt::format("there is no function {}", quotedForMessage(function)),
                        didYouMean(function, known), place());
        }
        std::vector<Index> arguments;
        if (asksSource) { // its first argument is a source's name, not a value
            skipSpaces();
            if (m_at == m_text.size() || !isNameLetter(m_text[m_at]))
                return wrong("the name of a source");
            const std::string source = word();
            addName(source + ".");
            MEMSCAPE_TRY(first, addLiteral(wordValue(source)));
            arguments.push_back(first);
            if (!take(","))
                return wrong("\",\"");
        }
        do {
            MEMSCAPE_TRY(argument, deeper(&ExpressionParser::either));
            arguments.push_back(argument);
        } while (take(","));
        if (!take(")"))
            return wrong("\",\" or \")\"");
        if (count && !asksSource && arguments.size() != *count)
            return fail(
                "expression.syntax",
                fmt::format("{} takes {} value{}, not {}", function, *count, *count == 1 ? "" : "s", arguments.size()),
                {}, place());
        return add(asksSource ? Kind::Source : Kind::Function, function, std::move(arguments));
    }

    Index add(Kind kind, std::string text, std::vector<Index> arguments)
    {
        m_made.m_nodes.push_back({kind, {}, std::move(text), std::move(arguments)});
        return m_made.m_nodes.size() - 1;
    }
    Result<Index> addLiteral(ExpressionValue value)
    {
        m_made.m_nodes.push_back({Kind::Literal, std::move(value)});
        return m_made.m_nodes.size() - 1;
    }
    void addName(const std::string& name)
    {
        if (std::ranges::find(m_made.m_names, name) == m_made.m_names.end())
            m_made.m_names.push_back(name);
    }

    std::string word()
    {
        const std::size_t begin = m_at;
        while (m_at < m_text.size() && (isNameLetter(m_text[m_at]) || isNumberDigit(m_text[m_at])))
            ++m_at;
        return std::string(m_text.substr(begin, m_at - begin));
    }
    void skipSpaces()
    {
        while (m_at < m_text.size() && m_text[m_at] == ' ')
            ++m_at;
    }
    /// An operator that is a word ends where the word ends.
    bool take(std::string_view sign)
    {
        skipSpaces();
        if (!m_text.substr(m_at).starts_with(sign))
            return false;
        const std::size_t end = m_at + sign.size();
        if (isNameLetter(sign[0]) && end < m_text.size()
            && (isNameLetter(m_text[end]) || isNumberDigit(m_text[end]) || m_text[end] == '.'))
            return false;
        m_at = end;
        return true;
    }

    std::string place() const { return fmt::format("column {}", m_at + 1); }
    tl::unexpected<Error> wrong(std::string_view expected) const
    {
        const std::string_view rest = m_text.substr(std::min(m_at, m_text.size()));
        return fail("expression.syntax", fmt::format("in \"{}\": expected {}", quotedForMessage(m_text, 200), expected),
                    rest.starts_with("=")       ? "compare with =="
                        : rest.starts_with("'") ? "write a word in \"double quotes\""
                                                : "",
                    place());
    }

    std::string_view m_text;
    const ExpressionRules& m_rules;
    std::size_t m_at = 0;
    int m_depth = 0;
    Expression m_made;
};

Result<Expression> Expression::parse(std::string_view text, const ExpressionRules& rules)
{
    return ExpressionParser(text, rules).parsed();
}

Result<ExpressionValue> Expression::evaluate(const ExpressionScope& scope) const
{
    return evaluate(m_root, scope);
}

Result<ExpressionValue> Expression::evaluate(std::size_t index, const ExpressionScope& scope) const
{
    const Node& node = m_nodes[index];
    if (node.kind == Kind::Literal)
        return node.literal;
    if (node.kind == Kind::Name)
        return scope.name(node.text);
    std::vector<ExpressionValue> values;
    for (const std::size_t argument : node.arguments) {
        MEMSCAPE_TRY(value, evaluate(argument, scope));
        values.push_back(std::move(value));
    }
    if (node.kind == Kind::Source)
        return scope.call(node.text, values);
    auto value = applied(node.text, values, m_anyMachine);
    if (!value) {
        Error error = value.error();
        error.message = fmt::format("\"{}\" {}", m_text, error.message);
        return fail(std::move(error));
    }
    return value;
}

} // namespace memscape
