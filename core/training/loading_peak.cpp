// SPDX-License-Identifier: Apache-2.0
#include "core/training/loading_peak.h"

#include "core/network/quantized.h"
#include "core/training/sharding.h"

#include <algorithm>
#include <string_view>
#include <vector>

namespace memscape {

namespace {

/// transformers' threads that read (GLOBAL_WORKERS).
constexpr std::size_t loadingThreads = 4;

/// One tensor, or the experts of a layer that have its shape.
struct LoadedTensor
{
    const ModelTensor* tensor = nullptr;
    std::int64_t kept = 0;    ///< B of one copy in the form that stays
    std::int64_t plain = 0;   ///< B of one that is not quantized, in what is computed in
    std::int64_t filed = 0;   ///< B of one in the file, of a device's share
    bool isQuantized = false; ///< in the form that stays

    std::int64_t copies() const { return tensor->copies; }
    std::int64_t all() const { return kept * copies(); }
};

std::string_view nextPart(std::string_view& name)
{
    const std::size_t dot = name.find('.');
    const std::string_view part = name.substr(0, dot);
    name = dot == std::string_view::npos ? std::string_view() : name.substr(dot + 1);
    return part;
}

bool isNumber(std::string_view part)
{
    return !part.empty() && std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
}

/// As transformers sorts names: part by part, numbers by their value and before words.
bool comesBefore(std::string_view first, std::string_view second)
{
    while (!first.empty() && !second.empty()) {
        const std::string_view a = nextPart(first), b = nextPart(second);
        if (a == b)
            continue;
        const bool isA = isNumber(a), isB = isNumber(b);
        if (isA != isB)
            return isA;
        if (isA && a.size() != b.size())
            return a.size() < b.size();
        return a < b;
    }
    return first.empty() && !second.empty();
}

/// transformers 5 sends what LLM.int8 shall quantize to the device, back and there again.
bool sendsBack(const LoadingPlan& plan)
{
    return plan.quantizes() && plan.form.kind == StoredForm::Int8 && plan.way != LoadingWay::InPlace
        && plan.transformers == Transformers::From524;
}

/// B on the device while a matrix is quantized there, its quantized form included.
std::int64_t quantizingBytes(const LoadedTensor& loaded, const LoadingPlan& plan)
{
    const std::int64_t elements = piece(loaded.tensor->elements(), plan.tensorParallel);
    if (plan.form.kind == StoredForm::NormalFloat4Double) // scales as fp32, then as bytes beside them
        return loaded.plain + normalFloatBytes(elements, false) + piece(elements, 64);
    if (plan.form.kind != StoredForm::Int8)
        return loaded.plain + loaded.kept;
    const std::int64_t sent = sendsBack(plan) ? loaded.plain : 0; // stays named beside its copy in fp16
    return sent + 2 * elements + loaded.kept + (plan.transposesBytes ? elements : 0);
}

/// The most that tensors take which are quantized one by one, beside those that are done and `first`.
std::int64_t quantizedOneByOne(const std::vector<LoadedTensor>& tensors, const LoadingPlan& plan, std::int64_t first)
{
    std::int64_t done = first, most = first;
    for (const LoadedTensor& loaded : tensors) {
        if (loaded.isQuantized)
            most = std::max(most, done + loaded.kept * (loaded.copies() - 1) + quantizingBytes(loaded, plan));
        done += loaded.all();
        most = std::max(most, done);
    }
    return most;
}

/// B of the copies that threads make at once of tensors whose type is not the file's.
std::int64_t castBytes(const std::vector<LoadedTensor>& tensors, const LoadingPlan& plan)
{
    const std::size_t threads = plan.quantizes() ? 1 : loadingThreads;
    std::vector<std::int64_t> copies;
    std::int64_t most = 0;
    for (const LoadedTensor& loaded : tensors) {
        const std::int64_t made = plan.quantizes() ? loaded.plain : loaded.kept;
        for (std::int64_t i = 0; i < std::min<std::int64_t>(loaded.copies(), std::int64_t(threads)); ++i)
            copies.push_back(made == loaded.filed ? 0 : made);
        std::int64_t together = 0;
        for (std::size_t i = copies.size() - std::min(copies.size(), threads); i < copies.size(); ++i)
            together += copies[i];
        most = std::max(most, together);
    }
    return most;
}

bool hasPart(std::string_view name, std::string_view part)
{
    const std::size_t at = name.find(part);
    return at != std::string_view::npos && at > 0 && name[at - 1] == '.';
}

/// What stacking and joining a layer's experts takes beside them.
std::int64_t joinedBytes(const std::vector<LoadedTensor>& tensors, const LoadingPlan& plan)
{
    if (plan.transformers != Transformers::From524 || plan.quantizes() || plan.form.kind > StoredForm::Float16)
        return 0;
    std::int64_t most = 0;
    for (const LoadedTensor& loaded : tensors) {
        const std::string& name = loaded.tensor->name;
        if (loaded.copies() > 1 && (hasPart(name, "gate_proj.") || hasPart(name, "w1.")))
            most = std::max(most, 2 * loaded.all());
    }
    return most;
}

struct LoadedModel
{
    std::vector<LoadedTensor> tensors; ///< in the order in which they are loaded
    std::int64_t kept = 0, plain = 0;
    std::int64_t largest = 0; ///< quantized matrix
    std::int64_t file = 0;
    bool isCast = false; ///< some types are not those of the file
};

Result<LoadedModel> loadedModel(const Inventory& all, const ModelDescription& model, const LoadingPlan& plan)
{
    LoadedModel made;
    MEMSCAPE_CHECK(servedWeights(model, StoredForm::Float32, 4, 1)); // no sum below is more
    for (const ModelTensor& tensor : all.tensors) {
        LoadedTensor loaded{&tensor, 0, 0, 0, isQuantizedIn(tensor, plan.form)};
        loaded.kept = servedTensorBytes(tensor, model, plan.form, plan.computed, plan.tensorParallel);
        loaded.plain = servedTensorBytes(tensor, model, plan.computed == 4 ? StoredForm::Float32 : StoredForm::BFloat16,
                                         2, plan.tensorParallel);
        loaded.filed = servedTensorBytes(tensor, model, plan.file, plan.computed, plan.tensorParallel);
        made.plain += loaded.plain * loaded.copies();
        made.isCast =
            made.isCast || loaded.filed != (loaded.isQuantized && plan.quantizes() ? loaded.plain : loaded.kept);
        if (loaded.isQuantized)
            made.largest = std::max(made.largest, loaded.kept);
        made.tensors.push_back(loaded);
    }
    if (plan.transformers == Transformers::From524)
        std::ranges::stable_sort(made.tensors, [](const LoadedTensor& a, const LoadedTensor& b) {
            return comesBefore(a.tensor->name, b.tensor->name);
        });
    MEMSCAPE_SET(made.kept, servedWeights(model, plan.form, plan.computed, plan.tensorParallel));
    MEMSCAPE_SET(made.file, servedWeights(model, plan.file, plan.computed, 1));
    return made;
}

/// What a head of its own takes that the model ties in the end.
std::int64_t looseHeadBytes(const ModelDescription& model, const LoadingPlan& plan, StoredForm form)
{
    if (!plan.hasLooseHead || !model.tied)
        return 0;
    ModelTensor head{"lm_head.weight", {model.vocab, model.hidden}, TensorRole::Matrix};
    return servedTensorBytes(head, model, form, plan.computed, plan.tensorParallel);
}

bool isQuantizedByBitsandbytes(const LoadingPlan& plan)
{
    return plan.quantizes() && (plan.form.isNormalFloat() || plan.form.kind == StoredForm::Int8);
}

LoadingPeak directPeak(const LoadedModel& loaded, const LoadingPlan& plan, std::int64_t head)
{
    LoadingPeak peak{loaded.kept + head + joinedBytes(loaded.tensors, plan), 0, loaded.file};
    if (plan.quantizes())
        peak.device = quantizedOneByOne(loaded.tensors, plan, head);
    if (loaded.isCast)
        peak.host = castBytes(loaded.tensors, plan);
    if (sendsBack(plan)) {
        for (const LoadedTensor& one : loaded.tensors)
            if (one.isQuantized)
                peak.host = std::max(peak.host, one.plain);
    }
    return peak;
}

LoadingPeak hostPeak(const LoadedModel& loaded, const LoadingPlan& plan, std::int64_t head)
{
    LoadingPeak peak{loaded.kept, 0, loaded.file};
    if (plan.quantizes())
        peak.host = quantizedOneByOne(loaded.tensors, plan, head);
    else if (loaded.isCast || plan.transformers <= Transformers::Before450)
        peak.host = loaded.kept + head;
    else if (const std::int64_t joined = joinedBytes(loaded.tensors, plan); joined > 0) {
        peak.host = joined; // the last layer's, beside all that are joined
        for (const LoadedTensor& one : loaded.tensors)
            peak.host += one.copies() > 1 ? one.all() : 0;
    }
    return peak;
}

/// Fused by vLLM, a gate's and an up projection are one matrix.
LoadingPeak inPlacePeak(const LoadedModel& loaded, const LoadingPlan& plan)
{
    LoadingPeak peak{loaded.kept, 0, loaded.file};
    const bool isRepacked =
        plan.form.kind == StoredForm::Gptq || plan.form.kind == StoredForm::Gptq8 || plan.form.kind == StoredForm::Awq;
    if (isQuantizedByBitsandbytes(plan)) {
        for (const LoadedTensor& one : loaded.tensors)
            if (one.isQuantized)
                peak.device = std::max(peak.device, loaded.kept + quantizingBytes(one, plan));
    } else if (plan.quantizes())
        peak.device = loaded.plain + 2 * loaded.largest;
    else if (isRepacked)
        peak.device += 2 * loaded.largest;
    return peak;
}

} // namespace

bool LoadingPlan::quantizes() const
{
    return form.kind > StoredForm::Float16 && form.kind != StoredForm::Gguf && file.kind <= StoredForm::Float16;
}

Result<LoadingPeak> loadingPeak(const ModelDescription& model, const LoadingPlan& plan)
{
    MEMSCAPE_TRY(tensors, inventory(model));
    MEMSCAPE_TRY(loaded, loadedModel(tensors, model, plan));
    const std::int64_t head = looseHeadBytes(model, plan, plan.form);
    loaded.file += looseHeadBytes(model, plan, plan.file);
    switch (plan.way) {
    case LoadingWay::Host:
        if (!isQuantizedByBitsandbytes(plan)) // which quantizes on the device alone
            return hostPeak(loaded, plan, head);
        break;
    case LoadingWay::StateDict: return LoadingPeak{loaded.kept, loaded.kept + loaded.file, 0};
    case LoadingWay::OnDevice: return LoadingPeak{loaded.kept + loaded.file, loaded.kept, 0};
    case LoadingWay::InPlace: return inPlacePeak(loaded, plan);
    case LoadingWay::Mapped:
        return LoadingPeak{loaded.kept - hostWeights(tensors, model, plan.form, plan.tensorParallel), 0, loaded.file};
    case LoadingWay::Direct: break;
    }
    return directPeak(loaded, plan, head);
}

} // namespace memscape
