// SPDX-License-Identifier: Apache-2.0
#include "core/timing/pytorch_operations.h"

#include "core/network/graph.h"
#include "core/timing/device_kernels.h"
#include "core/training/optimizer_step.h"

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

constexpr double grainOfThread = 32768; // elements: at::internal::GRAIN_SIZE
constexpr double smallWindow = 9;
constexpr double typicalFarShare = 0.5;    // of a byte's time from memory that nothing hides
constexpr double typicalFirstTouch = 5e-7; // s: a page is cleared, mapped and later taken back

/// Of what an update reads and writes; what it writes in place goes back while the next is read.
constexpr double readShare = 2.0 / 3;

/// The share of two arrays, one after the other, that a shared cache still holds: all within its size, nothing beyond
/// three times that.
double keptShare(double bytes, double cache)
{
    return cache > 0 ? std::clamp(1.5 - bytes / (2 * cache), 0.0, 1.0) : 0;
}

/// Threads that share out a pass.
double threadsOf(int threads, double elements)
{
    return std::clamp(std::ceil(elements / grainOfThread), 1.0, double(std::max(1, threads)));
}

const char* formatOf(DType dtype)
{
    switch (dtype) {
    case DType::Float16: return "fp16";
    case DType::BFloat16: return "bf16";
    default: return "fp32";
    }
}

/// Under what the probe measured it, or something alike.
std::string_view passOf(OperatorKind kind)
{
    switch (kind) {
    case OperatorKind::Scale: return "mul_number";
    case OperatorKind::Shift: return "add_number";
    case OperatorKind::Stack:
    case OperatorKind::Pad: return "cat";
    case OperatorKind::Index:
    case OperatorKind::IndexSelect:
    case OperatorKind::Gather: return "embedding";
    case OperatorKind::GatedActivation: return "silu";
    case OperatorKind::Count: return {}; // gradients that meet: as their bytes say
    default: return operatorText(kind);
    }
}

double channelwiseSeconds(const PytorchOperations& host, const OperatorCost& cost)
{
    const auto& ofWindow = host.channelwise[cost.window > smallWindow ? 1 : 0];
    const double multiplyAdds = cost.flops / 2;
    if (!cost.isBackward)
        return multiplyAdds * ofWindow[std::size_t(OperatorPass::Forward)];
    return multiplyAdds
        * (ofWindow[std::size_t(OperatorPass::InputGradient)] + ofWindow[std::size_t(OperatorPass::WeightGradient)])
        / 2;
}

/// What autograd, Python and the dispatcher take on a host, until it is calibrated.
void setTypicalCalls(PytorchOperations& host)
{
    const Dispatch dispatch = eagerDispatch(UpdateStyle::Loop);
    host.forwardCall = dispatch.forward;
    host.backwardCall = dispatch.backward;
    host.viewCall = dispatch.forward / 2;
    host.updateCall = dispatch.update;
}

PytorchOperations typicalPytorch(const Device& device)
{
    PytorchOperations host;
    host.products = host.convolutions = host.batched = hostOperations(device);
    host.batched.threads = 1;
    setTypicalCalls(host);
    host.nearByte = host.products.perByte;
    if (const auto rates = deviceRates(device))
        host.bandwidth = rates->bandwidth;
    host.farByte = host.bandwidth > 0 ? typicalFarShare / host.bandwidth : 0;
    host.farOperand.fill(host.farByte);
    const MemoryLevel* const cache = device.lastCache();
    host.cache = cache ? cache->capacity.valueOr(0) : 0;
    host.firstTouch = typicalFirstTouch;
    return host;
}

} // namespace

double PytorchOperations::rateFactor(DType dtype) const
{
    const auto single = rates.find("fp32"), other = rates.find(formatOf(dtype));
    return single == rates.end() || other == rates.end() ? 1 : other->second / single->second;
}

double PytorchOperations::productSeconds(const ProductPart& part, const OperatorCost& cost) const
{
    const auto seconds = [&](const HostOperations& host, double times) {
        const HostProductTime time = host.productTime(part.way, part.shape);
        return times * (time.constant + time.moving + time.arithmetic / rateFactor(cost.dtype));
    };
    if (cost.isConvolution)
        return seconds(convolutions, part.count);
    if (part.count < products.threads)
        return seconds(products, part.count);
    return seconds(batched, std::ceil(part.count / products.threads));
}

double PytorchOperations::passSeconds(const OperatorCost& cost) const
{
    const auto pass = passes.find(passOf(cost.kind));
    const double ofThread = pass == passes.end() ? 0 : cost.isBackward ? pass->second.backward : pass->second.forward;
    const double busy = threadsOf(products.threads, cost.elements);
    if (ofThread > 0)
        return ofThread * cost.elements / busy;
    return cost.bytes * nearByte * products.threads / busy;
}

TimeParts PytorchOperations::parts(const OperatorCost& cost) const
{
    TimeParts parts;
    double pieces = 0;
    for (const ProductPart& product : cost.products) {
        if (product.count <= 0)
            continue;
        parts.arithmetic += productSeconds(product, cost);
        pieces += product.count;
    }
    if (pieces == 0 && cost.isConvolution)
        parts.arithmetic = channelwiseSeconds(*this, cost);
    if (cost.attention) {
        const auto pass = passes.find("flash_attention");
        if (pass != passes.end()) // of the forward pass's FLOPs, which are 2 of 5 of the backward pass's
            parts.arithmetic =
                cost.isBackward ? pass->second.backward * cost.flops / 2.5 : pass->second.forward * cost.flops;
        parts.arithmetic /= products.threads;
    }
    if (cost.isProduct && parts.arithmetic == 0 && cost.flops > 0) // until it is calibrated
        parts.arithmetic = cost.flops * products.products[0].perFlop;
    if (cost.isProduct) {
        const auto& [forward, ofInput, ofWeight] = farOperand;
        parts.memory = cost.far * (cost.isBackward ? (ofInput + ofWeight) / 2 : forward);
        return parts;
    }
    parts.memory = passSeconds(cost) + cost.far * farByte;
    return parts;
}

double PytorchOperations::turnedCopySeconds(double elements) const
{
    const auto turned = passes.find("turned");
    return turned == passes.end() ? 0 : turned->second.forward * elements / threadsOf(products.threads, elements);
}

double PytorchOperations::updateSeconds(const std::vector<ParameterTensor>& parameters, const Plan& plan,
                                        double held) const
{
    constexpr double operatorsOfAdam = 8;
    const bool takesRoots = plan.optimizer == OptimizerKind::Adam || plan.optimizer == OptimizerKind::AdamW;
    const auto root = passes.find("sqrt");
    double seconds = 0;
    const bool staysNear = held <= cache && !std::isfinite(retention);
    for (const ParameterTensor& tensor : parameters) {
        const OperatorCost cost = updateCost({tensor}, plan);
        if (!(cost.bytes > 0))
            continue;
        const double once = hostUpdateBytes({tensor}, plan), elements = double(tensor.elements);
        const double idle = products.threads / threadsOf(products.threads, elements);
        const double again = std::max(0.0, cost.bytes - once);
        const double kept = staysNear ? 1 : keptShare(2 * sizeof(float) * elements, cache);
        seconds += updateCall / operatorsOfAdam * cost.kernels;
        seconds += staysNear ? once * nearByte * idle : readShare * once / bandwidth;
        seconds += again * (kept * nearByte * idle + (1 - kept) * readShare / bandwidth);
        if (takesRoots && root != passes.end())
            seconds += kept * elements * idle
                * std::max(0.0, root->second.forward / products.threads - 2 * sizeof(float) * nearByte);
        if (cost.isProduct)
            seconds += cost.flops * products.products[0].perFlop / rateFactor(cost.dtype) / products.threads;
    }
    return seconds;
}

PytorchOperations slowed(PytorchOperations host, const HostState& times)
{
    for (HostOperations* const products : {&host.products, &host.batched, &host.convolutions}) {
        for (HostProductCost& cost : products->products)
            for (double* const one : {&cost.perProduct, &cost.perFlop, &cost.perOperand, &cost.perResult})
                *one *= times.core;
        products->perByte *= times.core;
    }
    for (auto& [name, cost] : host.passes) {
        cost.forward *= times.core;
        cost.backward *= times.core;
    }
    for (auto& ofWindow : host.channelwise)
        for (double& one : ofWindow)
            one *= times.core;
    host.nearByte *= times.core;
    host.farByte *= times.memory;
    for (double& one : host.farOperand)
        one *= times.memory;
    host.bandwidth /= times.memory;
    host.firstTouch *= times.page;
    for (double* const call : {&host.forwardCall, &host.backwardCall, &host.viewCall, &host.updateCall})
        *call *= times.call;
    return host;
}

bool isPytorchOnHost(const Device& device)
{
    return !device.isGpu() && device.framework && device.framework->name == "pytorch";
}

namespace {

Json passesToJson(const PytorchOperations& host)
{
    Json json = Json::object();
    for (const auto& [name, cost] : host.passes)
        json[name] = {jsonNumber(cost.forward), jsonNumber(cost.backward)};
    return json;
}

/// A number that is not negative, or nothing.
std::optional<double> costAt(const Json& json)
{
    if (!json.is_number() || !(json.get<double>() >= 0) || !std::isfinite(json.get<double>()))
        return {};
    return json.get<double>();
}

constexpr const char* farNames[] = {"far_forward", "far_input_gradient", "far_weight_gradient"};

std::optional<PytorchOperations> pytorchFromJson(const Json& json)
{
    if (!json.is_object())
        return {};
    PytorchOperations host;
    bool isWhole = true;
    const auto products = [&](const char* key, HostOperations& to) {
        const auto found = json.contains(key) ? hostOperationsFromJson(json[key]) : std::nullopt;
        isWhole = isWhole && found;
        to = found.value_or(HostOperations());
    };
    products("products", host.products);
    products("batched", host.batched);
    products("convolutions", host.convolutions);
    const auto number = [&](const char* key, double& to) {
        const auto found = json.contains(key) ? costAt(json[key]) : std::nullopt;
        isWhole = isWhole && found;
        to = found.value_or(0);
    };
    number("forward_call", host.forwardCall);
    number("backward_call", host.backwardCall);
    number("view_call", host.viewCall);
    number("update_call", host.updateCall);
    number("near_byte", host.nearByte);
    number("bandwidth", host.bandwidth);
    number("cache", host.cache);
    number("first_touch", host.firstTouch);
    number("far_byte", host.farByte);
    for (std::size_t i = 0; i < host.farOperand.size(); ++i)
        number(farNames[i], host.farOperand[i]);
    if (json.contains("retention"))
        number("retention", host.retention);
    if (json.contains("state")) {
        host.state.emplace();
        for (const auto& [key, seconds] : worksOfState) {
            const bool isThere = json["state"].is_object() && json["state"].contains(key);
            *host.state.*seconds = isThere ? costAt(json["state"][key]).value_or(0) : 0;
            isWhole = isWhole && *host.state.*seconds > 0;
        }
    }
    for (const char* const key : {"passes", "rates", "channelwise"})
        isWhole = isWhole && json.contains(key) && (json[key].is_object() || json[key].is_array());
    if (!isWhole || !(host.bandwidth > 0) || !(host.forwardCall > 0))
        return {};
    for (const auto& [name, pair] : json["passes"].items()) {
        const auto forward = pair.is_array() && pair.size() == 2 ? costAt(pair[0]) : std::nullopt;
        const auto backward = forward ? costAt(pair[1]) : std::nullopt;
        if (!backward)
            return {};
        host.passes[name] = {*forward, *backward};
    }
    for (const auto& [name, rate] : json["rates"].items()) {
        const auto found = costAt(rate);
        if (!found || !(*found > 0))
            return {};
        host.rates[name] = *found;
    }
    std::size_t at = 0;
    for (auto& ofWindow : host.channelwise) {
        for (double& one : ofWindow) {
            const Json& costs = json["channelwise"];
            const auto found = costs.is_array() && at < costs.size() ? costAt(costs[at]) : std::nullopt;
            if (!found)
                return {};
            one = *found;
            ++at;
        }
    }
    host.evidence = Evidence::Measured;
    return host;
}

} // namespace

PytorchOperations pytorchOperations(const Device& device)
{
    if (device.calibration && device.calibration->raw.is_object()) {
        const auto kept = device.calibration->raw.find("pytorch");
        if (kept != device.calibration->raw.end())
            if (const auto host = pytorchFromJson(*kept))
                return *host;
    }
    return typicalPytorch(device);
}

Json pytorchOperationsToJson(const PytorchOperations& host)
{
    Json channelwise = Json::array(), rates = Json::object();
    for (const auto& ofWindow : host.channelwise)
        for (const double one : ofWindow)
            channelwise.push_back(jsonNumber(one));
    for (const auto& [name, rate] : host.rates)
        rates[name] = jsonNumber(rate);
    Json json{{"products", hostOperationsToJson(host.products)},
              {"batched", hostOperationsToJson(host.batched)},
              {"convolutions", hostOperationsToJson(host.convolutions)},
              {"passes", passesToJson(host)},
              {"rates", std::move(rates)},
              {"channelwise", std::move(channelwise)},
              {"forward_call", jsonNumber(host.forwardCall)},
              {"backward_call", jsonNumber(host.backwardCall)},
              {"view_call", jsonNumber(host.viewCall)},
              {"update_call", jsonNumber(host.updateCall)},
              {"near_byte", jsonNumber(host.nearByte)},
              {"far_byte", jsonNumber(host.farByte)},
              {"bandwidth", jsonNumber(host.bandwidth)},
              {"cache", jsonNumber(host.cache)},
              {"first_touch", jsonNumber(host.firstTouch)}};
    for (std::size_t i = 0; i < host.farOperand.size(); ++i)
        json[farNames[i]] = jsonNumber(host.farOperand[i]);
    if (std::isfinite(host.retention))
        json["retention"] = host.retention;
    if (host.state)
        for (const auto& [key, seconds] : worksOfState)
            json["state"][key] = jsonNumber(*host.state.*seconds);
    return json;
}

} // namespace memscape
