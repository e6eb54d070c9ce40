// SPDX-License-Identifier: Apache-2.0
// The blocks that PyTorch's kernels for a CPU take beside their results, in the order of a forward operator:
//
//   numbers      x * 2 makes a tensor of 8 B of the number, and the kernel casts it to x's type. A product keeps
//                the 8 B for backward
//   casts        an elementwise kernel that is given two types casts the operand of the smaller one first
//                (TensorIterator.cpp); a GPU's kernels cast as they read
//   transposed   a matrix that is copied the other way round passes a tile of 60 × 60 elements (native/Copy.cpp)
//   dropout      noise of x's size and type is made first, divided, and multiplied (Dropout.cpp)
//   attention    one tile of scores, two statistics and a tile of results a thread, float
//                (cpu/FlashAttentionKernel.cpp)
//   batch norm   two pairs of C numbers (cpu/batch_norm_kernel.cpp)
//   convolution  oneDNN computes on its own layout: input and weight are reordered into it, the result out of it
//                (mkldnn/Conv.cpp)
//
// Left out: oneDNN's scratchpads, which its implementation for the processor at hand chooses; what MKL and OpenMP
// allocate behind PyTorch's allocator.
#pragma once

#include "core/base/few.h"
#include "core/network/build_options.h"
#include "core/network/graph.h"

namespace memscape {

inline constexpr std::int64_t numberTensorBytes = 8; ///< of a Python number, as Float64 or Int64

/// One step of a kernel: a temporary block (they are counted from 0), an output of the operator, or the end of a
/// temporary.
struct KernelStep
{
    enum class Kind : std::uint8_t { Temporary, Output, Free };
    Kind kind = Kind::Output;
    std::uint32_t index = 0;
    std::int64_t bytes = 0; ///< of a Temporary
};
using KernelSteps = Few<KernelStep, 24>;

/// What a forward operator does; empty where it makes its outputs in their order and nothing else.
KernelSteps cpuKernelSteps(const Graph& graph, const Operator& op, const EagerRules& rules);

/// B of what a convolution (N, C, H, W) reorders.
struct CpuConvolution
{
    std::int64_t input = 0, weight = 0, output = 0;
    bool reordersInput = true;
    bool isChannelsLast = false; ///< the gradient of its input comes with channels last and is copied once more
};
CpuConvolution cpuConvolution(const Graph& graph, const Operator& op);

/// B of the tile through which a matrix of this layout is copied into rows; 0 where there is none.
std::int64_t transposingTile(const Layout& layout, DType dtype);

/// The blocks of attention's tiles for a query and a key (B, H, S, D), all threads together, B.
struct CpuAttentionTiles
{
    std::int64_t forward = 0;         ///< float
    std::int64_t forwardReduced = 0;  ///< scores in the type of halves; 0 for float
    std::int64_t backward = 0;        ///< scores and their gradients, float
    std::int64_t backwardSums = 0;    ///< row sums of dO · O
    std::int64_t backwardReduced = 0; ///< scores and their gradients in halves; 0 for float
};
CpuAttentionTiles cpuAttentionTiles(const Layout& query, const Layout& key, DType dtype, std::int64_t threads);

} // namespace memscape
