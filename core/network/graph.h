// SPDX-License-Identifier: Apache-2.0
// A network as eager PyTorch runs it once: storages, the tensors that look at them, and operators in
// program order with what autograd packs for backward (torch/csrc/autograd, derivatives.yaml). A
// training step (core/training/step.h) executes this program; nothing here knows about time.
//
// Everything is an index into a vector, so that a network of a hundred layers is a handful of
// allocations. NetworkBuilder (builder.h) writes a Graph.
//
// Left out: kernels' workspaces (they belong to the device), data-dependent control flow.
#pragma once

#include "core/network/dtype.h"
#include "core/network/operator.h"
#include "core/network/shape.h"

#include <deque>
#include <span>
#include <string>
#include <vector>

namespace memscape {

enum class Role : std::uint8_t {
    Parameter,
    Buffer, ///< a constant of the model: rotary tables, running statistics
    Input,  ///< of the batch
    Target, ///< of the batch
    Activation,
    WeightCast, ///< autocast's copy of a parameter
};

struct Storage
{
    std::int64_t bytes = 0;
    ModuleIndex module = 0;
    OperatorKind source = OperatorKind::Fill; ///< the operator that made it
    Role role = Role::Activation;
};

using LayoutId = std::uint32_t; ///< index of Graph::layouts

struct Tensor
{
    LayoutId layout = 0;
    StorageId storage = 0;
    DType dtype = DType::Float32;
    bool needsGradient = false;
};

/// A parameter or buffer under its state_dict name; tied ones appear once.
struct NamedTensor
{
    std::string name; ///< within its module: "weight"
    TensorId tensor = 0;
    ModuleIndex module = 0;
    bool isTrained = false;
};

/// A call of a module: "attn" of type "Attention" within module `parent`. Module 0 is the network.
struct ModuleCall
{
    std::string name;
    std::string type;
    ModuleIndex parent = 0;
};

/// Operations [first, last) that checkpointing may drop and recompute.
struct Block
{
    enum class Kind : std::uint8_t { Layer, AttentionCore };
    Kind kind = Kind::Layer;
    std::uint32_t first = 0;
    std::uint32_t last = 0;
    TensorId firstTensor = 0; ///< tensors [firstTensor, lastTensor) were made inside
    TensorId lastTensor = 0;
    TensorId output = noTensor;
};

/// Operators [first, last) do what those `period` before them do: other tensors of the same layouts and types.
struct CopiedOperators
{
    std::uint32_t first = 0;
    std::uint32_t last = 0;
    std::uint32_t period = 0;
};

/// Operators [first, last) of one chunk of a pipeline's rank (pipeline_part.h).
struct PipelineChunk
{
    std::uint32_t first = 0;
    std::uint32_t last = 0;
    TensorId received = noTensor; ///< from the chunk before it
    TensorId sent = noTensor;     ///< to the chunk behind it
};

/// Operators [first, last) of one function that torch.compile made: its backward is one function, too, which gives all
/// its gradients at its end.
struct CompiledRegion
{
    std::uint32_t first = 0;
    std::uint32_t last = 0;
    std::vector<TensorId> results; ///< what it returns
};

/// What a library's attention chose for this network; empty where the caller chose.
struct ChosenAttention
{
    std::string text; ///< "FlashAttention: 16 bits on Ampere or later"
    bool isCudnns = false;
};

struct Graph
{
    std::vector<Storage> storages;
    std::vector<Tensor> tensors;
    std::deque<Layout> layouts; ///< each once: a network has few; they stay where they are
    std::vector<Operator> operators;
    std::vector<TensorId> operands;
    std::vector<NamedTensor> parameters; ///< in creation order
    std::vector<NamedTensor> buffers;
    std::vector<ModuleCall> modules;
    std::vector<Block> blocks;           ///< by `first`; an attention core lies within its layer
    std::vector<CopiedOperators> copies; ///< in program order, disjoint
    std::vector<PipelineChunk> chunks;   ///< of a pipeline's rank, in its order; empty: a whole network
    TensorId sharedParameter = noTensor; ///< of a pipeline's first and last rank: the embedding that is the head
    /// Of fused kernels, by input: the first input that has the same gradient.
    std::vector<std::vector<std::uint8_t>> fused;
    bool padsProducts = false;           ///< a compiler makes their rows start at multiples of 16 bytes
    std::vector<CompiledRegion> regions; ///< in program order, disjoint
    TensorId loss = noTensor;            ///< what backward starts from; noTensor when there is none
    TensorId output = noTensor;          ///< logits, or the last activation
    std::vector<TensorId> otherOutputs;  ///< made before it: logits in pieces
    /// The model returns both at once, `logits, loss = model(x)`; else the loop computes the loss.
    bool returnsLoss = false;
    ChosenAttention attention;
    bool hasAdapters = false;       ///< parameters have types of their own: a frozen base, adapters beside it
    bool dequantizesInHalf = false; ///< a 4-bit weight is made fp16 before it gets the type that is computed in

    std::span<const TensorId> inputs(const Operator& op) const;
    std::span<const TensorId> outputs(const Operator& op) const;
    std::span<const TensorId> saved(const Operator& op) const;

    const Layout& layoutOf(TensorId tensor) const { return layouts[tensors[tensor].layout]; }
    const Storage& storageOf(TensorId tensor) const { return storages[tensors[tensor].storage]; }
    /// "layers.3.attn"; empty for the network itself.
    std::string path(ModuleIndex module) const;
    std::vector<std::string> paths() const; ///< of every module

    std::size_t recordedOperators() const; ///< those that are not copies
    std::int64_t parameterCount() const;   ///< elements, tied ones once
    std::int64_t parameterBytes() const;
};

/// What autograd keeps after a forward pass without checkpointing, once per storage, by what the
/// storage is. 0-dimensional tensors are apart: they are a few bytes each.
struct SavedBytes
{
    std::int64_t activations = 0;
    std::int64_t inputs = 0;
    std::int64_t weightCasts = 0;
    std::int64_t buffers = 0;
    std::int64_t parameters = 0;
    std::int64_t scalars = 0;
    std::int64_t activationStorages = 0;
};
SavedBytes savedBytes(const Graph& graph);
/// The same when every Layer block is checkpointed: the inputs of blocks instead of what is inside.
SavedBytes savedBytesOfLayers(const Graph& graph);

} // namespace memscape
