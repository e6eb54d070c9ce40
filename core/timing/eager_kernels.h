// SPDX-License-Identifier: Apache-2.0
// What PyTorch's own kernels take on a GPU beside the bytes of their operands, one pass over each (operator_cost.h):
// passes that the source has besides, and instructions, which hold a kernel that does not load 16 bytes at a time.
//
//     softmax           backward multiplies gradient and result first, a kernel of its own: three passes more; a row
//                       that no block keeps (more than 48 KiB) is read three times forward, and its gradient twice
//                       backward, which L2 serves where the rows of all multiprocessors fit
//     layer norm        backward has one kernel for the input, and one for weight and bias whose blocks have 32 columns
//                       each: of 1,024 columns 32 multiprocessors are busy
//     group norm        statistics of each group, scale and shift of each channel, the result: three kernels
//     bias              its gradient is a sum over rows in a kernel of its own, behind the product's two; before
//                       cublasLt added it (PyTorch's pull request 72148 of February 2022) it was copied into each row
//                       of the result first, which the product read; the copy is taken for as slow as that sum
//     other orders      copies of permuted tensors, and elementwise kernels whose operands differ in shape or strides,
//                       compute an offset for each operand and element and load one element at a time
//     dropout           draws its numbers
//     largest of        pictures in NCHW: a thread for each result, which divides its index by three sizes, and one for
//     windows           each operand's gradient, which looks into every window that the operand is in
//     loss in place     of logits in fp32 is Megatron's, in PyTorch's own kernels: their maximum, the difference, its
//                       exponential, their sum, the quotient; backward a product. Of half logits it is one kernel,
//                       which has them in fp32 in its registers (Unsloth's, FlashAttention's)
//
// Passes and kernels: aten/native/cuda/SoftMax.cu (Tensor tmp = grad * output; cunn_SoftMaxForward,
// cunn_SoftMaxBackward; PyTorch's pull request 145866), layer_norm_kernel.cu (GammaBetaBackwardCUDAKernel: B / 32
// blocks; pull requests 68238 and 87445, before 148605 of 2025), group_norm_kernel.cu
// (RowwiseMomentsCUDAKernel, ComputeFusedParamsCUDAKernel), Loops.cuh (vectorized_elementwise_kernel of contiguous
// operands alone), Dropout.cu, Reduce.cuh, DilatedMaxPool2d.cu (max_pool_forward_nchw, max_pool_backward_nchw);
// Megatron-LM, core/tensor_parallel/cross_entropy.py.
//
// Instructions for each element: a profile by kernels (torch.profiler) of ten steps of BERT large in FP16, 32 × 512
// tokens, on an A100 of 40 GB, which lies on GitHub; in which repository was not found out. Its pointwise kernels of
// contiguous tensors reach 1.38 TB/s, the rate of a copy (386.8 µs for a division of 134 million scores: bytes hold
// them). What these take longer are instructions, at 108 × 4 warps of 32 lanes a clock, whose waits and those for
// memory hide each other in part alone: a kernel takes the root of the squares of both. So the counts that follow from
// these kernels in FP16 tell PyTorch's layer norms in FP32, twice as many bytes, within 4 % (15 and 17 % short where
// the longer of the two is taken), and bring a layer of 2020 on a V100 nearer, which gave nothing to them
// (tst_eager_kernels):
//
//     copy of a permuted tensor       103.7 µs for 16.8 million elements   106 instructions
//     sum with a broadcast mask       603.2 µs for 134 million              67
//     dropout                         232.8 µs in the mean of 73            42
//     softmax                         429.5 µs for 134 million              26
//     layer norm                       73.6 µs for 16.8 million             64
//     its backward, input              91.9 µs                              65
//     weight and bias                 119.6 µs, on 32 of 108               40 of each busy multiprocessor's
//     sum of a bias's gradient         65.9 µs in the mean of 146           42
//
// and of a ResNet-50 in FP16, 128 pictures (operator_cost.h), for each element of 231 million in windows of 3 × 3:
//
//     largest of windows              652.0 µs                              47 instructions
//     its backward                     2.28 ms                              188
//
// Left out: pooling in NHWC, whose kernels are others; kernels of libraries beside PyTorch (Megatron's softmax, Apex's
// and Transformer Engine's layer norms), and those that a compiler writes; the newer gamma and beta kernel of
// PyTorch 2.8; batch and group norms (operator_cost.h).
#pragma once

#include "core/network/graph.h"

namespace memscape {

/// Beside what forwardCost() or backwardCost() counts.
struct EagerKernels
{
    double bytes = 0;        ///< of passes besides
    double kernels = 0;      ///< of them
    double instructions = 0; ///< of threads
    double summed = 0;       ///< elements of a bias's gradient, which a kernel sums up behind a product's, or of copies
};

/// Of one operator on a GPU of so many multiprocessors and B of L2; 0: not known.
EagerKernels eagerKernels(const Graph& graph, const Operator& op, bool isBackward, int units, double cache);

/// Instructions for each element of a sum over rows.
inline constexpr double rowSumInstructions = 42;
/// The same of a copy whose elements lie in another order or are repeated.
inline constexpr double permutedCopyInstructions = 106;

} // namespace memscape
