// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/snapshot/plan_guess.h"

#include "core/base/cancellation.h"
#include "core/base/number.h"
#include "core/device/catalogue.h"
#include "core/experiment/experiment.h"
#include "core/experiment/record.h"
#include "core/network/model_names.h"

#include <algorithm>
#include <cctype>
#include <cmath>

namespace memscape {

namespace {

constexpr double sameCount = 0.005; ///< parameters of the catalogue and of the snapshot: buffers are counted with them

bool mentions(const PlanClues& clues, std::string_view words)
{
    return std::ranges::any_of(clues.frames,
                               [&](const std::string& frame) { return frame.find(words) != std::string::npos; });
}

std::string lettersOf(std::string_view text)
{
    std::string letters;
    for (const char c : text) {
        if (std::isalnum(static_cast<unsigned char>(c)))
            letters += char(std::tolower(static_cast<unsigned char>(c)));
    }
    return letters;
}

/// "gpt2" of "…/transformers/models/gpt2/modeling_gpt2.py"; empty where no library's model is at work.
std::string familyOf(const PlanClues& clues)
{
    constexpr std::string_view mark = "modeling_";
    for (const std::string& frame : clues.frames) {
        const std::size_t at = frame.find(mark);
        if (at == std::string::npos || frame.compare(at, 15, "modeling_utils.") == 0)
            continue;
        const std::size_t begin = at + mark.size();
        return frame.substr(begin, frame.find(".py", begin) - begin);
    }
    return {};
}

void guessOptimizer(const PlanClues& clues, std::vector<PlanGuess>& guesses)
{
    // The first that is named counts: AdamW calls functions of Adam, so it comes first.
    constexpr std::pair<const char*, const char*> names[] = {
        {"AdamW.step", "adamw"},         {"optim/adamw.py", "adamw"}, {"Adam.step", "adam"},
        {"optim/adam.py", "adam"},       {"SGD.step", "sgd"},         {"optim/sgd.py", "sgd"},
        {"Adafactor.step", "adafactor"}, {"Lion.step", "lion"},       {"Muon.step", "muon"}};
    for (const auto& [mark, value] : names) {
        if (!mentions(clues, mark))
            continue;
        guesses.push_back({"optimizer", value, std::string("the stacks name ") + mark});
        break;
    }
    constexpr std::pair<const char*, const char*> styles[] = {
        {"_fused_", "fused"}, {"_multi_tensor_", "foreach"}, {"_single_tensor_", "loop"}};
    for (const auto& [mark, value] : styles) {
        if (!mentions(clues, mark))
            continue;
        guesses.push_back({"optimizer_implementation", value, std::string("the stacks name functions ") + mark + "…"});
        break;
    }
}

void guessModel(const PlanClues& clues, std::vector<PlanGuess>& guesses)
{
    if (clues.weights <= 0)
        return;
    const std::string family = familyOf(clues), letters = lettersOf(family);
    const std::string bytes = quantityText(double(clues.weights), Unit::Byte, ByteStyle::Binary, 4);
    const std::pair<std::string, double>* found = nullptr;
    double nearest = sameCount, width = 4;
    for (const double each : {4.0, 2.0}) { // bytes of a parameter
        for (const auto& known : clues.counts) {
            const bool isFamily = letters.empty() || lettersOf(known.first).find(letters) != std::string::npos;
            const double distance = std::fabs(known.second * each / double(clues.weights) - 1);
            if (!isFamily || distance >= nearest)
                continue;
            nearest = distance;
            found = &known;
            width = each;
        }
    }
    if (found != nullptr) {
        guesses.push_back({"model", found->first,
                           "weights of " + bytes + " at " + numberText(width) + " B each are as many as those of "
                               + found->first + (family.empty() ? "" : ", and the stacks name " + family)});
        return;
    }
    const double count = double(clues.weights) / 4;
    guesses.push_back({"model", "params:" + numberText(std::round(count / 1e4) * 1e4),
                       "weights of " + bytes
                           + " at 4 B each; no model of the catalogue has as many, so its shape is a "
                             "decoder's of that size"});
}

std::vector<std::pair<std::string, double>> parameterCounts()
{
    std::vector<std::pair<std::string, double>> counts;
    const auto experiment = findExperiment("training-memory");
    const auto device = findDevice("nvidia-h100-sxm");
    if (!experiment || !device)
        return counts;
    for (const KnownModel& model : knownModels()) {
        if (isCancelled())
            break;
        const auto parameters =
            resolve((*experiment)->schema(), {"model=" + model.name, "batch=1", "sequence=1", "advice=none"});
        const auto record = parameters ? predictRecord(**experiment, *device, *parameters) : fail(parameters.error());
        const Figure* count =
            record && record->predicted ? findFigure(record->predicted->figures, "parameter_count") : nullptr;
        if (count != nullptr && count->isNumber())
            counts.emplace_back(model.name, count->number());
    }
    return counts;
}

} // namespace

std::vector<PlanGuess> guessFrom(const PlanClues& clues)
{
    std::vector<PlanGuess> guesses;
    guessModel(clues, guesses);
    guessOptimizer(clues, guesses);
    if (mentions(clues, "autocast_mode.py") || mentions(clues, "amp/autocast"))
        guesses.push_back({"precision", "bf16-autocast", "the stacks name autocast; bf16 or fp16 they do not tell"});
    if (mentions(clues, "torch/utils/checkpoint.py"))
        guesses.push_back({"checkpointing", "block", "the stacks name torch/utils/checkpoint.py"});
    return guesses;
}

std::vector<PlanGuess> guessPlan(const SnapshotDevice& device)
{
    const Snapshot& snapshot = device.snapshot();
    PlanClues clues;
    for (const SnapshotFrame& frame : snapshot.frames)
        clues.frames.push_back(std::string(snapshot.texts[frame.file]) + ":" + std::string(snapshot.texts[frame.name]));
    const std::size_t end = device.lifetimes().events();
    const CategoryBytes bytes = device.timeline().categoriesAt(device.timeline().peakAllocated(0, end));
    clues.weights = bytes[std::size_t(Category::Weights)];
    if (clues.weights > 0)
        clues.counts = parameterCounts();
    return guessFrom(clues);
}

} // namespace memscape
