// SPDX-License-Identifier: Apache-2.0
#include "core/network/litgpt.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

namespace memscape {

namespace {

/// model_types of checkpoints that LitGPT converts (litgpt/scripts/convert_hf_checkpoint.py). Left out: those whose
/// queries and keys have norms, mixtures of experts.
constexpr std::string_view convertedTypes[] = {"llama", "mistral", "gemma", "gemma2",   "falcon",
                                               "phi",   "phi3",    "qwen2", "gpt_neox", "stablelm"};

} // namespace

bool isLitGpt(const ModelDescription& model)
{
    return model.architecture == litGptArchitecture;
}

Result<ModelDescription> asLitGpt(ModelDescription model)
{
    const bool isConverted = model.family == Family::Decoder && model.vision.layers == 0 && model.experts.count == 0
        && !model.queryKeyNorm && !model.queryKeyNormWhole && !model.stored
        && std::find(std::begin(convertedTypes), std::end(convertedTypes), model.architecture)
            != std::end(convertedTypes);
    if (!isConverted)
        return fail(
            "model.library", fmt::format("{} is not modelled as LitGPT's network", model.name),
            "choose library=transformers, or a LLaMA, Mistral, Gemma, Falcon, Phi, Qwen 2, GPT-NeoX or StableLM",
            "library");
    if (model.activation == ActivationKind::GeluNew)
        model.activation = ActivationKind::GeluTanh;
    model.architecture = litGptArchitecture;
    model.tied = false;
    return model;
}

} // namespace memscape
