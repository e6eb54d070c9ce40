// SPDX-License-Identifier: Apache-2.0
// The most memory that weights take while they are loaded, and while they are quantized on their way.
//
// Direct: safetensors are mapped; tensor by tensor goes to the device, sorted by name (before transformers 5 in the
// order of the files, the model's). A type that differs from the file's is made on the processor, by four threads. What
// is quantized as it comes lies beside its quantized form, one tensor at a time. bitsandbytes' 4 bits: 2 B an element,
// n/2 and an fp32 scale per 64. Its 8 bits: a copy in fp16 and the bytes; beside them what was loaded, as transformers
// 5 sends it back to the processor in between. torchao: 2 B an element and its own form. A head in the file whose
// weight the model shares is there until all is loaded. Experts are stacked, and a layer's gate and up projections
// joined behind that (transformers 5): once more what they are.
//
// Host: the same on the processor, then parameter after parameter is moved. As the file has it, a weight is a mapped
// page and takes nothing; another type is a copy, and before transformers 4.50 every model was made in full first.
// bitsandbytes quantizes on the device in any case.
//
// StateDict: torch.load() beside a model in the host's memory. OnDevice: the same with map_location="cuda" beside a
// model on the device.
//
// InPlace: vLLM, LitGPT. Parameters are made on the device first and filled. bitsandbytes quantizes each once more,
// beside what was made; FP8 of 16 bits is there as a whole in 16 bits; GPTQ and AWQ are repacked (Marlin), each matrix
// beside its copy.
//
// Mapped: llama.cpp maps the file; what the device runs is copied there.
//
// Host memory is what a process keeps for itself (RssAnon); pages of a mapped file come on top while there is room.
// Against SmolLM2 135M as transformers 5.24 loads it (tests/data/pytorch/loading_memory.py): 12 to 16 MB less than the
// process grew by, in five ways.
//
// Sources: transformers 5.24, core_model_loading.py (spawn_materialize, MergeModulelist), modeling_utils.py
// (_load_pretrained_model, tie_weights), integrations/bitsandbytes.py, integrations/torchao.py; bitsandbytes,
// nn/modules.py (_quantize); Lightning, fabric/plugins/precision/bitsandbytes.py; vLLM,
// model_executor/layers/quantization (fp8.py, gptq_marlin.py, awq_marlin.py), model_loader; llama.cpp,
// src/llama-model.cpp. Left out: temporary tensors of torchao's own quantizing, the driver's buffers for pageable
// memory, Python and its libraries.
#pragma once

#include "core/network/build_options.h"
#include "core/training/serving.h"

namespace memscape {

enum class LoadingWay : std::uint8_t { Direct, Host, StateDict, OnDevice, InPlace, Mapped };

struct LoadingPlan
{
    LoadingWay way = LoadingWay::Direct;
    StoredForm form = {}; ///< in which weights stay
    StoredForm file = {}; ///< of the file; a type that is not quantized where they are quantized as they come
    std::int64_t computed = 2, tensorParallel = 1;
    bool hasLooseHead = false;    ///< a head in the file that the model ties when all is loaded
    bool transposesBytes = false; ///< LLM.int8 of old bitsandbytes makes a transposed copy, too (CBt)
    Transformers transformers = Transformers::From524;

    /// What is loaded is not what stays.
    bool quantizes() const;
};

/// B. On one device; in the host's memory for one process, and of the file's pages there.
struct LoadingPeak
{
    std::int64_t device = 0, host = 0, mapped = 0;
};

/// Errors: those of servedWeights().
Result<LoadingPeak> loadingPeak(const ModelDescription& model, const LoadingPlan& plan);

} // namespace memscape
