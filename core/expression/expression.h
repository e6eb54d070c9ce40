// SPDX-License-Identifier: Apache-2.0
// The arithmetic of labs and of claims: what a text shows and what a check or a verdict compares is an expression over
// what was predicted, measured and answered, so that no figure is written down that could be computed.
//     sqrt(stages)      all.peak / best.peak      at(run, "latency", 4 * l1) >= 2      near(ratio, 4, 0.1) and n > 8
// + - * / ^, one comparison < <= > >= == != (1 or 0), and, or, not, words in "double quotes", numbers alone, with a
// unit (16KiB) or as a share (25%), names with dots, and the functions
//     abs sqrt log2 floor ceil round count min(a, b) max(a, b) if(condition, a, b)
//     near(x, claimed, tolerance): |x / claimed - 1| <= tolerance        within(x, low, high)
// Values carry their dimension (bytes, seconds, operations): adding or comparing bytes with seconds is an error.
// Left out: assignments, loops, vectors, and anything that reads more than the names it is given.
#pragma once

#include "core/base/result.h"
#include "core/expression/expression_value.h"

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace memscape {

/// What an expression may ask for; each answers with a value or says why there is none.
struct ExpressionScope
{
    /// A name: "stages", or with dots: "best.peak".
    std::function<Result<ExpressionValue>(const std::string& name)> name;
    /// One of the user's own functions of a source: at(run, "latency", x). Words come as words, the source's name too.
    std::function<Result<ExpressionValue>(const std::string& function, const std::vector<ExpressionValue>& arguments)>
        call = {};
};

/// In what two users of the language differ.
struct ExpressionRules
{
    /// Functions whose first argument is the name of a source.
    std::span<const std::string_view> sourceFunctions = {};
    /// For what must hold on any machine: there are no literals of time or rate, count() makes no plain number of one,
    /// and a plain number has no place beside a quantity. Else it is in the SI unit of the quantity beside it.
    bool anyMachine = false;
};

class Expression
{
public:
    /// At most 1000 bytes and 60 levels deep. Errors: expression.syntax with the column, expression.absolute.
    static Result<Expression> parse(std::string_view text, const ExpressionRules& rules = {});

    const std::string& text() const { return m_text; }
    /// Each name once, in the order of the text; the source of a function as "run.".
    const std::vector<std::string>& names() const { return m_names; }

    /// Errors: expression.unit (words or dimensions that do not fit), expression.absolute, those of the scope.
    Result<ExpressionValue> evaluate(const ExpressionScope& scope) const;

private:
    enum class Kind { Literal, Name, Function, Source };
    struct Node
    {
        Kind kind = Kind::Literal;
        ExpressionValue literal = {};
        std::string text = {}; ///< a name, a function or an operator
        std::vector<std::size_t> arguments = {};
    };
    friend class ExpressionParser;

    Result<ExpressionValue> evaluate(std::size_t node, const ExpressionScope& scope) const;

    std::string m_text;
    std::vector<std::string> m_names;
    std::vector<Node> m_nodes;
    std::size_t m_root = 0;
    bool m_anyMachine = false;
};

} // namespace memscape
