// SPDX-License-Identifier: Apache-2.0
#include "core/claims/claim_expression.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr std::size_t longestExpression = 1000;
constexpr int deepestExpression = 60;

const std::map<std::string, std::size_t, std::less<>>& argumentCounts()
{
    static const std::map<std::string, std::size_t, std::less<>> counts{{"abs", 1},  {"sqrt", 1},  {"log2", 1},
                                                                        {"ceil", 1}, {"floor", 1}, {"min", 2},
                                                                        {"max", 2},  {"near", 3},  {"within", 3}};
    return counts;
}

bool isNameStart(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool isDigit(char c)
{
    return c >= '0' && c <= '9';
}

Unit unitOf(const std::string& operation, const ClaimValue& a, const ClaimValue& b)
{
    if (operation == "*")
        return a.unit == Unit::One ? b.unit : b.unit == Unit::One ? a.unit : Unit::One;
    if (operation == "/")
        return b.unit == Unit::One ? a.unit : Unit::One;
    const bool keeps = operation == "+" || operation == "-" || operation == "min" || operation == "max";
    return keeps && a.unit == b.unit ? a.unit : Unit::One;
}

double calculated(const std::string& operation, const std::vector<ClaimValue>& values)
{
    const double a = values[0].number, b = values.size() > 1 ? values[1].number : 0,
                 c = values.size() > 2 ? values[2].number : 0;
    if (operation == "+")
        return a + b;
    if (operation == "-")
        return values.size() == 1 ? -a : a - b;
    if (operation == "*")
        return a * b;
    if (operation == "/")
        return a / b;
    if (operation == "^")
        return std::pow(a, b);
    if (operation == "<")
        return a < b;
    if (operation == "<=")
        return a <= b;
    if (operation == ">")
        return a > b;
    if (operation == ">=")
        return a >= b;
    if (operation == "=")
        return a == b;
    if (operation == "and")
        return a != 0 && b != 0;
    if (operation == "or")
        return a != 0 || b != 0;
    if (operation == "not")
        return a == 0;
    if (operation == "abs")
        return std::fabs(a);
    if (operation == "sqrt")
        return std::sqrt(a);
    if (operation == "log2")
        return std::log2(a);
    if (operation == "ceil")
        return std::ceil(a);
    if (operation == "floor")
        return std::floor(a);
    if (operation == "min")
        return std::min(a, b);
    if (operation == "max")
        return std::max(a, b);
    if (operation == "near")
        return std::fabs(a / b - 1) <= c;
    return a >= b && a <= c; // within
}

} // namespace

class ClaimExpressionParser
{
public:
    explicit ClaimExpressionParser(std::string_view text)
        : m_text(text)
    { }

    Result<ClaimExpression> parsed()
    {
        m_made.m_text = m_text;
        if (m_text.size() > longestExpression)
            return refused("is longer than 1000 characters");
        MEMSCAPE_TRY(root, any());
        skipSpaces();
        if (m_at < m_text.size())
            return refused(fmt::format("has something that does not belong there: \"{}\"", m_text.substr(m_at, 12)));
        m_made.m_root = root;
        return m_made;
    }

private:
    using Kind = ClaimExpression::Kind;

    tl::unexpected<Error> refused(const std::string& what) const
    {
        return fail("claims.expression", fmt::format("the expression \"{}\" {}", m_text.substr(0, 120), what),
                    "write names, numbers, + - * / ^, comparisons, and or not, or a function",
                    fmt::format("character {}", m_at + 1));
    }

    void skipSpaces()
    {
        while (m_at < m_text.size() && m_text[m_at] == ' ')
            ++m_at;
    }

    bool take(std::string_view symbol)
    {
        skipSpaces();
        if (m_text.substr(m_at, symbol.size()) != symbol)
            return false;
        const std::size_t end = m_at + symbol.size();
        if (isNameStart(symbol[0]) && end < m_text.size() && (isNameStart(m_text[end]) || isDigit(m_text[end])))
            return false;
        m_at = end;
        return true;
    }

    int add(Kind kind, std::string text, std::vector<int> arguments = {}, double number = 0)
    {
        m_made.m_nodes.push_back({kind, number, std::move(text), std::move(arguments)});
        return int(m_made.m_nodes.size()) - 1;
    }

    /// Operands of one precedence, joined from the left.
    Result<int> chain(std::initializer_list<std::string_view> operators, Result<int> (ClaimExpressionParser::*next)())
    {
        MEMSCAPE_TRY(left, (this->*next)());
        while (true) {
            const auto* found =
                std::find_if(operators.begin(), operators.end(), [&](std::string_view one) { return take(one); });
            if (found == operators.end())
                return left;
            MEMSCAPE_TRY(right, (this->*next)());
            left = add(Kind::Call, std::string(*found), {left, right});
        }
    }

    Result<int> any()
    {
        if (++m_depth > deepestExpression)
            return refused("is nested more than 60 levels deep");
        auto made = chain({"or"}, &ClaimExpressionParser::all);
        --m_depth;
        return made;
    }
    Result<int> all() { return chain({"and"}, &ClaimExpressionParser::comparison); }
    Result<int> comparison() { return chain({"<=", ">=", "<", ">", "="}, &ClaimExpressionParser::sum); }
    Result<int> sum() { return chain({"+", "-"}, &ClaimExpressionParser::product); }
    Result<int> product() { return chain({"*", "/"}, &ClaimExpressionParser::power); }
    Result<int> power() { return chain({"^"}, &ClaimExpressionParser::atom); }

    Result<int> atom()
    {
        for (const char* sign : {"not", "-"}) {
            if (take(sign)) {
                MEMSCAPE_TRY(operand, nested());
                return add(Kind::Call, sign, {operand});
            }
        }
        if (take("(")) {
            MEMSCAPE_TRY(inner, any());
            if (!take(")"))
                return refused("misses a )");
            return inner;
        }
        skipSpaces();
        const char first = m_at < m_text.size() ? m_text[m_at] : ' ';
        if (first == '\'')
            return word();
        if (isDigit(first))
            return number();
        if (isNameStart(first))
            return named();
        return refused("lacks a number or a name");
    }

    Result<int> nested()
    {
        if (++m_depth > deepestExpression)
            return refused("is nested more than 60 levels deep");
        auto made = atom();
        --m_depth;
        return made;
    }

    Result<int> word()
    {
        const std::size_t end = m_text.find('\'', m_at + 1);
        if (end == std::string_view::npos)
            return refused("misses a ' after a word");
        const std::string inside(m_text.substr(m_at + 1, end - m_at - 1));
        m_at = end + 1;
        return add(Kind::Word, inside);
    }

    Result<int> number()
    {
        const std::size_t begin = m_at;
        while (m_at < m_text.size()
               && (isDigit(m_text[m_at]) || m_text[m_at] == '.' || m_text[m_at] == 'e'
                   || (m_text[m_at] == '-' && m_text[m_at - 1] == 'e')))
            ++m_at;
        MEMSCAPE_TRY(value, parseNumber(m_text.substr(begin, m_at - begin)));
        return add(Kind::Number, {}, {}, value);
    }

    Result<int> named()
    {
        const std::size_t begin = m_at;
        while (m_at < m_text.size() && (isNameStart(m_text[m_at]) || isDigit(m_text[m_at]) || m_text[m_at] == '.'))
            ++m_at;
        const std::string name(m_text.substr(begin, m_at - begin));
        if (!take("("))
            return add(Kind::Name, name);
        const auto function = argumentCounts().find(name);
        if (function == argumentCounts().end())
            return refused(fmt::format("calls \"{}\", which is no function here", name));
        std::vector<int> arguments;
        do {
            MEMSCAPE_TRY(one, any());
            arguments.push_back(one);
        } while (take(","));
        if (!take(")"))
            return refused("misses a )");
        if (arguments.size() != function->second)
            return refused(fmt::format("gives {} {} values, it takes {}", name, arguments.size(), function->second));
        return add(Kind::Call, name, std::move(arguments));
    }

    std::string_view m_text;
    std::size_t m_at = 0;
    int m_depth = 0;
    ClaimExpression m_made;
};

Result<ClaimExpression> ClaimExpression::parse(std::string_view text)
{
    return ClaimExpressionParser(text).parsed();
}

std::vector<std::string> ClaimExpression::names() const
{
    std::vector<std::string> found;
    for (const Node& node : m_nodes) {
        if (node.kind == Kind::Name && std::find(found.begin(), found.end(), node.text) == found.end())
            found.push_back(node.text);
    }
    return found;
}

Result<ClaimValue> ClaimExpression::evaluate(const ClaimLookup& lookup) const
{
    return evaluate(m_root, lookup);
}

Result<ClaimValue> ClaimExpression::evaluate(int index, const ClaimLookup& lookup) const
{
    const Node& node = m_nodes[std::size_t(index)];
    switch (node.kind) {
    case Kind::Number: return ClaimValue{node.number};
    case Kind::Word: return ClaimValue{nan, Unit::One, node.text, true};
    case Kind::Name: return lookup(node.text);
    case Kind::Call: break;
    }
    std::vector<ClaimValue> values;
    for (const int argument : node.arguments) {
        MEMSCAPE_TRY(value, evaluate(argument, lookup));
        values.push_back(std::move(value));
    }
    if (node.text == "=" && values[0].isWord && values[1].isWord)
        return ClaimValue{double(values[0].word == values[1].word)};
    for (const ClaimValue& value : values) {
        if (value.isWord)
            return fail("claims.expression", fmt::format("\"{}\" calculates with the word \"{}\"", m_text, value.word),
                        "compare words with = alone");
    }
    const Unit unit = values.size() == 1 ? node.text == "-" || node.text == "abs" ? values[0].unit : Unit::One
                                         : unitOf(node.text, values[0], values[1]);
    return ClaimValue{calculated(node.text, values), unit};
}

} // namespace memscape
