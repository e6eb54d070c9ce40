// SPDX-License-Identifier: Apache-2.0
// One entry of a recorded program: an operator as autograd sees it (one grad_fn each), or a release,
// the moment at which the last Python variable that names a tensor dies.
#pragma once

#include <cstdint>
#include <string_view>

namespace memscape {

using TensorId = std::uint32_t;
using StorageId = std::uint32_t;
using ModuleIndex = std::uint32_t;
constexpr TensorId noTensor = UINT32_MAX;

enum class OperatorKind : std::uint8_t {
    Release, ///< inputs[0] is not named any more
    // Views: outputs share the storage of inputs[0].
    View,    ///< other sizes, same elements
    Permute, ///< attribute: four bits per dimension, the dimension that it was
    Expand,
    Narrow, ///< attribute: dimension; a part of it
    Select, ///< attribute: dimension, which disappears
    Split,  ///< attribute: dimension; several outputs
    Detach, ///< no gradient behind it
    // Copies.
    Clone,      ///< dense row-major copy
    Cast,       ///< to another dtype
    Dequantize, ///< of a weight that is stored in fewer bits
    Cat,        ///< attribute: dimension
    Stack,      ///< attribute: dimension, which is new
    Pad,
    Fill,    ///< a tensor out of nothing: a mask, positions
    Compare, ///< Bool or integer result without a gradient; attribute: comparesWithNumber
    // Elementwise.
    Add,
    Subtract,
    Multiply,
    Divide,
    Scale, ///< by a number
    Shift, ///< plus a number
    Negate,
    Power,
    Square,
    SquareRoot,
    ReciprocalRoot,
    Exponential,
    Logarithm,
    Sigmoid,
    Tanh,
    Relu,
    Gelu,
    Silu,
    HardSwish,
    HardTanh,
    LeakyRelu,
    Elu,
    Mish,
    Softplus,
    MaskedFill,
    Where,
    Dropout,
    // Reductions; attribute: dimension, or −1 for all.
    Sum,
    Mean,
    Maximum,
    Variance,
    Softmax,
    LogSoftmax, ///< attribute: whether the vocabulary is divided among devices
    // Norms: outputs are result, mean, reciprocal deviation.
    LayerNorm,
    RmsNorm,
    GroupNorm,
    BatchNorm,
    // Products.
    Addmm, ///< inputs bias, a, b
    Mm,
    Bmm,
    Convolution, ///< inputs x, weight, bias
    FlashAttention,
    EfficientAttention, ///< inputs q, k, v; attribute: ranks of a ring that pass keys and values on, or 0
    // Lookups.
    Embedding,   ///< inputs weight, indices
    Index,       ///< tensor[indices]
    IndexSelect, ///< attribute: dimension
    Gather,
    // Pictures.
    MaxPool,
    AveragePool,
    AdaptiveAveragePool,
    InterpolateNearest,
    InterpolateBilinear,
    // Losses.
    NllLoss, ///< attribute: the same
    MseLoss,
    LigerLoss,       ///< inputs rows, weight, targets; outputs loss and the gradients of both; attribute: DType of its
                     ///< products
    CutLoss,         ///< the same inputs; outputs loss and statistics
    InPlaceLoss,     ///< inputs logits, targets; outputs loss and statistics; the logits become their gradient
    GatedActivation, ///< inputs gate, x: act(gate) · x in one kernel
    // Between devices.
    AllReduce,
    AllGather,
    ReduceScatter,
    AllToAll, ///< of tokens among ranks that share experts
    Receive,  ///< what the rank before sent: the first operator of a pipeline's chunk
    Fused,    ///< a kernel that Inductor writes; several outputs; attribute: index of Graph::fused
    Other,    ///< one that no rule knows (NetworkBuilder::other); attribute: temporaries of its backward
    Count
};

/// `mask == 0`: the attribute of such a Compare.
constexpr std::int64_t comparesWithNumber = 1;

/// One kernel for scores, softmax and sums.
constexpr bool isAttentionKernel(OperatorKind kind)
{
    return kind == OperatorKind::FlashAttention || kind == OperatorKind::EfficientAttention;
}
/// The attribute of an attention kernel: whether it leaves out what lies above the diagonal, and how many ranks pass
/// keys and values round.
constexpr std::int64_t attentionAttribute(bool isCausal, std::int64_t ranks)
{
    return 2 * ranks + (isCausal ? 1 : 0);
}
constexpr bool isCausalAttention(std::int64_t attribute)
{
    return attribute % 2 == 1;
}
constexpr std::int64_t attentionRanks(std::int64_t attribute)
{
    return attribute < 2 ? 1 : attribute / 2;
}

/// The result shares the storage of the operand: nothing is computed.
constexpr bool isView(OperatorKind kind)
{
    return kind >= OperatorKind::View && kind <= OperatorKind::Detach;
}

/// Devices that share a layer run it together.
constexpr bool isCollective(OperatorKind kind)
{
    return kind >= OperatorKind::AllReduce && kind <= OperatorKind::AllToAll;
}

/// Runs on cuBLAS.
constexpr bool isMatrixProduct(OperatorKind kind)
{
    return kind == OperatorKind::Addmm || kind == OperatorKind::Mm || kind == OperatorKind::Bmm;
}

/// "layer_norm", "bmm", "masked_fill": the operator's name in PyTorch.
std::string_view operatorText(OperatorKind kind);

/// Operands are indices into Graph::operands(): inputs, then outputs, then saved.
struct Operator
{
    OperatorKind kind = OperatorKind::Release;
    std::uint8_t inputs = 0;
    std::uint8_t outputs = 0;
    std::uint8_t saved = 0;
    bool hasGradient = false; ///< autograd has a node for it
    bool inPlace = false;     ///< outputs[0] shares the storage of inputs[0], with new values
    /// What is saved is an attribute of the node (ctx.tensors = …), not a saved tensor: it lives as long as the node,
    /// to the end of the loss, and checkpointing's hooks don't see it.
    bool keepsAsAttribute = false;
    ModuleIndex module = 0;
    std::uint32_t first = 0;
    std::int64_t attribute = 0;
};

} // namespace memscape
