// SPDX-License-Identifier: Apache-2.0
// The network that LitGPT (litgpt/model.py, 2024 and later) makes of the same weights as transformers: one GPT class
// for all of them.
//
//   queries, keys and values come from one matrix; values are a view of its result, which stays as long as they do
//   keys and values that heads share are copied for each head
//   RMSNorm computes in fp32 to its end, its weight too; GELU is one kernel; gate and up are two matrices
//   the head is a matrix of its own, also where the weights are those of the embedding
//   LoRA of queries, keys and values is one layer: one dropout, one A of r rows for each of them (adapters.cpp)
//   Lightning's Fabric converts the logits to fp32; their loss is computed 128 tokens at a time
//   (families/language_head.cpp)
//
// Left out: fp32 tables of rotary positions, whose products with queries and keys are fp32 for a moment; Gemma's
// scaling of embeddings and its 1 + weight; LoRA of the head.
#pragma once

#include "core/base/result.h"
#include "core/network/model.h"

namespace memscape {

inline constexpr std::string_view litGptArchitecture = "litgpt";
bool isLitGpt(const ModelDescription& model);
/// Errors: model.library for architectures that it has no network for.
Result<ModelDescription> asLitGpt(ModelDescription model);

} // namespace memscape
