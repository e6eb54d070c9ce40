// SPDX-License-Identifier: Apache-2.0
// How long an answer takes: the prompt first, then token by token.
//
//     prefill  one forward pass over `sequence` tokens of each sequence, operator by operator (core/timing)
//     decode   one token for each sequence:
//              max(weights read / read bandwidth, 2 × active parameters × batch / reached rate)
//              + max(cache read / read bandwidth, FLOPs of attention / reached rate)
//              + kernels × launch + communication
// With few sequences the weights rule, which every step reads once whatever the batch; with many, or a long context,
// the cache, which each sequence has of its own (Pope et al. 2022, arXiv:2211.05102).
//
// Kernels are those of the eager network, as a GPU runs them from a captured graph: compiled ones are fewer. A loop of
// eager PyTorch takes max(decode, kernels × dispatch + 4-bit layers × theirs), measured constants (device_kernels.h).
// bitsandbytes has a kernel that reads 4-bit weights for one token alone; for more it writes them in half and
// multiplies those (bitsandbytes/autograd/_functions.py, matmul_4bit). Against gpt-fast's published rates on an A100
// (tst_inference_memory.cpp) the typical error is 12 %. Left out: kernels for quantized weights that stay below the
// bandwidth; prompts longer than `sequence`, which take more such passes over a longer cache; sequences of several
// lengths; sampling. A draft model: speculative_time.h.
#pragma once

#include "core/device/device.h"
#include "core/experiment/outcome.h"
#include "core/network/model.h"
#include "core/training/serving.h"
#include "core/training/simulation.h"

#include <algorithm>
#include <optional>

namespace memscape {

/// What is served; bytes are of one device.
struct Serving
{
    std::int64_t batch = 1, context = 1, sequence = 1;
    double weightsRead = 0;  ///< B that one step reads
    double cacheRead = 0;    ///< B
    bool isFourBit = false;  ///< weights in NF4
    std::int64_t tokens = 1; ///< of each sequence in a decoding step
};

struct ServingTime
{
    Serving of;
    double prefill = nan;                                         ///< s
    double weights = nan, cache = nan, launches = 0, exposed = 0; ///< s, the parts of a decoding step
    double kernels = 0;                                           ///< of a decoding step
    double prefillLow = nan, prefillHigh = nan;                   ///< s, the band of the pass (step_band.h)
    double dispatch = 0;                                          ///< s of an eager program's host for each kernel
    double host = 0;                                              ///< s of it for a step
    bool areWeightsArithmetic = false;                            ///< products rule, not the bytes of the weights
    std::optional<Error> missing = {};                            ///< why there is no time: a rate or a link

    double decode() const { return weights + cache + launches + exposed; }
    /// Kernels reach 0.6 to 1 of the bandwidth, launches take 0.7 to 1.4 of their time.
    double decodeLow() const { return weights + cache + 0.7 * launches + exposed; }
    double decodeHigh() const { return (weights + cache) / 0.6 + 1.4 * launches + 1.3 * exposed; }
    /// Of an eager program: the device waits for its host, or the host for it.
    double eagerDecode() const { return std::max(decode(), host); }
    double eagerDecodeLow() const { return std::max(decodeLow(), 0.5 * host); }   ///< a processor of 2025
    double eagerDecodeHigh() const { return std::max(decodeHigh(), 1.5 * host); } ///< one of 2019, hooks
    double tokensPerSecond() const { return double(of.batch) / decode(); }
};

/// `graph`, its `parameters` and `setup` are those of the prompt; `held` B are in use. Without a cache (pictures,
/// encoders) there is no decoding. Errors of the device stand in `missing`.
ServingTime servingTime(const Device& device, const ModelDescription& model, const TrainingSetup& setup,
                        const Graph& graph, const std::vector<ParameterTensor>& parameters, const Serving& serving,
                        double held);

/// A decoding step alone, whose prefill is not asked for.
ServingTime decodingTime(const Device& device, const ModelDescription& model, const TrainingSetup& setup,
                         const Serving& serving, double held);

/// prefill_time, token_time, eager_token_time, tokens_per_second, each with its why; the latter three where there is a
/// cache.
Figures servingTimeFigures(const ServingTime& time);

} // namespace memscape
