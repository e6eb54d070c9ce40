// SPDX-License-Identifier: Apache-2.0
// What a model takes when it answers instead of learning: weights in the form they are stored in, and the
// cache of keys and values.
//
// weights  linear matrices of layers, and the output head where it is asked for, in the chosen form; everything else
//          (embeddings, norms, biases) in the precision that is computed in:
//            int8   n + 4 B per output channel (bitsandbytes LLM.int8, fp32 scales)
//            int4   n/2 + 4 B per group along the input (of 128 weights unless it is said): bf16 scale and zero point
//                   (torchao and gpt-fast, pack_tinygemm_scales_and_zeros)
//            nf4    n/2 + an fp32 scale per 64; nf4-double: the scales in 8 bits (core/network/quantized.h)
//            gptq   n/2 + (2 + 1/2) B per group + 4 B per input (the order of groups, g_idx); in 8 bits n + (2 + 1) B
//            awq    n/2 + (2 + 1/2) B per group
//            fp8    n + 4 B
//          as stored: GPT-OSS' experts in MXFP4, 17 B for 32 elements (OCP Microscaling Formats 1.0), all else as it is
//          and llama.cpp's mixtures, which quantize embeddings and head too (core/network/gguf_mixture.h)
// cache    2 × key/value heads × head dimension per token and layer; a sliding layer keeps its window; latent
//          attention keeps its rank and the rotary part once (DeepSeek-V2). int8: 2 B of scale per head and
//          token and side; int4: half a byte and 4 B (scale, zero point) per 32 elements (KIVI's groups); q8_0 and
//          q4_0: llama.cpp's blocks of 32 elements in 34 and 18 B.
//
// Sources: the formats of bitsandbytes, AutoGPTQ and AutoAWQ, whose own bytes a test compares
// (tests/data/pytorch/quantized_bytes.json); fp8 as torch._scaled_mm takes it, one scale per tensor;
// Liu et al. 2024 (KIVI). Left out: padding of
// matrices to a kernel's tile; prefixes that only some sequences share.
#pragma once

#include "core/network/gguf_mixture.h"
#include "core/network/inventory.h"

#include <string_view>

namespace memscape {

/// In which form weights are kept: one of these, or a mixture of llama.cpp's types.
struct StoredForm
{
    enum Kind {
        AsStored,
        Float32,
        BFloat16,
        Float16,
        Float8,
        Int8,
        Int4,
        NormalFloat4,
        NormalFloat4Double,
        Gptq,
        Gptq8,
        Awq,
        Gguf
    };
    Kind kind = AsStored;
    bool quantizesHead = false;              ///< linear layers outside of the blocks, too
    std::int64_t group = 128;                ///< weights along the input that share a scale (Int4, Gptq, Awq); 0: all
    GgufMixture mixture = GgufMixture::Q8_0; ///< of Gguf
    StoredForm() = default;
    StoredForm(Kind form)
        : kind(form)
    { }
    explicit StoredForm(GgufMixture form)
        : kind(Gguf)
        , mixture(form)
    { }
    bool isNormalFloat() const { return kind == NormalFloat4 || kind == NormalFloat4Double; }
};
Result<StoredForm> storedFormFromText(std::string_view text); ///< "stored", "fp32", …, "awq", "q4_k_m"

enum class CacheForm { BFloat16, Float16, Float32, Float8, Int8, Int4, Gguf8, Gguf4 };
Result<CacheForm> cacheFormFromText(std::string_view text);

/// Bytes of a matrix of `out` × `in` in that form, but Gguf; `plain` is the size of an element that is not
/// quantized.
std::int64_t matrixBytes(std::int64_t out, std::int64_t in, StoredForm form, std::int64_t plain);

/// Bytes of the weights on one of `tensorParallel` devices: matrices, embeddings and head are divided
/// (rounded up), norms are not. `computed` is the size of an element of what is not quantized.
/// Errors: those of inventory().
Result<std::int64_t> servedWeights(const ModelDescription& model, StoredForm form, std::int64_t computed,
                                   std::int64_t tensorParallel);

/// Whether that form has the tensor in 8 bits or fewer.
bool isQuantizedIn(const ModelTensor& tensor, StoredForm form);
/// Of the bytes that weights take in the type that is computed in, what they take as they are stored: of layers that
/// are quantized, and of experts; 1 where nothing is.
struct StoredShares
{
    double layers = 1, experts = 1;
};
/// Errors: those of inventory().
Result<StoredShares> storedShares(const ModelDescription& model, StoredForm form, std::int64_t computed);
/// B of one copy of it on one of `tensorParallel` devices.
std::int64_t servedTensorBytes(const ModelTensor& tensor, const ModelDescription& model, StoredForm form,
                               std::int64_t computed, std::int64_t tensorParallel);

/// Of these weights what stays in the host's memory though all layers are on a GPU, B: llama.cpp keeps the layer of
/// inputs there, and has a second copy on the device of a table that is the head, too (src/llama-model.cpp).
std::int64_t hostWeights(const Inventory& tensors, const ModelDescription& model, StoredForm form,
                         std::int64_t tensorParallel);

/// Weights that one step reads, B.
struct ReadWeights
{
    double plain = 0, quantized = 0; ///< the latter of matrices in 8 bits and fewer
    double bytes() const { return plain + quantized; }
};

/// Of the weights what one step reads that makes a token for each of `batch` sequences: of an embedding a row for each,
/// of a mixture the experts that some token is sent to, each as likely as another. Errors: those of servedWeights().
Result<ReadWeights> weightsReadByStep(const ModelDescription& model, StoredForm form, std::int64_t computed,
                                      std::int64_t tensorParallel, std::int64_t batch);

/// What the cache holds.
struct CacheUse
{
    std::int64_t batch = 1, context = 1; ///< so many sequences of so many tokens
    std::int64_t tensorParallel = 1;     ///< heads are divided, and never fewer than one
    std::int64_t page = 1;               ///< tokens of a page; a sequence's last one is partly empty (Kwon et al. 2023)
    std::int64_t sharedPrefix = 0;       ///< tokens with which all sequences begin; their whole pages are kept once
};

/// Bytes of it on one device. 0 without attention. Errors: model.size beyond 2^62.
Result<std::int64_t> cacheBytes(const ModelDescription& model, CacheForm form, const CacheUse& use);

} // namespace memscape
