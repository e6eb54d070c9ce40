// SPDX-License-Identifier: Apache-2.0
// Parameters and sweeps as they are typed: the experiment on the first line, KEY=VALUE on each of the others. What
// resolves is written as JSON and read back as the same values.
#include "core/experiment/experiment.h"
#include "core/trace/allocator_options.h"
#include "tests/fuzz/target.h"

using namespace memscape;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const std::string_view text = fuzz::text(data, size);
    fuzz::errorIsClear(parseAllocatorOptions(text));
    for (const Unit unit : {Unit::One, Unit::Byte, Unit::Second, Unit::BytePerSecond, Unit::FlopPerSecond, Unit::Hertz})
        fuzz::errorIsClear(parseQuantity(text, unit));

    std::vector<std::string> lines = fuzz::lines(text);
    const auto experiment = findExperiment(lines.front());
    fuzz::errorIsClear(experiment);
    if (!experiment)
        return 0;
    lines.erase(lines.begin());
    const Schema& schema = (*experiment)->schema();
    const auto parameters = resolve(schema, lines);
    fuzz::errorIsClear(parameters);
    if (!parameters)
        return 0;
    if (parameters->sweep())
        fuzz::promise(parameters->sweep()->values.size() <= sweepLimit, "a sweep has at most its limit of points");
    const auto written = parseJson(jsonText(parametersToJson(*parameters)));
    fuzz::promise(written.has_value(), "what is written is JSON");
    const auto again = parametersFromJson(schema, JsonReader(*written));
    fuzz::promise(again.has_value() && *again == *parameters, "parameters read back as they were");
    return 0;
}
