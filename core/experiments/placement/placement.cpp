// SPDX-License-Identifier: Apache-2.0
// placement: what does it cost when tensors and layers live elsewhere?
//
// A graph of operators (core/placement/operator_graph.h) is placed by a strategy (placement_search.h), which makes a
// program of operators and copies (placed_program.h); its time is the longest path through its lanes, its peak is
// counted. Rates: placement_model.cpp. Left out: several GPUs, several sockets, files that are read as they are needed.
#include "core/experiments/placement/placement.h"

#include "core/claims/claim_quotes.h"
#include "core/experiment/schema.h"
#include "core/experiments/common/idle_parameters.h"
#include "core/experiments/common/judged_number.h"
#include "core/experiments/memory/memory_parameters.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace memscape {

std::vector<ChoiceValue> placementStrategyChoices(); // placement_case.cpp

namespace {

Schema placementSchema()
{
    ParameterSpec format = choiceSpec("format", "format", "What a GPU computes in; a CPU computes in FP32.",
                                      {{"half", "half", "2 B: BF16, on older GPUs FP16"}, {"fp32", "FP32", "4 B"}});
    format.appliesTo = AppliesTo::Gpus;
    ParameterSpec link = choiceSpec("link", "link", "Where the host keeps what is copied to a GPU.",
                                    {{"pinned", "pinned", "page-locked: a copy engine moves it"},
                                     {"pageable", "pageable", "ordinary memory, which the driver stages"}});
    link.appliesTo = AppliesTo::Gpus;
    Schema schema{
        textSpec("graph", "graph",
                 "What runs: a model (gpt2, llama-2-7b, params:13e9 …), a chain mlp:8x1024, or a graph of your own, a "
                 "statement for each tensor: x: input 512 4096; m@host: input 512 4096; a: matmul 512 4096 4096 <- x; "
                 "b: mul <- a m; n: item <- b. Operators: matmul m n k, add, mul, relu, gelu; copies: cpu, gpu, item.",
                 "mlp:8x1024", 1, 65536),
        choiceSpec("strategy", "strategy", "Who decides what lives where.", placementStrategyChoices()),
        integerSpec("limit", "limit", "Memory of the device that may be used.",
                    {.least = 1, .most = 0x1p53, .standard = "16MiB", .unit = Unit::Byte, .scale = Scale::Log2}),
        textSpec("place", "placed by hand",
                 "Operators that run where you say, whatever the strategy: layer3@host, gelu3@host.", "none", 1),
        integerSpec("batch", "batch", "Rows of a chain's input; sequences of a model.",
                    {.least = 1, .most = 65536, .standard = "64", .scale = Scale::Log2}),
        integerSpec("sequence", "sequence", "Tokens of each sequence of a model.",
                    {.least = 1, .most = 1048576, .standard = "512", .scale = Scale::Log2, .suffix = "tokens"}),
        std::move(format),
        integerSpec("prefetch", "prefetch",
                    "Layers whose weights come up before they are due; 0: each copy is waited for.",
                    {.most = 16, .standard = "1", .suffix = "layers"}),
        flagSpec("overlap", "overlap",
                 "Training: gradients go down while backward runs, new weights come up while the host updates.", true),
        std::move(link),
        realSpec("host_bandwidth", "host memory", "Of a GPU's host: what its cores stream from and to memory.",
                 {.least = 1e8,
                  .most = 1e14,
                  .standard = "100GB/s",
                  .unit = Unit::BytePerSecond,
                  .scale = Scale::Log2,
                  .appliesTo = AppliesTo::Gpus}),
        realSpec("host_flops", "host arithmetic", "Of a GPU's host: what its cores reach in products.",
                 {.least = 1e8,
                  .most = 1e16,
                  .standard = "2TFLOP/s",
                  .unit = Unit::FlopPerSecond,
                  .scale = Scale::Log2,
                  .appliesTo = AppliesTo::Gpus}),
        realSpec(
            "disk", "disk",
            "ZeRO-Infinity: rate of the disk that holds the optimizer's state, both ways; 0: host memory holds it.",
            {.most = 1e13,
             .standard = "0",
             .unit = Unit::BytePerSecond,
             .scale = Scale::Log2,
             .words = {{"0", "none", "the host's memory holds the state"}},
             .appliesTo = AppliesTo::Gpus}),
        assumeSpec(),
    };
    setGroup(schema, "details", {"assume"});
    setGroup(schema, "rates and links", {"link", "host_bandwidth", "host_flops", "disk"});
    return schema;
}

class PlacementExperiment final : public Experiment
{
public:
    std::string id() const override { return "placement"; }
    std::string title() const override { return "Placement"; }
    std::string question() const override { return "What does it cost when tensors and layers live elsewhere?"; }
    std::string group() const override { return "training"; }
    std::string help() const override
    {
        return "Operators run on the device or on the host, and what they read has to be there: a copy for each tensor "
               "that crosses, hidden ones such as .item() and .cpu() included. Weights may live on the host and come "
               "up layer by layer, some ahead of their use. The time is the longest path through the lanes of both "
               "processors and the copies, the peak is counted step by step. Training with its optimizer on the host "
               "is ZeRO-Offload, with its weights there, too, ZeRO-Infinity. A CPU measures it with a pool that has a "
               "limit as the device; a GPU in FP32, with a part of its own memory, pinned memory of the host and a "
               "stream for each direction, which has not been run on a GPU yet. Left out: several GPUs, and lanes "
               "that slow each other down.";
    }
    bool isThroughMemory(const Device&) const override { return false; }
    const Schema& schema() const override { return m_schema; }
    std::vector<std::string> idleParameters(const Device& device, const Parameters& parameters) const override;
    ParameterTexts standardOn(const Device& device) const override
    {
        return device.isGpu() ? ParameterTexts{{"graph", "llama-2-7b"}, {"batch", "1"}, {"limit", "8GiB"}}
                              : ParameterTexts{};
    }
    std::vector<std::string> headlines() const override { return {"time", "peak", "transferred", "hidden_time"}; }
    ShortAnswer shortAnswer(const Device& device, const Parameters& parameters, const Figures& figures) const override;
    std::vector<SeriesSpec> series() const override
    {
        return {{"time", "time"},          {"compute_time", "computing alone"}, {"transfer_time", "copies alone"},
                {"hidden_time", "hidden"}, {"peak", "peak on the device"},      {"transferred", "moved over the link"}};
    }
    Sweep axis(const Device& device, const Parameters& parameters) const override;
    Result<Figures> predictPoint(const Device& device, const Parameters& parameters) const override
    {
        return predictedPlacement(device, parameters);
    }
    Json predictDetail(const Device& device, const Parameters& parameters) const override
    {
        return placementDetail(device, parameters);
    }

private:
    Schema m_schema = placementSchema();
};

bool isOwnGraph(const Parameters& parameters)
{
    return isGraphText(parameters.text("graph"));
}

std::vector<std::string> PlacementExperiment::idleParameters(const Device& device, const Parameters& parameters) const
{
    std::vector<std::string> idle = Experiment::idleParameters(device, parameters);
    const std::vector<std::string> assumption = idleAssumption(parameters.text("graph"));
    idle.insert(idle.end(), assumption.begin(), assumption.end());
    const std::string& strategy = parameters.choice("strategy");
    const bool trains = strategy.starts_with("zero-");
    const bool isMlp =
        parameters.text("graph").starts_with("mlp:") && parameters.text("graph").find(',') == std::string::npos;
    if (isOwnGraph(parameters))
        idle.emplace_back("batch");
    if (isOwnGraph(parameters) || isMlp)
        idle.emplace_back("sequence");
    if (trains)
        idle.emplace_back("place");
    if (!trains)
        idle.emplace_back("overlap");
    const bool streams = strategy == "layers" || strategy == "cheapest" || strategy == "zero-infinity";
    if (!streams && (trains || strategy == "host"))
        idle.emplace_back("prefetch");
    const bool isListed = std::ranges::find(idle, "disk") != idle.end();
    if (strategy != "zero-infinity" && !isListed)
        idle.emplace_back("disk");
    return idle;
}

/// Limits from the least to what holds everything, where the strategy heeds them; elsewhere the batch.
Sweep PlacementExperiment::axis(const Device& device, const Parameters& parameters) const
{
    const std::string& strategy = parameters.choice("strategy");
    const bool heeds = strategy == "layers" || strategy == "cheapest";
    if (!heeds && !isOwnGraph(parameters)) {
        Sweep sweep{"batch", {}};
        for (double batch = 1; batch <= 256; batch *= 4)
            sweep.values.emplace_back(batch);
        return sweep;
    }
    Sweep sweep{"limit", {parameters.number("limit")}};
    const auto asked = placementCase(device, parameters);
    const auto rates = asked && heeds ? placementSeconds(device, parameters, *asked)
                                      : tl::unexpected<Error>(Error{"placement.limit", ""});
    if (!rates)
        return sweep;
    const PlacementMachine machine{*rates, asked->sharing};
    const auto most = placementOf(asked->graph, uniformWays(asked->graph, Place::Device), 0, machine).peak;
    const auto least = strategy == "layers"
        ? leastLayersLimit(asked->graph, asked->prefetch, machine)
        : placementOf(asked->graph, uniformWays(asked->graph, Place::Host), asked->prefetch, machine).peak;
    constexpr int points = 8;
    sweep.values.clear();
    for (int i = 0; i < points; ++i)
        sweep.values.emplace_back(std::ceil(double(least) + double(most - least) * i / (points - 1)));
    return sweep;
}

ShortAnswer PlacementExperiment::shortAnswer(const Device&, const Parameters& parameters, const Figures& figures) const
{
    for (const char* key : {"time", "peak", "compute_time", "transfer_time", "hidden_time", "transferred"}) {
        const Figure* const one = findFigure(figures, key);
        if (!one || !std::isfinite(one->number()))
            return {};
    }
    const auto text = [&](const char* key) { return findFigure(figures, key)->text(); };
    const double hidden = findFigure(figures, "hidden_time")->number(),
                 copies = findFigure(figures, "transfer_time")->number();
    const bool trains = parameters.choice("strategy").starts_with("zero-");
    ShortAnswer answer{{}, "time", false, {"prefetch", trains ? "overlap" : "limit"}};
    const char* const what = trains ? "A step" : "It";
    answer.sentence = fmt::format("{} takes {} and {} of the device; computing alone takes {}", what, text("time"),
                                  text("peak"), text("compute_time"));
    if (!(copies > 0))
        answer.sentence += ", and nothing is copied.";
    else
        answer.sentence +=
            fmt::format(", copies of {} take {}, of which {} is hidden.", text("transferred"), text("transfer_time"),
                        hidden > 0.005 * copies ? percentText(std::min(1.0, hidden / copies)) : std::string("nothing"));
    const Figure* const fits = findFigure(figures, "fits");
    if (fits && fits->text() != "yes")
        answer.sentence.insert(0, "It does not fit the limit. ");
    return answer;
}

} // namespace

const Experiment& placementExperiment()
{
    static const PlacementExperiment experiment;
    return experiment;
}

} // namespace memscape
