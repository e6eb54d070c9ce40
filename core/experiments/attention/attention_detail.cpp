// SPDX-License-Identifier: Apache-2.0
// `detail` of a prediction of `attention`, for a page that walks over the tiles:
//   shape {"batch","heads","kv_heads","queries","keys","head_dim","causal","dtype","element_bytes"}
//   standard   {"version","name","teaches","steps": [{"name","flops","bytes","seconds"}],
//   "score_bytes"}:
//              score_bytes is one queries × keys array of all heads of one sequence of the batch
//   flash      {"version","name","teaches","steps", "log_sum_exp_bytes", "tile":
//   {"queries","keys"},
//              "tile_bytes_moved"}: log_sum_exp_bytes also of one sequence of the batch
//   on_chip    {"bytes","level","parts": [{"name","rows","columns","bytes"}]}
//   first_flash_tile  {"queries","keys"}: what Algorithm 1 of the first FlashAttention would choose
//   versions   {"standard": [...], "flash": [{"number","name","teaches","missing"}]}
//   softmax    {"maximum","sum","rescale"}: of one query of normally distributed scores, after
//   every
//              tile of keys: an example of the recurrence, computed, not measured
#include "core/experiments/attention/attention.h"

#include "core/access/random.h"

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

constexpr std::int64_t exampleKeys = 65'536; ///< scores of the example at most

Json stepsJson(const AttentionAnswer& answer)
{
    Json steps = Json::array();
    for (const AttentionStep& step : answer.cost.steps)
        steps.push_back({{"name", step.name},
                         {"flops", jsonNumber(step.flops)},
                         {"bytes", jsonNumber(step.bytes)},
                         {"seconds", jsonNumber(step.seconds)}});
    return steps;
}

Json kindJson(const AttentionAnswer& answer)
{
    return {{"version", answer.version.number},
            {"name", answer.version.name},
            {"teaches", answer.version.teaches},
            {"hbm_bytes", jsonNumber(answer.cost.bytes)},
            {"steps", stepsJson(answer)}};
}

Json tileJson(const AttentionTile& tile)
{
    return {{"queries", tile.queries}, {"keys", tile.keys}};
}

AttentionTile tileOf(const AttentionAnswers& answers)
{
    const AttentionPass pass =
        answers.pass == AttentionPass::Backward ? AttentionPass::Backward : AttentionPass::Forward;
    AttentionTile tile = answers.flash->version.tile(answers.shape.headDim, pass);
    if (tile.queries == 0)
        tile = {1, 1}; // a row and a key at a time
    return tile;
}

Json partJson(const char* name, std::int64_t rows, std::int64_t columns, double element)
{
    return {{"name", name},
            {"rows", rows},
            {"columns", columns},
            {"bytes", jsonNumber(double(rows) * double(columns) * element)}};
}

Json onChipJson(const Device& device, const AttentionAnswers& answers)
{
    const AttentionTile tile = tileOf(answers);
    const std::int64_t d = answers.shape.headDim;
    // A host converts what it loads, a GPU keeps the format; sums are floats on both.
    const double e = device.isGpu() ? double(elementBytes(answers.dtype)) : 4;
    return {{"bytes", jsonNumber(onChipBytes(device))},
            {"level", device.isGpu() ? "shared memory of one SM" : "L2 of one core"},
            {"tiles", jsonNumber(tileFootprint(device, tile, d, answers.dtype))},
            {"parts",
             {partJson("Q", tile.queries, d, e), partJson("K", tile.keys, d, e), partJson("V", tile.keys, d, e),
              partJson("S", tile.queries, tile.keys, 4), partJson("O", tile.queries, d, 4)}}};
}

Json versionsJson(const Device& device, const AttentionAnswers& answers, AttentionKind kind)
{
    Json all = Json::array();
    AttentionProblem problem = answers.any().problem;
    problem.kind = kind;
    for (const AttentionVersion& version : attentionVersions(kind, device.isGpu())) {
        Json entry{{"number", version.number}, {"name", version.name}, {"teaches", version.teaches}};
        if (const auto can = supports(version, problem, device.isGpu(), attentionCapability(device)); !can)
            entry["missing"] = can.error().text();
        all.push_back(std::move(entry));
    }
    return all;
}

/// Bell-shaped around 0 with variance 1: the sum of three uniform numbers.
double normalScore(SplitMix64& random)
{
    double sum = 0;
    for (int i = 0; i < 3; ++i)
        sum += double(random.next() >> 11) * 0x1p-52 - 1;
    return sum;
}

Json softmaxJson(const AttentionAnswers& answers)
{
    const std::int64_t tile = std::max<std::int64_t>(tileOf(answers).keys, 64);
    Json maxima = Json::array(), sums = Json::array(), factors = Json::array();
    SplitMix64 random(5);
    double maximum = -INFINITY, sum = 0;
    const std::int64_t keys = std::min(answers.shape.keys, exampleKeys);
    for (std::int64_t first = 0; first < keys; first += tile) {
        std::vector<double> scores;
        for (std::int64_t key = first; key < std::min(first + tile, keys); ++key)
            scores.push_back(normalScore(random));
        const double raised = std::max(maximum, *std::ranges::max_element(scores));
        const double factor = std::exp(maximum - raised); // 0 before the first tile
        sum *= factor;
        for (const double score : scores)
            sum += std::exp(score - raised);
        maximum = raised;
        maxima.push_back(jsonNumber(maximum));
        sums.push_back(jsonNumber(sum));
        factors.push_back(jsonNumber(factor));
    }
    return {{"tile", tile}, {"maximum", std::move(maxima)}, {"sum", std::move(sums)}, {"rescale", std::move(factors)}};
}

} // namespace

Json attentionDetail(const Device& device, const AttentionAnswers& answers)
{
    const AttentionShape& shape = answers.shape;
    const double heads = double(shape.heads * shape.queries);
    Json detail{{"shape",
                 {{"batch", shape.batch},
                  {"heads", shape.heads},
                  {"kv_heads", shape.kvHeads},
                  {"queries", shape.queries},
                  {"keys", shape.keys},
                  {"head_dim", shape.headDim},
                  {"causal", shape.causal},
                  {"dtype", dtypeText(answers.dtype)},
                  {"pass", attentionPassText(answers.pass)},
                  {"element_bytes", elementBytes(answers.dtype)}}}};
    if (answers.standard) {
        detail["standard"] = kindJson(*answers.standard);
        detail["standard"]["score_bytes"] =
            jsonNumber(heads * double(shape.keys) * double(elementBytes(answers.dtype)));
    }
    if (answers.flash) {
        detail["flash"] = kindJson(*answers.flash);
        detail["flash"]["log_sum_exp_bytes"] = jsonNumber(4 * heads);
        detail["flash"]["tile"] = tileJson(tileOf(answers));
        detail["flash"]["tile_bytes_moved"] = jsonNumber(answers.flash->cost.tileBytes);
        detail["on_chip"] = onChipJson(device, answers);
        detail["softmax"] = softmaxJson(answers);
        detail["first_flash_tile"] = tileJson(firstFlashTile(onChipBytes(device), shape.headDim, answers.dtype));
    }
    detail["versions"] = {{"standard", versionsJson(device, answers, AttentionKind::Standard)},
                          {"flash", versionsJson(device, answers, AttentionKind::Flash)}};
    return detail;
}

} // namespace memscape
