// SPDX-License-Identifier: Apache-2.0
#include "core/training/lora.h"

#include "core/base/text.h"
#include "core/training/sharding.h"

#include <algorithm>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr std::int64_t quantizedBlock = 64;
constexpr std::int64_t nestedBlock = 256;

/// "layers.3.attn.q_proj.weight" -> "layers.3.attn.q_proj"
std::string_view moduleName(std::string_view name)
{
    return name.substr(0, std::min(name.rfind('.'), name.size()));
}

ParameterTensor adapter(const ParameterTensor& base, std::string_view part, std::int64_t rows, std::int64_t columns)
{
    return {fmt::format("{}.{}.weight", moduleName(base.name), part),
            {rows, columns},
            rows * columns,
            true,
            false,
            base.module};
}

} // namespace

bool hasAdapter(const ParameterTensor& parameter, const LoraPlan& lora)
{
    if (!parameter.isMatrix())
        return false;
    if (lora.targets.empty())
        return !parameter.isEmbedding;
    const std::string_view module = moduleName(parameter.name);
    const std::size_t dot = module.rfind('.');
    const std::string_view last = dot == module.npos ? module : module.substr(dot + 1);
    return std::find(lora.targets.begin(), lora.targets.end(), last) != lora.targets.end();
}

Result<std::vector<ParameterTensor>> withAdapters(const std::vector<ParameterTensor>& parameters, const LoraPlan& lora)
{
    std::vector<ParameterTensor> all;
    bool hasAny = false;
    for (const ParameterTensor& parameter : parameters) {
        all.push_back(parameter);
        all.back().isTrained = false;
        if (!hasAdapter(parameter, lora))
            continue;
        const std::int64_t out = parameter.shape[0], in = parameter.shape[1];
        if (lora.rank > std::min(in, out))
            return fail(
                "plan.range",
                fmt::format("rank {} exceeds the smaller side of {} ({} x {})", lora.rank, parameter.name, out, in));
        all.push_back(adapter(parameter, "lora_A", lora.rank, in));
        all.push_back(adapter(parameter, "lora_B", out, lora.rank));
        hasAny = true;
    }
    if (!hasAny)
        return fail("plan.lora", "no matrix of this network gets an adapter",
                    fmt::format("targets: {}", join(lora.targets, ", ")));
    return all;
}

bool isQuantized(const ParameterTensor& parameter, const Plan& plan)
{
    return plan.lora && plan.lora->isQuantized && !parameter.isTrained && parameter.isMatrix()
        && !parameter.isEmbedding;
}

std::int64_t normalFloatBytes(std::int64_t elements)
{
    const std::int64_t blocks = piece(elements, quantizedBlock);
    const std::int64_t offset = 4, codes = (16 + 256) * 4;
    return piece(elements, 2) + blocks + 4 * piece(blocks, nestedBlock) + offset + codes;
}

} // namespace memscape
