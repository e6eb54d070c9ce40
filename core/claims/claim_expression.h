// SPDX-License-Identifier: Apache-2.0
// The arithmetic that a table of claims may use: figures of predictions, numbers and a few functions, so that a claim's
// number and its verdict are computed from what an experiment answers and from nothing else.
//
//     one.peak_allocated / two.peak_allocated        near(ratio, 4, 0.1)        bound = 'compute-bound' and n > 8
//
// + − × ÷ as + - * /, a power as ^, comparisons < <= > >= =, and, or, not, words in single quotes, and the functions
// abs sqrt log2 ceil floor min max near(x, claimed, tolerance) within(x, low, high). A comparison is 1 or 0. The unit
// follows: bytes plus bytes are bytes, bytes by bytes are a ratio, and what is neither has none.
// Left out: assignments, loops, and anything that reads more than the names it is given.
#pragma once

#include "core/base/number.h"
#include "core/base/result.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace memscape {

/// A number in SI base units (NaN where it is not known) or a word.
struct ClaimValue
{
    double number = nan;
    Unit unit = Unit::One;
    std::string word = {};
    bool isWord = false;
};

/// What a name stands for. Errors are the caller's own: an unknown figure, for example.
using ClaimLookup = std::function<Result<ClaimValue>(const std::string& name)>;

class ClaimExpression
{
public:
    /// Errors: claims.expression with the place within the text; at most 1000 characters and 60 levels deep.
    static Result<ClaimExpression> parse(std::string_view text);

    const std::string& text() const { return m_text; }
    /// Each name once, in the order of the text.
    std::vector<std::string> names() const;
    bool isName() const { return m_nodes[std::size_t(m_root)].kind == Kind::Name; }

    /// Errors: those of `lookup`; claims.expression for a word where a number is needed.
    Result<ClaimValue> evaluate(const ClaimLookup& lookup) const;

private:
    enum class Kind { Number, Word, Name, Call };
    struct Node
    {
        Kind kind = Kind::Number;
        double number = 0;
        std::string text = {}; ///< a name, a word, a function or an operator
        std::vector<int> arguments = {};
    };
    friend class ClaimExpressionParser;

    Result<ClaimValue> evaluate(int node, const ClaimLookup& lookup) const;

    std::string m_text;
    std::vector<Node> m_nodes;
    int m_root = 0;
};

} // namespace memscape
