// SPDX-License-Identifier: Apache-2.0
// What an experiment takes and gives. The figures' keys are found by predicting once for this
// machine and once for a GPU, so they cannot fall out of step with the experiment.
#include "app/cli/commands.h"
#include "app/cli/output.h"
#include "core/base/text.h"
#include "core/device/catalogue.h"
#include "core/experiment/measured_by.h"
#include "core/experiment/parameter_text.h"
#include "core/report/text_table.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape::cli {

namespace {

std::string rangeText(const ParameterSpec& spec)
{
    switch (spec.kind) {
    case ParameterKind::Flag: return "true or false";
    case ParameterKind::Choice: {
        std::vector<std::string> keys;
        for (const ChoiceValue& choice : spec.choices)
            keys.push_back(choice.key);
        if (!spec.counted.empty())
            keys.push_back(spec.counted + ":K");
        return join(keys, ", ");
    }
    case ParameterKind::Text:
        return fmt::format("text, at most {} bytes", spec.maximum > 0 ? spec.maximum : double(textLimit));
    case ParameterKind::Integer:
    case ParameterKind::Real: break;
    }
    return numbersText(spec);
}

/// Figures at the defaults, for their keys: those of this machine, then those that only a GPU has.
Figures figuresOf(const Experiment& experiment)
{
    Figures all;
    const auto parameters = resolve(experiment.schema(), std::vector<std::string>());
    for (const char* id : {"cpu", "nvidia-h200"}) {
        const auto device = parameters ? findDevice(id) : Result<Device>(tl::unexpected(parameters.error()));
        if (!device)
            continue;
        const auto figures = experiment.predictPoint(*device, *parameters);
        for (const Figure& figure : figures.value_or(Figures())) {
            if (findFigure(all, figure.key) == nullptr)
                all.push_back(figure);
        }
    }
    return all;
}

Json describeJson(const Experiment& experiment)
{
    Json figures = Json::array(), series = Json::array();
    for (const Figure& figure : figuresOf(experiment))
        figures.push_back({{"key", figure.key}, {"label", figure.label}, {"unit", unitText(figure.unit)}});
    for (const SeriesSpec& spec : experiment.series())
        series.push_back({{"key", spec.key}, {"label", spec.label}});
    return {{"id", experiment.id()},
            {"title", experiment.title()},
            {"question", experiment.question()},
            {"group", experiment.group()},
            {"help", experiment.help()},
            {"measured_on", kindsThatMeasure(experiment)},
            {"parameters", schemaToJson(experiment.schema())},
            {"figures", figures},
            {"series", series}};
}

std::string describeText(const Experiment& experiment)
{
    std::string out = fmt::format("{}: {}\n{}\n\n", experiment.id(), experiment.title(), experiment.question());
    out += wrappedText(experiment.help(), 0) + "\n";
    out += fmt::format("Measured on {}\n\n", join(kindsThatMeasure(experiment), ", "));
    out += parametersText(experiment);
    TextTable figures{{{"key", false}, {"figure", false}, {"unit", false}, {"curve", false}}, {}};
    const auto series = experiment.series();
    for (const Figure& figure : figuresOf(experiment)) {
        const bool curve =
            std::ranges::any_of(series, [&figure](const SeriesSpec& spec) { return spec.key == figure.key; });
        figures.rows.push_back({figure.key, figure.label, std::string(unitText(figure.unit)), curve ? "yes" : ""});
    }
    return out + "\nFigures\n" + alignedText(figures, 2);
}

} // namespace

std::string parametersText(const Experiment& experiment)
{
    std::string out = fmt::format("Parameters of {}\n", experiment.id());
    for (const std::string& group : groupsOf(experiment.schema())) {
        if (!group.empty())
            out += fmt::format("\n  {}:\n", group);
        for (const ParameterSpec& spec : experiment.schema()) {
            if (spec.group != group)
                continue;
            out += fmt::format("  {}={}\n", spec.key, spec.standard);
            out += wrappedText(spec.help, 6) + wrappedText(rangeText(spec), 6);
        }
    }
    return out;
}

int runDescribe(const Arguments& arguments)
{
    const auto experiment = findExperiment(arguments.experiment);
    if (!experiment)
        return refused(experiment.error());
    printOut(arguments.json ? jsonText(describeJson(**experiment)) : describeText(**experiment));
    return 0;
}

} // namespace memscape::cli
