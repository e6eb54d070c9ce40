// SPDX-License-Identifier: Apache-2.0
// Runs a recorded network forward and backward as PyTorch's eager mode and autograd engine do, and
// writes every allocation and free into a trace.
//
// Forward: an operator allocates its results; a storage is kept as long as a Python variable names it
// (until its Release) or a node of the autograd graph has packed it.
// Backward (torch/csrc/autograd/engine.cpp): nodes run in reverse order of creation. A node computes
// the gradients of its inputs in the order of derivatives.yaml, sums broadcast ones, then drops the
// gradient it was given, then what it had packed, and hands the results on. Two gradients for one
// tensor are added: into the first where nothing else holds it (since 2.0), else into a new one.
// A parameter keeps its first gradient as it is when it is dense in the parameter's own order, else
// a copy; later ones are added into it.
//
// A region that torch.compile made (Graph::regions) is one node: results without a gradient get zeros, its first kernel
// writes over no gradient that it is given, and at its end it gives all its own. What its
// forward keeps is packed when all of it has run, so that checkpointing replays it to its end, and its backward takes
// all of that at once.
//
// The first product of each pass brings cuBLAS's workspace with it (blas_workspace.h).
//
// Left out: other workspaces of kernels (cuDNN, sorting of indices), hooks, higher derivatives.
#pragma once

#include "core/network/build_options.h"
#include "core/network/graph.h"
#include "core/training/cpu_kernels.h"
#include "core/training/gathered_weights.h"
#include "core/training/live_storages.h"
#include "core/training/placement.h"
#include "core/training/segments.h"

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

namespace memscape {

class FsdpUnits;
class HostActivations;

class Autograd
{
public:
    /// Writes the allocations of parameters, buffers and the batch, as they are placed. The graph
    /// and the trace must outlive this. `moduleIds` are the trace's, beside Graph::modules.
    Autograd(const Graph& graph, const CheckpointPlan& checkpointing, const EagerRules& rules, Trace& trace,
             std::vector<ModuleId> moduleIds, ParameterPlacement placement = {});
    ~Autograd();

    /// B that the first product of a forward pass allocates behind its result, and the first of a
    /// backward pass, which runs on another thread, once more; both stay.
    void setBlasWorkspace(std::int64_t bytes) { m_blasWorkspace = bytes; }

    /// Is called, with its index of Graph::parameters, when a parameter has its gradient, which ends behind it.
    void setUpdate(std::function<void(std::size_t)> update) { m_update = std::move(update); }

    /// One forward pass. The former values of `loss` and `output` are freed when they are assigned again.
    void forward();
    /// loss.backward(); without a loss, backward from the output with a gradient of ones.
    void backward();
    /// Whether backward reduces FSDP's gradients; else they stay whole and are summed (no_sync).
    void setReduces(bool reduces) { m_reduces = reduces; }
    /// The same of one micro-batch through a chunk of a pipeline's rank (Graph::chunks): several are in flight. Forward
    /// begins with what the rank before sent, and gives back what it sends on; backward begins with the gradient of
    /// that, and gives back what it was sent with the gradient that it sends back.
    void forward(std::uint32_t chunk, std::uint32_t microBatch);
    void backward(std::uint32_t chunk, std::uint32_t microBatch);
    /// Ends what the training loop still names: the loss, and the output where it was kept.
    void dropResults();

    /// The blocks of `.grad`, beside Graph::parameters; noBlock where there is none. zero_grad
    /// empties them, and says so here with `forgetGradients`.
    std::vector<BlockId> gradients() const;
    void forgetGradients();
    /// Gradients that the step before left, where zero_grad(set_to_none=False) keeps them, or an earlier micro-batch.
    void findGradients();
    /// Those of gradients() that another findGradients() asks for, in its order.
    std::vector<BlockId> gradientsToFind() const;
    /// Attributes of nodes behind the loss that the loop still names from the step before.
    void findAttributes();
    /// The blocks of output and loss that the training loop still names, and of what lives as long as these.
    std::vector<BlockId> results() const;
    /// The blocks of parameters, beside Graph::parameters.
    std::vector<BlockId> parameters() const;

private:
    /// A gradient on its way: which storage and how it lies there.
    struct Gradient
    {
        LiveId live = 0;
        DType dtype = DType::Float32;
        Layout layout;
        bool isView = false; ///< its base keeps a second reference: never added into
    };
    static constexpr std::size_t gradientLimit = 256;
    static constexpr std::uint32_t noRegion = UINT32_MAX;

    /// What the forward of a micro-batch leaves for its backward.
    struct Pass
    {
        std::vector<LiveId> bound, saved;
        std::vector<std::uint8_t> isNamed;
        std::vector<LiveId> segmentInputs, firstInput;
        LiveId loss = 0;
        std::vector<LiveId> outputs, attributes;
    };
    void exchange(Pass& pass);

    // --- forward
    void runForward(std::uint32_t first, std::uint32_t last);
    void run(const Operator& op, bool saves);
    void runSegment(const Segment& segment);
    static bool isKept(const Segment& segment, std::uint32_t op);
    /// Where the results that a segment keeps lie behind its first input.
    std::size_t keptFrom(const Segment& segment) const { return segment.inputs.size() + (m_keepsGenerator ? 1 : 0); }
    template <typename MakeOutput>
    void runKernel(const KernelSteps& steps, const Operator& op, const MakeOutput& makeOutput);
    void pack(const Operator& op);
    void packNumber(const Operator& op);
    void releaseLoss();
    void releaseOutputs();
    LiveId generatorState();
    void name(TensorId tensor);
    void unname(TensorId tensor);

    // --- backward
    /// All of [first, last), from what `root` is given.
    void runBackwardFrom(TensorId root, std::string_view given, std::uint32_t first, std::uint32_t last);
    void runBackward(std::uint32_t first, std::uint32_t last); ///< [first, last), from the end
    void runSegmentBackward(const Segment& segment);
    void replay(const Segment& segment);
    void replayLast(const Operator& op);
    void releaseInputs(const Segment& segment);
    /// The node of a segment that runs last among those with a saved tensor: checkpoint's frame,
    /// which keeps the inputs, is freed with the last of its holders.
    std::uint32_t lastHolder(const Segment& segment) const;
    void runNode(const Operator& op);
    void applyRule(const Operator& op, Gradient& given); ///< backward_rules.cpp, into m_results
    bool viewBackward(const Operator& op, const Gradient& given);
    bool elementwiseBackward(const Operator& op, const Gradient& given);
    bool binaryBackward(const Operator& op, const Gradient& given);
    bool productBackward(const Operator& op, Gradient& given);
    bool normBackward(const Operator& op, const Gradient& given);
    void attentionBackward(const Operator& op, const Gradient& given);
    void flashScratch(const Layout& q, const Layout& k, DType dtype);
    void expandedScratch(const Layout& q, const Layout& k, DType dtype);
    void efficientScratch(const Layout& q, DType dtype);
    LiveId scratch(std::int64_t bytes); ///< what a kernel needs while it runs
    /// fp16, from which a dequantized weight is cast; 0 where there is none.
    LiveId halfCopy(TensorId dequantized, NameId name, ModuleId module);
    void ringScratch(const Operator& op, bool isBackward); ///< of context parallelism
    // On a CPU (backward_cpu.cpp).
    bool numberBackward(const Operator& op, const Gradient& given);
    Gradient timesNumber(const Gradient& given, TensorId like);
    Gradient meanBackward(TensorId input, const Layout& layout, const Gradient& given);
    void normScratch(const Operator& op);
    void convolutionBackward(const Operator& op, const Gradient& given);
    void embeddingScratch(const Operator& op, const Gradient& given);
    void attentionTiles(const Layout& query, const Layout& key, DType dtype);
    void splitBackward(const Operator& op);
    void fusedBackward(const Operator& op);
    void enterRegion(std::uint32_t op); ///< in backward
    void leaveRegion(std::uint32_t op);
    bool isCompiled() const { return !m_graph.regions.empty(); }
    bool isInRegion(const Operator& op) const
    {
        return isCompiled() && m_regionOf[std::size_t(&op - m_graph.operators.data())] != noRegion;
    }
    bool replaysAll() const { return m_isReentrant || isCompiled(); }
    // Losses that take the head's matrix (fused_loss.cpp).
    void runLigerLoss(const Operator& op);
    LiveId ligerLogits(const Operator& op, std::int64_t rows);
    void ligerChunk(const Operator& op, std::int64_t rows, LiveId& cachedCast);
    void ligerBackward(const Operator& op);
    void cutBackward(const Operator& op);
    void inPlaceLossBackward(const Operator& op);
    void dividedLossBackward(const Operator& op);
    void deliver(TensorId tensor, Gradient gradient);
    void accumulate(TensorId tensor, Gradient& sum, Gradient gradient);
    Gradient taken(TensorId tensor); ///< out of its slot
    void accumulateIntoParameter(TensorId tensor, Gradient gradient);
    void updateReady(); ///< parameters whose gradients the last node has handed on

    // --- activations in the host's memory (host_activations.h)
    bool sendsToHost(const Operator& op) const;
    void sendRegion(std::uint32_t region);
    void bringBack(const Operator& op);
    void bringBackRegion(std::uint32_t region);
    void sendInputs(const Segment& segment);
    void bringBackInputs(const Segment& segment);
    LiveId broughtBack(TensorId tensor);

    // --- weights and gradients of which a part is kept (placement.h)
    void allocatePlaced(const std::vector<NameId>& names);
    void makeUnits();
    void enterUnit(const Operator& op);
    void leaveUnit();
    bool isReduced(TensorId tensor) const { return m_keptGradient[tensor] >= 0; }
    void waitForUnit(TensorId tensor, Gradient& gradient);
    void reduceGradients(); ///< those of the layer that backward has left
    void reduce(TensorId tensor, Gradient& whole);
    void reduceUnit(std::uint32_t unit); ///< of FSDP
    LiveId flatGradient(std::vector<std::pair<TensorId, Gradient>>& gradients, std::int64_t elements);
    void keepWhole(std::uint32_t unit, const std::vector<std::pair<TensorId, Gradient>>& gradients, LiveId flat,
                   LiveId sum);
    void keepPieces(const std::vector<std::pair<TensorId, Gradient>>& gradients, std::int64_t shares);
    std::vector<std::pair<TensorId, Gradient>> takeUnreduced(std::uint32_t unit);
    void endReductions();
    // Of DeepSpeed.
    void fillBucket(TensorId tensor, Gradient& whole);
    void dropCopied(Gradient& whole);
    void flushBucket();
    void copyBucket(std::int64_t filled);
    void makeBuckets();
    void keepPartition(TensorId tensor, std::int64_t bytes);
    void reduceSum(TensorId tensor);

    std::int64_t bytesToFind(TensorId parameter) const; ///< of its gradient between micro-batches; 0: it has none
    void validate(TensorId tensor, Gradient& gradient);
    void dropSaved(const Operator& op);
    void endNested(const Segment& segment, std::size_t attributes);
    void hookInputs(const Segment& segment);
    void provideBlasWorkspace(ModuleId module); ///< once a thread

    // --- what rules are written with
    bool wants(TensorId tensor) const { return m_graph.tensors[tensor].needsGradient; }
    const Layout& layoutOf(TensorId tensor) const { return m_graph.layoutOf(tensor); }
    Gradient fresh(const Layout& layout, DType dtype);
    /// A gradient of the input itself: kept by a parameter.
    Gradient freshFor(TensorId input, const Layout& layout, DType dtype);
    Gradient alias(const Gradient& given); ///< the same tensor
    Gradient viewOf(const Gradient& given, const Layout& layout);
    Gradient elementwise(const Gradient& given, TensorId other);
    /// `count` temporaries of the size of the result, all alive until it exists.
    Gradient elementwiseAfter(int count, const Gradient& given, TensorId other);
    Gradient remade(TensorId operand, DType dtype);       ///< of a product; nothing where it was packed
    void reshape(Gradient& gradient, const Shape& shape); ///< a copy where no view exists
    void drop(Gradient& gradient);

    const Graph& m_graph;
    EagerRules m_rules;
    ParameterPlacement m_placement;
    bool m_isReentrant;
    std::vector<Segment> m_segments;
    Trace& m_trace;
    LiveStorages m_live;

    std::vector<LiveId> m_bound; ///< storage of the graph -> now
    std::vector<LiveId> m_saved; ///< beside Graph::operands: what a node has packed
    std::vector<LiveId> m_replayed;
    std::vector<std::uint8_t> m_isNamed; ///< by tensor
    std::vector<std::uint32_t> m_slot;   ///< by tensor: its gradient in m_gradients, 0 is none
    std::vector<Gradient> m_gradients;
    std::vector<std::uint32_t> m_freeSlots;
    std::vector<std::uint32_t> m_uses;        ///< by tensor: nodes that hand it a gradient
    std::vector<std::uint8_t> m_isLeaf;       ///< by tensor: no operator made it
    std::vector<std::uint32_t> m_pending;     ///< the same, still to come
    std::vector<LiveId> m_parameterGradient;  ///< by tensor: `.grad`
    std::vector<std::int64_t> m_keptGradient; ///< by tensor: B after reduction, −1: as it is
    std::vector<std::pair<TensorId, Gradient>> m_unreduced;
    bool m_reduces = true;
    std::map<TensorId, Gradient> m_wholeGradients; ///< of micro-batches that did not reduce: FSDP 2's,
    std::map<std::uint32_t, LiveId> m_wholeUnits;  ///< and by unit FSDP 1's flat ones
    std::vector<std::uint32_t> m_regionOf;         ///< by operator: of Graph::regions, or noRegion; empty without
    bool m_isInRegion = false;
    std::vector<LiveId> m_held;                           ///< gradients that it is given
    std::vector<std::pair<TensorId, Gradient>> m_unadded; ///< of parameters, until the region's backward ends
    std::vector<Gradient> m_given;                        ///< to the outputs of a fused kernel
    std::vector<LiveId> m_fusedResults;
    std::unique_ptr<HostActivations> m_host;
    std::unique_ptr<GatheredWeights> m_units;
    FsdpUnits* m_fsdp = nullptr;                    ///< the same, where it is one
    std::vector<std::uint32_t> m_parameterIndex;    ///< by tensor, of Graph::parameters
    std::vector<BlockId> m_copiedPieces;            ///< of FSDP 1, whose copies the host has
    BlockId m_reduceBuffer = noBlock;               ///< FSDP 2's last reduce-scatter input, DeepSpeed's bucket
    std::int64_t m_filled = 0, m_flushed = 0;       ///< elements of gradients in the bucket, and before it
    std::vector<TensorId> m_inBucket;               ///< whose gradients it has
    std::vector<Gradient> m_besideBucket;           ///< that are larger than it
    BlockId m_nextPartition = noBlock;              ///< of a later micro-batch, until it has been added
    bool m_isReplaying = false, m_isEnding = false; ///< a segment is recomputed; backward's last operator has run
    std::vector<LiveId> m_segmentInputs;
    std::vector<LiveId> m_firstInput;              ///< index into it, by segment
    std::array<Gradient, gradientLimit> m_results; ///< of the running node, beside its inputs
    /// What checkpoint's hook unpacks is the node's alone and is freed when its formula is done, before
    /// broadcast gradients are summed.
    bool m_ownsUnpacked = false;
    bool m_isCut = false;                             ///< the running operator ends before its result exists
    bool m_keepsResults = false, m_takesKept = false; ///< of the operator that runs: Segment::kept
    std::size_t m_nextKept = 0;                       ///< index into m_segmentInputs, of the segment that is replayed
    bool m_keepsGenerator = false;                    ///< its state, beside the inputs of a segment
    const Segment* m_dying = nullptr;                 ///< its inputs end with the next node
    std::function<void(std::size_t)> m_update;
    std::vector<TensorId> m_ready; ///< for it
    std::int64_t m_blasWorkspace = 0;
    std::array<bool, phaseCount> m_hasBlasWorkspace{};
    LiveId m_loss = 0;
    std::vector<LiveId> m_hooked;     ///< inputs of nested backwards and their gradients: they end with backward
    std::vector<LiveId> m_attributes; ///< of nodes that backward has left: they end with the loss
    std::vector<LiveId> m_outputs;    ///< that the training loop still names
    std::map<std::pair<std::uint32_t, std::uint32_t>, Pass> m_inFlight; ///< by chunk and micro-batch
    std::vector<std::vector<Pass>> m_idle;                              ///< by chunk: those that have ended

    std::vector<ModuleId> m_moduleIds;
    std::vector<NameId> m_gradientNames; ///< by tensor of a parameter
    std::array<NameId, std::size_t(OperatorKind::Count)> m_forwardNames{};
    std::array<NameId, std::size_t(OperatorKind::Count)> m_backwardNames{};
    ModuleId m_module = 0; ///< of the running operator
    NameId m_name = 0;
};

} // namespace memscape
