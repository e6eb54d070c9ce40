// SPDX-License-Identifier: Apache-2.0
// What vLLM's worker finds to be taken when it profiles itself at its start: the largest batch that its scheduler may
// send goes through the model, and a token is sampled for as many sequences as may run at once, with top-k and top-p.
// The sampler sorts all their logits, and that is the peak of most models:
//
//   sequences × vocabulary × (logits as computed + 4 in fp32 + 4 sorted + 8 their places      (Tensor.sort's results)
//                             + 8 places before + 4 and 8 of CUB's second buffers)            (torch.sort of ≥ 128
//                             rows)
//   + tokens × hidden × element of the last hidden states, which stay
//
// With 1024 sequences and 128,256 tokens in BF16 these are 4.65 GiB of the 4.76 that vLLM reports for Llama 3.1 8B.
// Tokens and sequences are the defaults of `vllm serve`: until version 0.8 one sequence of the longest context (2048
// tokens at least; a context above 32,768 goes in chunks of 2048) and 256 sequences; since 0.9 2048 tokens and 256
// sequences, on GPUs of 70 GiB and more other than A100 8192 and 1024.
//
// Sources: vllm/worker/model_runner.py (profile_run), vllm/v1/worker/gpu_model_runner.py (_dummy_sampler_run),
// vllm/v1/sample/ops/topk_topp_sampler.py, vllm/engine/arg_utils.py (pull request 17885; use_long_context); PyTorch's
// aten/src/ATen/native/cuda/SortStable.cu. Left out: FlashInfer's sampler (no sort), what libraries take outside of
// PyTorch (0.13 GiB on one H100), vision towers' own profile.
#pragma once

#include "core/network/model.h"

#include <cstdint>

namespace memscape {

/// What goes through the model while vLLM profiles.
struct VllmProfile
{
    std::int64_t tokens = 2048, sequences = 256;
};

/// Of `vllm serve` without arguments on a GPU of `capacity` bytes. `isRecent`: 0.9 and later.
VllmProfile vllmProfile(bool isRecent, std::int64_t capacity, bool isA100, std::int64_t context);

/// B beside the weights while a token is sampled for each sequence. `element`: B of an activation.
std::int64_t samplerBytes(const ModelDescription& model, const VllmProfile& profile, std::int64_t element);

} // namespace memscape
