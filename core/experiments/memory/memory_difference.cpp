// SPDX-License-Identifier: Apache-2.0
#include "core/experiments/memory/memory_difference.h"

#include "core/base/json_values.h"
#include "core/base/number.h"
#include "core/base/quantity.h"
#include "core/trace/peak.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

namespace memscape {

namespace {

struct Sides
{
    double predicted = 0, measured = 0;
    double difference() const { return measured - predicted; }
};
using SidesByName = std::map<std::string, Sides>;
using Side = double Sides::*;

void addLive(std::map<std::string, SidesByName>& modules, const Json& peak, Side side)
{
    for (const Json& live : listOf(peak, "live")) {
        std::string category = words(live, "category");
        std::replace(category.begin(), category.end(), '_', ' ');
        const std::string name = words(live, "name");
        const std::string tensor = name.empty() || category == name ? category : category + " " + name;
        modules[moduleKind(words(live, "module"))][tensor].*side += number(live, "bytes", 0);
    }
    modules["further modules"]["small tensors"].*side += number(member(peak, "rest"), "bytes", 0);
}

ModuleDifference moduleDifference(const std::string& module, const SidesByName& tensors)
{
    ModuleDifference result{module, 0, 0, {}};
    double most = 0;
    for (const auto& [tensor, bytes] : tensors) {
        result.predicted += bytes.predicted;
        result.measured += bytes.measured;
    }
    for (const auto& [tensor, bytes] : tensors) {
        // Of the tensors on the side that has more: what is there and is not expected, or is expected and missing.
        const double excess = result.difference() > 0 ? bytes.difference() : -bytes.difference();
        if (excess > most) {
            most = excess;
            result.tensor = tensor;
        }
    }
    return result;
}

std::vector<ModuleDifference> moduleDifferences(const Json& predicted, const Json& measured)
{
    std::map<std::string, SidesByName> modules;
    addLive(modules, predicted, &Sides::predicted);
    addLive(modules, measured, &Sides::measured);
    std::vector<ModuleDifference> differences;
    for (const auto& [module, tensors] : modules) {
        ModuleDifference one = moduleDifference(module, tensors);
        if (one.difference() != 0)
            differences.push_back(std::move(one));
    }
    std::stable_sort(differences.begin(), differences.end(),
                     [](const auto& a, const auto& b) { return std::abs(a.difference()) > std::abs(b.difference()); });
    return differences;
}

const Json* peakOfPhase(const Json& detail, const std::string& phase)
{
    const Json* highest = nullptr; // of several micro-batches
    for (const Json& peak : listOf(detail, "phase_peaks")) {
        if (words(peak, "phase") == phase
            && (!highest || number(peak, "allocated", 0) > number(*highest, "allocated", 0)))
            highest = &peak;
    }
    return highest;
}

} // namespace

std::vector<PhaseDifference> phaseDifferences(const Json& predictedDetail, const Json& measuredDetail)
{
    std::vector<PhaseDifference> phases;
    for (const Json& predicted : listOf(predictedDetail, "phase_peaks")) {
        const std::string phase = words(predicted, "phase");
        const bool isKnown =
            std::any_of(phases.begin(), phases.end(), [&](const auto& one) { return one.phase == phase; });
        const Json* measured = peakOfPhase(measuredDetail, phase);
        if (isKnown || !measured)
            continue;
        const Json& highest = *peakOfPhase(predictedDetail, phase);
        phases.push_back({phase, number(highest, "allocated", 0), number(*measured, "allocated", 0),
                          moduleDifferences(highest, *measured)});
    }
    return phases;
}

std::string differenceText(const PhaseDifference& phase, ByteStyle style)
{
    const auto bytes = [style](double value) { return quantityText(std::abs(value), Unit::Byte, style); };
    if (phase.difference() == 0)
        return "as predicted";
    std::string text =
        fmt::format("{} {} than predicted", bytes(phase.difference()), phase.difference() > 0 ? "more" : "less");
    const bool isMore = phase.difference() > 0;
    const auto most = std::find_if(phase.modules.begin(), phase.modules.end(),
                                   [&](const ModuleDifference& one) { return (one.difference() > 0) == isMore; });
    if (most == phase.modules.end())
        return text;
    return fmt::format("{}, most of it in {}: {}, {} {}", text, most->module.empty() ? "no module" : most->module,
                       most->tensor, bytes(most->difference()), isMore ? "more" : "less");
}

} // namespace memscape
