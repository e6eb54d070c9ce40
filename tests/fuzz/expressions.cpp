// SPDX-License-Identifier: Apache-2.0
// Expressions and sentences of labs and claims: the first byte says which rules hold.
#include "core/expression/expression_template.h"
#include "tests/fuzz/target.h"

#include <array>

using namespace memscape;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    if (size == 0)
        return 0;
    static constexpr std::array<std::string_view, 2> functions{"at", "detail"};
    const ExpressionRules rules{functions, data[0] % 2 == 1};
    const std::string_view text = fuzz::text(data + 1, size - 1);
    const ExpressionScope scope{[](const std::string& name) -> Result<ExpressionValue> {
                                    if (name.size() > 3)
                                        return fail("test.name", "no such name");
                                    return name == "w" ? wordValue("word") : numberValue(1e9, Unit::Byte);
                                },
                                [](const std::string&, const std::vector<ExpressionValue>& arguments) {
                                    return Result<ExpressionValue>(arguments.back());
                                }};
    const auto expression = Expression::parse(text, rules);
    fuzz::errorIsClear(expression);
    if (expression)
        fuzz::errorIsClear(expression->evaluate(scope));
    const auto sentence = ExpressionTemplate::parse(text, rules);
    fuzz::errorIsClear(sentence);
    if (sentence)
        fuzz::errorIsClear(sentence->filled(scope));
    return 0;
}
