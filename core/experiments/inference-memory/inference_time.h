// SPDX-License-Identifier: Apache-2.0
// How long an answer takes: the prompt first, then token by token.
//
//     prefill  one forward pass over `sequence` tokens of each sequence, operator by operator (core/timing)
//     decode   one token for each sequence:
//              max(weights read / bandwidth, 2 × active parameters × batch / reached rate)
//              + max(cache read / bandwidth, FLOPs of attention / reached rate)
//              + kernels + communication + what the host does between tokens
//     answer   prefill + (context − sequence) tokens, with the cache that they have on average
// With few sequences the weights rule, which every step reads once whatever the batch; with many, or a long context,
// the cache, which each sequence has of its own (Pope et al. 2022, arXiv:2211.05102).
//
// Who generates decides the rest (Library). An engine joins kernels and captures them in a graph (token_kernels.h).
// Kernels of 2023 read keys and values once for each query head that shares them: TensorRT-LLM before its XQA
// (docs/source/blogs/XQA-kernel.md), vLLM's PagedAttention, FlashAttention 2.0 (pytorch.org, Flash-Decoding: 0.39 ms
// with 16 query and 2 key heads, 0.06 ms once they were read together). llama.cpp without flash attention (its default
// until August 2025) multiplies one query head after the other, too (ggml-cuda.cu, ggml_cuda_mul_mat_vec_p021 and _nc:
// a block column of each head). vLLM's scheduler runs between tokens; llama.cpp
// had a kernel for each operator, and captures fewer in a graph now (llamaCppKernels). AutoAWQ's fused modules wait for
// their Python where that is slower than the device (fusedLoop): on an A100 a token takes 10.6 ms behind 32 as behind
// 1,024 (its issue 276). A loop of eager PyTorch takes max(decode, its host's calls and kernels + 4-bit layers),
// measured constants (device_kernels.h; core/timing/eager_calls.h says what a view or a module is to a host).
//
// Falcon cuts its keys and its values out of a product by lists (fused_qkv[..., [-2], :]: transformers'
// modeling_falcon.py, of 40B qkv[:, :, :, [-2]]; TinyChat's models/falcon.py and AutoAWQ's modules/fused/attn.py).
// PyTorch makes a tensor of such a list, copies it to the GPU and waits for the stream
// (aten/src/ATen/native/IndexingUtils.h; pytorch/pytorch, pull request 186484): two calls more of the host and a small
// copy, twice a layer. What the host asks for from there to the next product does not run beside the device, which has
// nothing to do meanwhile.
//
// bitsandbytes has a kernel that reads 4-bit weights for one token alone; for more it writes them in half and
// multiplies those (bitsandbytes/autograd/_functions.py, matmul_4bit). A cache that grows by copies is read and written
// for it; transformers before 4.48 also copied each key head for its query heads (repeat_kv), by PyTorch's kernel of
// repeated operands, whose instructions hold it (eager_kernels.h), and attention read those.
// An engine joins what stands between a prompt's products, too, which is predicted as torch.compile's kernels, and
// weights in FP8 multiply it in FP8 where the device has that. Experts that some token is sent to run together, and
// weights are read as they are stored (core/timing/joined_operators.h); TensorRT's prompt is a graph, whose kernels
// follow each other as a token's do. Left out: kernels for quantized weights that stay below the bandwidth, and their
// instructions; prompts longer than `sequence`, which take more such passes over a longer cache; sequences of several
// lengths; sampling. A draft model: speculative_time.h.
#pragma once

#include "core/device/device.h"
#include "core/experiment/outcome.h"
#include "core/network/model.h"
#include "core/training/serving.h"
#include "core/training/simulation.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

namespace memscape {

/// What generates.
enum class Library : std::uint8_t {
    Engine,       ///< TensorRT-LLM, LMDeploy, gpt-fast: nothing between tokens
    Engine2023,   ///< the same, whose attention reads grouped keys once for each query head
    Vllm05,       ///< an engine whose scheduler runs, and outputs are processed, between tokens
    Vllm,         ///< of it the scheduler
    Vllm09,       ///< nothing: version 0.9 and later
    TensorRt,     ///< activations within products, a prompt in a graph, too
    LlamaCpp2023, ///< a kernel for each operator, launched one by one
    LlamaCpp,     ///< fewer, and a token's in a graph
    AutoAwq       ///< its fused modules in a loop of Python
};

/// What is served; bytes are of one device.
struct Serving
{
    std::int64_t batch = 1, context = 1, sequence = 1;
    ReadWeights weightsRead;   ///< by one step
    double cacheRead = 0;      ///< B, of every key once
    double queryHeads = 1;     ///< on one device
    double queriesPerKey = 1;  ///< of them
    bool isFourBit = false;    ///< weights in NF4
    bool isQuantized = false;  ///< weights in 8 bits or fewer
    StoredShares stored;       ///< of weights
    bool isHeadStored = false; ///< the output head in as few bits
    bool isEightBit = false;   ///< quantized ones in 8 bits, not in fewer
    bool hasExperts = false;
    bool isAwq = false;
    bool isGptq = false;         ///< in 4 bits
    bool isFloat8 = false;       ///< weights in FP8
    bool isCacheCopied = false;  ///< for every token, by a loop of eager PyTorch
    bool areHeadsCopied = false; ///< by that loop, for the query heads that share them
    bool writesScores = false;   ///< llama.cpp without flash attention, whose products take one query head at a time
    Library library = Library::Engine;
    std::int64_t tokens = 1; ///< of each sequence in a decoding step

    bool isVllms() const
    {
        return library == Library::Vllm || library == Library::Vllm05 || library == Library::Vllm09;
    }
    /// Its 4-bit products are Marlin's.
    bool isMarlins() const { return (isAwq || isGptq) && isVllms(); }
    /// Small all-reduces are by kernels of the engine's own: vLLM's since 0.3, TensorRT-LLM's since 0.7, PyTorch's
    /// within gpt-fast; FasterTransformer, DeepSpeed-Inference and engines of 2023 ask NCCL.
    bool reducesItself() const { return library != Library::Engine2023; }
    /// Keys are read again for each query head that shares them.
    bool readsKeysAgain() const { return (library == Library::Engine2023 || writesScores) && queriesPerKey > 1; }
    /// B that attention reads.
    double keysRead() const { return readsKeysAgain() ? cacheRead * queriesPerKey : cacheRead; }
};

struct ServingTime
{
    Serving of;
    double prefill = nan;                                         ///< s
    double weights = nan, cache = nan, launches = 0, exposed = 0; ///< s, the parts of a decoding step
    std::vector<Term> collectives = {};                           ///< of `exposed`: s of each kind, and who does it
    double kernels = 0;                                           ///< of a decoding step
    double between = 0;                                           ///< s of the host from a token to the next
    double loopHost = 0;                                          ///< s of a loop's host meanwhile; 0: a graph
    double prefillLow = nan, prefillHigh = nan;                   ///< s, the band of the pass (step_band.h)
    double eagerKernels = 0, eagerLaunches = 0;                   ///< of a loop of eager PyTorch, s
    double eagerCalls = 0;                                        ///< of its host (core/timing/eager_calls.h)
    double eagerPass = 0;                                         ///< s, its operators one by one; 0: quantized weights
    double copies = 0;                                            ///< s of the cache's copies in such a loop
    double ahead = 0;    ///< s of a loop's host in which the device has nothing to do, as it was waited for
    double waits = 0;    ///< s that a loop's host takes to wait for the device
    double dispatch = 0; ///< s of an eager program's host for each kernel
    std::string dispatchSource;
    double host = 0;                   ///< s of it for a step
    bool areWeightsArithmetic = false; ///< products rule, not the bytes of the weights
    std::optional<Error> missing = {}; ///< why there is no time: a rate or a link

    double onDevice() const { return weights + cache + launches + exposed + between; }
    double decode() const { return inLoop(onDevice(), loopHost); }
    /// Kernels reach 0.8 to 1.15 of the bandwidth that is taken, those that gather experts' weights 0.6 (int8 Mixtral
    /// of gpt-fast), launches take 0.7 to 1.5 of their time, an engine's host up to 2.5 ms.
    double decodeLow() const
    {
        return inLoop((weights + cache) / 1.15 + 0.7 * launches + exposed + 0.5 * between, loopHost, 0.5);
    }
    double decodeHigh() const
    {
        return inLoop((weights + cache) / (of.hasExperts ? 0.6 : 0.8) + 1.5 * launches + 1.3 * exposed + 1.5 * between,
                      loopHost, 1.5);
    }
    /// Of an eager program: the device waits for its host, or the host for it.
    double eagerDevice() const { return std::max(weights + eagerLaunches, eagerPass) + cache + copies + exposed; }
    double eagerDecode() const { return inLoop(eagerDevice(), host); }
    double eagerDecodeLow() const { return inLoop(0.85 * eagerDevice(), host, 0.5); } ///< a processor of 2025
    double eagerDecodeHigh() const { return inLoop(1.6 * eagerDevice(), host, 1.5); } ///< one of 2019, hooks
    double tokensPerSecond() const { return double(of.batch) / decode(); }

    double answerTokens() const { return double(of.context - of.sequence); }
    /// With the cache of the middle of the answer.
    double answerToken() const
    {
        return inLoop(onDevice() - cache * answerTokens() / (2 * double(of.context)), loopHost);
    }
    double answer() const { return prefill + answerTokens() * answerToken(); }

private:
    /// The device waits for a loop's host, or the host for it, but where they work in turn; `slow`: times that the host
    /// takes.
    double inLoop(double onDevice, double loop, double slow = 1) const
    {
        const double inTurn = loop > 0 ? slow * ahead : 0;
        return inTurn + std::max(onDevice, slow * loop - inTurn) + (loop > 0 ? slow * waits : 0);
    }
};

/// `graph`, its `parameters` and `setup` are those of the prompt; `held` B are in use. Without a cache (pictures,
/// encoders) there is no decoding. Errors of the device stand in `missing`.
ServingTime servingTime(const Device& device, const ModelDescription& model, const TrainingSetup& setup,
                        const Graph& graph, const std::vector<ParameterTensor>& parameters, const Serving& serving,
                        double held);

/// A decoding step alone, whose prefill is not asked for.
ServingTime decodingTime(const Device& device, const ModelDescription& model, const TrainingSetup& setup,
                         const Serving& serving, double held);

/// prefill_time, token_time, eager_token_time, tokens_per_second, answer_time, each with its why; all but the first
/// where there is a cache.
Figures servingTimeFigures(const ServingTime& time);

} // namespace memscape
