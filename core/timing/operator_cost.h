// SPDX-License-Identifier: Apache-2.0
// What an operator of a recorded network costs a device: floating-point operations, bytes to and
// from memory, kernels. Products count 2 m n k; attention kernels 4 B H S_q S_k D forward (their
// causal half is not subtracted, as in the usual convention) and 2.5 times that backward;
// convolutions 2 per multiply-add; everything else one operation per element of its results. Bytes
// are operands read once and results written once: caches help across operators, not within one.
//
// Backward: a product per operand that wants a gradient; other operators read the gradient and what
// they saved and write a gradient per operand. Views cost nothing; backward, a split joins its parts
// and a part is put into zeros (torch/csrc/autograd/FunctionsManual.cpp). Norms read more often than
// that: in training a batch norm its input for the statistics and again for the result, and backward of it and of
// layer norms reads input and gradient again for weight and bias (aten/native/cuda/Normalization.cuh,
// layer_norm_kernel.cu).
//
// A convolution is the product of its windows with its kernels (implicit GEMM: Chetlur et al. 2014, arXiv:1410.0759):
// N·OH·OW × C_out × C_in·R·S, one for each group; channels are padded to 16 bytes (NVIDIA, Convolutional Layers User's
// Guide). Groups of fewer than 16 channels, depthwise ones above all, have kernels of their own that multiply element
// by element: bytes hold them, or the instructions that they issue for each multiply-add. Counted in PyTorch's source
// (aten/native/cuda/DepthwiseConv2d.cu): about 10 for the result (both loads and conversions, bounds, offsets), 14 for
// the input's gradient (a stride's remainders) and 32 for the weight's (a division for each position).
//
// Tensor cores read pictures in NHWC: of those in NCHW a convolution turns every operand and result, a read and a write
// more. One of single pixels (1 × 1, no stride) is a product of what lies there, channels × pixels, and turns nothing
// where its rows of pixels start at multiples of 16 bytes: cuDNN's ResNet-50 in NCHW takes 18 ms more than in NHWC for
// 512 pictures on an RTX 4090 (timm, benchmark-infer-amp-nchw-pt291-cu128-4090.csv against -nhwc-pt240-cu124-), its 3 ×
// 3 convolutions and odd rows alone 16, all of them 48. A training's batch norm in NCHW gives each channel a block of
// 512 threads (cuDNN's bn_fw_tr_1C11_kernel_NCHW and bn_bw_1C11_kernel_new), each of which waits for one element after
// the other: a channel goes by once for its statistics and once for the result, backward as if in three such trips. In
// a profile of a ResNet-50 (torch.profiler, ten steps of 128 pictures in FP16 on what must be an A100 of 40 GB: its
// ReLUs move 1.4 TB/s) a trip's wait is 0.93 to 1.09 of the latency that pointers chase there forward, 0.86 to 1.05
// backward. What a block's registers hold is read once (25,088 elements there, 100,352 no more). A group norm of
// PyTorch's has kernels for NCHW alone: eagerly it copies pictures in NHWC and hands on NCHW, which the convolution
// after it copies back, and so with gradients (aten/native/group_norm.cpp, X = input.contiguous(); pytorch/pytorch,
// issue 111824, and pull request 191945 of August 2026). Compilers decompose it.
//
// On lanes a convolution of 3 × 3 windows without a stride takes Winograd's F(2 × 2, 3 × 3): 16 multiplications for
// four results instead of 36, forward and for the input's gradient (Lavin and Gray 2015, arXiv:1509.09308).
//
// A copy of what a view holds in another order (`contiguous`, or a reshape's) has one backward: its gradient, too, is
// needed in the other order (aten/native/TensorShape.cpp, reshape; csrc/autograd/FunctionsManual.cpp).
//
// Experts that a rank holds of many (expert parallelism, as Megatron runs it) are multiplied together: their tiles
// share waves. One that adds its result into some rows of all reads and writes those rows.
//
// Left out: Winograd's larger tiles and his transforms, Fourier's kernels, sums of gradients that meet (operator_time.h
// adds them), split-k and padding.
#pragma once

#include "core/network/graph.h"
#include "core/timing/attention_problem.h"
#include "core/timing/host_operations.h"

#include <array>
#include <optional>

namespace memscape {

/// Matrix products of one shape, as a processor's threads see them.
struct ProductPart
{
    HostOperation way = HostOperation::Forward;
    ProductShape shape;
    double count = 0;      ///< 0: none
    bool isAligned = true; ///< rows start at multiples of 16 bytes
    double saved = 1;      ///< multiplications for each that Winograd's kernels need on lanes
};

struct OperatorCost
{
    double flops = 0;
    double bytes = 0;
    double kernels = 0;
    bool isProduct = false; ///< runs on matrix units in `dtype`
    bool isConvolution = false;
    bool mayUseTf32 = false; ///< of fp32: on tensor cores that have TF32, as PyTorch lets cuDNN by default
    DType dtype = DType::Float32;
    std::array<ProductPart, 2> products = {};       ///< of matrix products, and those that a convolution is
    std::optional<AttentionProblem> attention = {}; ///< of a fused kernel
    bool isFirstGeneration = false;                 ///< of fused kernels of attention (device_kernels.h)
    bool isByHead = false;                          ///< it has a block for each head of a sequence
    bool isCudnns = false;                          ///< its attention (device_kernels.h)
    double instructions = 0; ///< of threads: a convolution that multiplies element by element, and eager_kernels.h
    double summed = 0;       ///< elements of a bias's gradient, which a kernel of its own sums up (eager_kernels.h)
    double near = 0;         ///< share of the bytes that a GPU's L2 still holds (tensor_reuse.h)
    double atOnce = 1;       ///< alike products in flight together, each of a like operator: a rank's experts
    double turned = 0;       ///< B that copies of pictures between NCHW and NHWC read and write besides
    double turnedInNhwc = 0; ///< the same where pictures lie in NHWC
    double roundTrips = 0;   ///< times that a block waits for memory, one after the other; of batch norms in NCHW
    double blocks = 0;       ///< that wait so
    // What a processor's operators are told apart by (pytorch_operations.h); OperatorRuns fills it in.
    OperatorKind kind = OperatorKind::Count; ///< Count: no operator of the network
    bool isBackward = false;
    double elements = 0;     ///< that the operator works on: of its first operand or its result, whichever is larger
    double window = 0;       ///< R·S of a convolution's kernels
    bool isRowByRow = false; ///< its instructions follow its bytes: a thread waits for weights, unpacks, multiplies
    double far = 0;          ///< B that have left the caches since they were used (tensor_reuse.h)
};

constexpr double channelThreads = 512; ///< of a block that has a channel of a batch norm

/// R·S of kernels (C_out, C / groups, R, S).
double windowSize(const Layout& kernels);

OperatorCost forwardCost(const Graph& graph, const Operator& op);
OperatorCost backwardCost(const Graph& graph, const Operator& op);

} // namespace memscape
