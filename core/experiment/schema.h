// SPDX-License-Identifier: Apache-2.0
// How an experiment writes its parameters: a function for each kind, and what belongs to few of them by name.
//     integerSpec("stride", "stride", "Distance between …", {.most = 1 << 20, .standard = "4", .scale = Scale::Log2})
#pragma once

#include "core/experiment/parameter.h"

#include <algorithm>
#include <cassert>

namespace memscape {

/// What a number may be, in its unit; bounds included. `standard` is text that parses.
struct NumberRange
{
    double least = 0, most = 0;
    std::string standard = "0";
    Unit unit = Unit::One;
    Scale scale = Scale::Linear;         ///< how a slider moves
    std::string suffix = {};             ///< shown after a number without unit: "elements"
    std::vector<ChoiceValue> words = {}; ///< of an Integer, its values that are words: {"0", "all"}
    AppliesTo appliesTo = AppliesTo::Everywhere;
};

ParameterSpec integerSpec(std::string key, std::string label, std::string help, NumberRange range);
ParameterSpec realSpec(std::string key, std::string label, std::string help, NumberRange range);
ParameterSpec flagSpec(std::string key, std::string label, std::string help, bool standard = false);
/// A text of `least` to `most` bytes.
ParameterSpec textSpec(std::string key, std::string label, std::string help, std::string standard,
                       std::size_t least = 0, std::size_t most = textLimit);
/// One of the choices; without `standard` the first is.
ParameterSpec choiceSpec(std::string key, std::string label, std::string help, std::vector<ChoiceValue> choices,
                         std::string standard = {});

/// The words of an enumeration: the choices that a parameter offers, and what each of them is. The only place
/// where the two meet.
template <class Value> class ChoiceTable
{
public:
    struct Row
    {
        Value value;
        ChoiceValue choice;
    };
    ChoiceTable(std::initializer_list<Row> rows)
        : m_rows(rows)
    { }

    std::vector<ChoiceValue> choices() const
    {
        std::vector<ChoiceValue> all;
        for (const Row& row : m_rows)
            all.push_back(row.choice);
        return all;
    }
    /// Asserts that `key` is one of the choices; resolve() refuses every other.
    Value of(const std::string& key) const
    {
        const auto row =
            std::find_if(m_rows.begin(), m_rows.end(), [&](const Row& one) { return one.choice.key == key; });
        assert(row != m_rows.end());
        return row->value;
    }

    const std::string& keyOf(Value value) const
    {
        return std::find_if(m_rows.begin(), m_rows.end(), [&](const Row& one) { return one.value == value; })
            ->choice.key;
    }

private:
    std::vector<Row> m_rows;
};

} // namespace memscape
