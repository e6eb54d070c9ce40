// SPDX-License-Identifier: Apache-2.0
// How long one operator's kernels take on a GPU, as what their shapes reach:
//
//     matrix product    max(its waves of tiles at the sustained rate, bytes / bandwidth) + launch
//     attention         as FlashAttention-2's kernels reach it (attention_time.h), what a causal mask hides left out
//     everything else   the root of (bytes / bandwidth)² + instructions² + launch per kernel (eager_kernels.h)
//     batch norm        of NCHW: the same of bytes / bandwidth and round trips × latency (operator_cost.h)
//
// Bytes that L2 still holds since an operator before used or wrote them come at its bandwidth (tensor_reuse.h): the
// 72 MB of an RTX 4090 hold a window attention's tensors.
//
// Tiles and waves are those of gemm_time.h: multiprocessors of a last wave that have nothing to do, rows and columns
// that pad a tile, waves that fill; long sums of few tiles are cut into parts (split-k) of 2,048 terms and more.
//
// Convolutions are the products of operator_cost.h, which says what of pictures in NCHW is turned for tensor cores (111
// ms a step against 152 ms of a ResNet-50 on a V100: sandeepkumar-skb/pytorch_experiments, torchvision_exp/README.md).
// In fp32 they run on TF32's units or on lanes, whichever is faster, and so do matrix products where a program lets
// them (Plan::tf32). Depthwise ones issue their instructions one by one, and are not turned. On tensor cores a product
// whose rows do not start at multiples of 16 bytes (a vocabulary of 50,257) takes three times as long, and a batched
// one of odd rows twice what lanes take, but on GeForce boards since Ampere.
//
// Kernels of attention are compiled for some widths of a head, and pad the others: FlashAttention-2's for multiples of
// 32 (Dao-AILab/flash-attention, csrc/flash_attn/flash_api.cpp, head_size_rounded), those of the first generation
// (FlashAttention, memory-efficient attention) for 32, 64 and 128, beyond it for multiples of that. On an A100 the
// latter take twice as long (Dao 2023, arXiv:2307.08691, section 4: 1.7 to 3 times; 1.3 to 2.5 times in Triton): what
// they do beside their products are instructions, as many clocks of a multiprocessor on any GPU that runs the same
// program. Volta and Turing run another one, without copies past the registers (CUTLASS's MmaPipeline instead of
// MmaMultistage: NVIDIA/cutlass, pull request 147) and with half the products in an instruction: on a V100 it takes 2.7
// times what FlashAttention-2's shares would (facebookresearch/xformers, pull request 434: 16 heads of 40 for 16,384
// tokens in 33.6 ms, 160 of 128 for 4,096 in 38.2 ms; an A100 takes 12.7 and 12.9 ms, 2.2 and 2.0 times: pull request
// 412). Power lowers its clocks as those of products (product_rates.h): on Meta's H100s, of 500 W (pytorch/FBGEMM,
// pull request 2546), FlashAttention-2 runs at 301 TFLOP/s forward and 246 backward of the 362 and 307 that are
// modelled at full clocks (pytorch/pytorch, pull request 128888), cuDNN's at 582 (meta-pytorch/tritonbench, issue 141).
// Instructions are issued at the clocks that products of lanes keep: 0.73 of an H100's dense rate is what full clocks
// give them, a T4 of 70 W keeps 0.53, an A10 of 150 W 0.47.
//
// cuDNN's attention is 1.7 to 2.3 times as quick as FlashAttention-2 for training's shapes on a Hopper, and no quicker
// on an A100 or L40S (huggingface/transformers, pull request 48163): here twice. Transformer Engine runs it on a Hopper
// unless NVTE_FUSED_ATTN=0 is set (get_attention_backend() in its utils.py).
//
// Left out: FlashAttention-3, clocks that sag further than in the runs that the sustained rates
// are of, cuDNN's own kernels for depthwise convolutions.
#pragma once

#include "core/timing/operator_time.h"

namespace memscape {

class DeviceKernels
{
public:
    /// Nothing of a device that is no GPU. `slowest`: times that the slowest rank's products take longer, which
    /// `efficiency` has already.
    DeviceKernels(const Device& device, double efficiency, double slowest = 1);

    /// s; `rates` are those of the device. What holds it is in the parts.
    TimeParts parts(const DeviceRates& rates, const OperatorCost& cost) const;
    /// B of L2 that every multiprocessor reaches at its full bandwidth; 0 where they or it are not known.
    double cache() const { return m_cache; }
    int units() const { return m_device.units; }

private:
    TimeParts partsOf(const DeviceRates& rates, const OperatorCost& cost) const;
    double spare(const OperatorCost& product) const;
    /// s of a bias's gradient.
    double sumSeconds(const OperatorCost& cost, double perByte) const;

    const Device& m_device;
    double m_efficiency;
    double m_perInstruction; ///< s, of one lane
    double m_tensorFloat32;  ///< efficiency of products in TF32
    /// Times that clocks rise at most where multiprocessors idle (gemm_time.h).
    double m_spareFp16, m_spareBf16, m_spareFp8, m_spareTf32;
    double m_cache = 0, m_cacheBandwidth = 1;
};

/// The share of the full clock at which lanes multiply for long: power lowers it.
double laneClocks(const Device& device);
/// s of a kernel whose instructions, one for each lane, four schedulers of each multiprocessor issue, a warp of 32 a
/// clock each; 0 where the clock is not known.
double issueSeconds(const Device& device, double instructions);

/// What PyTorch takes on the host for each operator that it runs eagerly, while the device works on earlier ones.
/// Measured with PyTorch 2.15 on one core of a Zen 4 EPYC (virtual machine): GPT-2 and LLaMA of transformers with 12
/// layers of 32 channels, where kernels take next to nothing; all of Python, views and autograd included. A fused
/// update took 3.2 µs for each of 150 tensors of 8 elements more (AdamW), its loop over them on the processor included.
struct Dispatch
{
    double forward = 0, backward = 0; ///< s per kernel: of a compiler, and of all on a processor
    double call = 0;                  ///< s per call of an operator that a GPU runs eagerly (eager_calls.h)
    double kernel = 0;                ///< s more for each of its kernels, its launch aside
    double update = 0;                ///< s per updated tensor
    double updateKernel = 0;          ///< s more for each kernel of an update
    bool waitsBeforeUpdate = false;   ///< the host reads whether a loss scale has overflown
};
/// Of an update written so. A launch on a GPU comes on top.
Dispatch eagerDispatch(UpdateStyle style);
/// s per kernel of a token that transformers 5.24 generates greedily on a processor, without autograd: 174 µs for each
/// of LLaMA's layers (16 against 4 of 32 channels) over their 38 kernels, measured as above.
inline constexpr double decodeDispatch = 4.6e-6;
/// The same where a GPU runs them, launches included: its runtime, allocator and libraries cost the host more than
/// PyTorch's own part. Of the 1,228 kernels of Llama 2 7B gpt-fast's eager loop takes 39.2 ms (25.5 tokens/s:
/// pytorch.org, Accelerating Generative AI with PyTorch II, A100 80 GB), LitGPT's 32.3 ms (its resource table, A100 40
/// GB): 32 and 26 µs each, and of transformers 4.46 Qwen2.5 7B's 1,076 take 25.8 ms (QwenLM/Qwen2.5, docs/source/
/// benchmark/speed_benchmark.rst, A100 80 GB): 24. Here the one in the middle, unless the device's file knows its host
/// (`eager_kernel`).
double decodeDispatchOfGpu(const Device& device);
/// Of that, what Python and PyTorch's dispatcher take: 7.4 µs for an operator of LLaMA without kernels on an Emerald
/// Rapids Xeon (eager_calls.h), of the 20.5 µs that servers of H100s need, whose Xeons are of the generation before.
/// The rest comes with each kernel: its memory, its library, its launch. A view has no kernel.
inline constexpr double callsOfDispatch = 0.36;
/// What autograd adds to a call forward: 10.83 instead of 7.41 µs there.
inline constexpr double autogradOfCall = 10.83 / 7.41;
/// Of a pass that a GPU runs eagerly, one kernel after the other, s of its host: so many calls (eager_calls.h) without
/// autograd, and kernels, launches included. LLaMA's token has as many calls as kernels.
double eagerHostSeconds(double calls, double kernels, double dispatch);
/// Of a step whose kernels a GPU runs, one by one: calls and kernels take what they take of a token, and calls more
/// with autograd; loops over tensors take less, as on a processor (27 µs for the eight kernels of AdamW's loop against
/// `decodeDispatch` each). A compiler's kernels are called without modules and autograd's nodes: they keep what a
/// processor takes.
Dispatch dispatchOfGpu(const Device& device, const Plan& plan);
/// s more for each 4-bit layer of bitsandbytes 0.50: 54 instead of 5.6 µs, 64 × 64, measured as above.
inline constexpr double fourBitDispatch = 48e-6;

} // namespace memscape
