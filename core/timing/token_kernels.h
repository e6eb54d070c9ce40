// SPDX-License-Identifier: Apache-2.0
// What a GPU takes for the kernels of one decoding step beside the bytes that they read, and how quickly they read.
//
//     kernels    of a step, as engines join them: queries, keys and values are one product, so are gate and up; a norm
//                adds its residual; all experts of a layer run in one grouped product
//                (vllm/model_executor/models/llama.py and layers/fused_moe; gpt-fast's under torch.compile are as many)
//     latents    (DeepSeek) norms of both, queries' product up, and two that absorb: queries into the keys' space, the
//                result out of the values'. vLLM writes the cache apart, joins the two parts of queries, and copies
//                results twice; before 0.9 it had two products down, copied the keys' latent, and turned positions by
//                PyTorch's operators within its attention: 16 kernels (its v1/attention/backends/mla/common.py and
//                rotary_embedding.py of 2025, DeepseekScalingRotaryEmbedding: index_select, two repeat_interleave,
//                five each of queries and keys, three copies), and chose among grouped experts by nine more than a
//                fused gate (fused_moe.py, grouped_topk, whose topk, zeros and scatter torch.compile leaves alone)
//     FP8        vLLM quantizes the input of each product by a kernel of its own (per_token_group_quant_fp8,
//                scaled_fp8_quant), as every engine does for DeepSeek's scales of 128; TensorRT-LLM joins it to norms
//     a loop     AutoAWQ's fused modules join queries, keys and values, positions, cache and attention, and leave the
//                rest to PyTorch, whose host asks for each: norm, product, attention, product, sum, norm, two products,
//                activation, their product, product, sum; behind each product in 4 bits, of eight parts, their sum
//                (casper-hansen/AutoAWQ, awq/modules/fused @0392a82, @1b0af2d; gemm_forward_cuda of its kernels).
//                TinyChat's in 16 bits have three products for one (mit-han-lab/llm-awq, tinychat/models/llama.py
//                @0a0566c)
//     llama.cpp  a kernel for each operator, but what its CUDA backend joins: a norm and its weight, and the sum behind
//                it; norms of heads, positions and their place in the cache; gate, up and their activation; biases; a
//                router's choice. An input is quantized before each product of quantized weights, experts are one
//                product (ggml/src/ggml-cuda/ggml-cuda.cu @0010882, ggml_cuda_try_fuse, and mmvq.cu). A token's are
//                captured in a graph since May 2024 (pull request 6766: 7.8 instead of 8.6 ms on an RTX 3090, 6.1
//                instead of 7.0 on an H100). On boards with GDDR they follow each other by the period: what fills is
//                within the rate that is copied at there
//     each       the period of a captured graph, and the wave that fills and drains (gemm_time.h)
//     bandwidth  products of a few rows, and attention of one query, keep less on its way than HBM needs: 0.79 of the
//                datasheet's, of weights in 8 bits 0.7 and in 4 bits 0.57; boards with GDDR reach what a copy does
//     all-reduce of a few KB: each rank reads what the others have written, once all have said so: a kernel, and two
//                passes of the links (TensorRT-LLM's, vLLM's and PyTorch's own kernels); NCCL's: nccl.h
//
//     Marlin     one block for each multiprocessor, which takes as many tiles of 128 × 128 as any other, column by
//                column: blocks that share a column add up its sums one behind the other, under a lock. A small
//                product is cut finest, and waits longest ("barrier_acquire and barrier_release cost too many time":
//                vllm-project/vllm, pull request 14138; csrc/quantization/gptq_marlin/gptq_marlin.cu). A hand-over is
//                counted as four trips to L2: the lock is seen, sums are read, their writing is waited for (a fence),
//                the lock is raised
//
// Sources. Graphs: small kernels follow each other after 1.34 instead of 2.7 µs on an A100, 1.27 instead of 2.47 on a
// GH200, 0.96 instead of 1.59 on an L40 (te42kyfo/gpu-benches, gpu-small-kernels). Bandwidth: gpt-fast's Llama 2 70B in
// bf16 reads 1,482 GB/s on each of two A100s (its README @0f925b5), 1,613 less what stands between its kernels; wider
// loads make llama.cpp's products of one row 1.27 times as quick on an H100, and 1.01 times on GDDR
// (ggml-org/llama.cpp, pull request 9816). Marlin reads 4 bits at 1,158 GB/s on an A100 (vllm-project/vllm, pull
// request 2497, Llama 13B's four products) and at 1.8 TB/s on an H100, 8 bits at 2.4, where cuBLAS reads 16 bits at 1.9
// (pull request 19929, 1 × 4096 × 12288). Passes: an A100's LL ring takes 2 µs for each of
// its steps (NVIDIA/nccl-tests, issue 123).
//
// Left out: kernels that wait for each other's last blocks no more (programmatic dependent launch), norms within the
// all-reduce, switches that reduce.
#pragma once

#include "core/device/device.h"
#include "core/network/model.h"

#include <cstdint>

namespace memscape {

/// What an engine runs beside the kernels that all of them have.
struct EngineStyle
{
    bool isVllm = false;
    bool isBefore09 = false;      ///< vLLM's version
    bool quantizesInputs = false; ///< of products in FP8, by a kernel of its own
};
/// Kernels of a decoding step.
double engineKernels(const ModelDescription& model, EngineStyle style = {});

/// A decoding step of fused modules (AutoAWQ's; TinyChat's), which Python runs one by one.
struct LoopedKernels
{
    double calls = 0; ///< kernels that Python asks for
    double sums = 0;  ///< of the parts that the product GEMM leaves: asked for in C++, behind the product
    double kernels() const { return calls + sums; }
    /// s of the host, which takes `dispatch` for a call of Python's and `launch` for a kernel of C++.
    double hostSeconds(double dispatch, double launch) const { return calls * dispatch + sums * launch; }
};
/// In 16 bits queries, keys and values are products of their own, and none leaves parts.
LoopedKernels fusedLoop(const ModelDescription& model, bool isQuantized);
/// Kernels of a token by llama.cpp, whose weights are quantized or not, and whose attention writes scores or not.
double llamaCppKernels(const ModelDescription& model, bool isQuantized, bool writesScores = false);
/// More than a fused one's, of attention that writes its scores: a product, softmax with its mask, a product, a copy.
inline constexpr double llamaCppScoreKernels = 2;
/// Rows of an input that llama.cpp still multiplies with quantized weights as it does one (MMVQ_MAX_BATCH_SIZE).
inline constexpr double llamaCppVectorRows = 8;
/// Rows of the highest tile of its products of quantized weights (mmq.cuh, get_mmq_x_max_host).
inline constexpr double llamaCppTileRows = 128;
/// s from the start of a small kernel to that of the next in a captured graph.
double graphLaunchSeconds(const Device& device);
/// s from the start of one to that of the next, beside its bytes.
double engineKernelSeconds(const Device& device);
/// The same in llama.cpp's graph.
double llamaCppKernelSeconds(const Device& device);
/// The same of kernels that are launched one by one.
double streamKernelSeconds(const Device& device);
enum class WeightBits : std::uint8_t { Sixteen, Eight, Four };
/// B/s that a decoding step reads weights at, those in 16 bits like its cache; 0 where the memory's is not known.
double decodingBandwidth(const Device& device, WeightBits bits);
/// Hand-overs of sums in Marlin's product of one row with a matrix of k × n, in the column that most blocks share.
double marlinHandovers(int units, double k, double n);
/// s of a decoding step that they take: of the four joined products of each layer that has no experts, divided among
/// ranks.
double marlinSeconds(const Device& device, const ModelDescription& model, int tensorParallel);
inline constexpr double linkPassSeconds = 2.0e-6; ///< from one GPU's store to another's load
/// s of an all-reduce of a few KB by an engine's own kernel: it starts, ranks meet, and read what the others wrote.
double ownReduceStart(const Device& device);

} // namespace memscape
