// SPDX-License-Identifier: Apache-2.0
#include "kernels/pytorch/described_model.h"

#include "core/network/inventory.h"
#include "core/network/model_names.h"

#include <nlohmann/json.hpp>

namespace memscape {

namespace {

std::string_view activationText(ActivationKind kind)
{
    switch (kind) {
    case ActivationKind::Relu: return "relu";
    case ActivationKind::GeluNew: return "gelu_new";
    default: return "";
    }
}

} // namespace

Json describedModel(const std::string& text)
{
    const auto model = readModel(text, UnknownArchitecture::LikeLlama);
    if (!model)
        return {};
    const auto tensors = inventory(*model);
    return {{"name", model->name},
            {"parameters", tensors ? Json(tensors->total) : Json()},
            {"architecture", model->architecture},
            {"family", familyText(model->family)},
            {"layers", model->layers},
            {"hidden", model->hidden},
            {"heads", model->heads},
            {"kv_heads", model->kvHeads},
            {"head_dim", model->headDim},
            {"ffn", model->ffn},
            {"vocab", model->vocab},
            {"positions", model->maxPositions},
            {"remainder", model->remainder},
            {"tied", model->tied},
            {"activation", activationText(model->activation)},
            {"mlp", model->mlpSizes},
            {"stored", model->storedDtype}};
}

} // namespace memscape
