// SPDX-License-Identifier: Apache-2.0
// Records a network by running it, as one would write it in PyTorch. A `Variable` is a Python
// variable: when the last copy of it dies, the recorder notes a release, and that is how long a
// forward temporary lives.
//
// How to write a family:
//   * A module is a function that opens a `ModuleScope`, makes its parameters by calling layers, and
//     returns a Variable:
//         Variable mlp(NetworkBuilder& b, const Variable& x, std::int64_t width)
//         {
//             const ModuleScope scope(b, "mlp", "MLP");
//             Variable hidden = b.linear("up", x, 4 * width);
//             hidden = b.gelu(std::move(hidden));       // hidden = F.gelu(hidden)
//             return b.linear("down", std::move(hidden), width);
//         }
//   * Operators take their operands by value and drop them before they return. `b.gelu(x)` keeps x
//     alive, `b.gelu(std::move(x))` and `b.gelu(b.add(x, y))` are the nested calls of Python, whose
//     intermediate results die as soon as they are used.
//   * C++ does not order the arguments of a call: at most one of them may record something. Name the
//     others first, in Python's order.
//   * A called module sees its arguments for as long as it runs (Python's frame holds them): take
//     them by const reference. Where the argument is a temporary of the caller, as in
//     `x + attention(norm(x))`, name it in its own scope or use `call`, which drops it on return:
//         x = b.add(x, b.call(b.layerNorm("ln1", x), [&](const Variable& y) { return attention(y); }));
//   * One layer that checkpointing may run again is `b.layer([&] { return block(b, x); })`; the
//     argument must be named outside, as `x` is here. Within it, `b.attentionCore(…)` marks scores,
//     softmax and context.
//   * Loops over layers (and experts) that are alike are `b.repeat(x, "layers", 0, count, body)`: a few are
//     recorded, the others are copied.
//   * Other loops ask `b.ok()`: the first mistake (a size that does not fit, bytes beyond
//     2^62, too many operators) is kept, everything after it does nothing, `finish` returns it.
//   * Autocast is the builder's business: `linear`, `matmul`, `einsum`, `convolution` and attention
//     cast to the low precision, norms, softmax and losses to float, as the CUDA lists say
//     (aten/src/ATen/autocast_mode.h). A parameter's cast is made once and kept until `finish`.
//
// Left out: in-place writes into part of a tensor, complex numbers, sparse tensors.
#pragma once

#include "core/base/result.h"
#include "core/network/build_options.h"
#include "core/network/graph.h"

#include <array>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace memscape {

class NetworkBuilder;

/// A name for a tensor. Parameters, buffers and inputs have names too; theirs never end.
class Variable
{
public:
    Variable() = default;
    Variable(NetworkBuilder& builder, TensorId tensor);
    Variable(const Variable& other);
    Variable(Variable&& other) noexcept;
    Variable& operator=(Variable other) noexcept; ///< the old value dies after the new one exists
    ~Variable() { reset(); }

    void reset(); ///< `del x`
    explicit operator bool() const { return m_builder != nullptr; }
    TensorId id() const { return m_tensor; }
    const Layout& layout() const;
    Shape shape() const { return layout().shape; } ///< a copy
    std::int64_t size(int dimension) const;        ///< −1 is the last
    DType dtype() const;

private:
    friend class NetworkBuilder;
    NetworkBuilder* m_builder = nullptr;
    TensorId m_tensor = noTensor;
};

struct ConvolutionShape
{
    std::int64_t kernel = 1;
    std::int64_t stride = 1;
    std::int64_t padding = 0;
    std::int64_t groups = 1;
    bool hasBias = false;
};

class NetworkBuilder
{
public:
    explicit NetworkBuilder(const BuildOptions& options);
    NetworkBuilder(const NetworkBuilder&) = delete;
    NetworkBuilder& operator=(const NetworkBuilder&) = delete;

    const BuildOptions& options() const { return m_options; }
    bool ok() const { return !m_error; }
    /// Keeps the first error; everything recorded after it is ignored.
    void refuse(std::string code, std::string message, std::string hint = {});
    /// The same for a sequence that is longer than the positions of the network.
    void refuseBeyond(std::int64_t positions);
    /// The same for one that is too short for `count` of `what`.
    void refuseBelow(std::int64_t count, std::string_view what);

    /// The recorded program. `loss` and the outputs stay named after it when they are variables of the
    /// training loop. Errors: what was refused, or network.size, network.shape.
    Result<Graph> finish(Variable output, Variable loss = {});
    Result<Graph> finish(const std::vector<Variable>& outputs, Variable loss);

    // --- tensors that exist before the step -----------------------------------------------------
    Variable parameter(std::string_view name, const Shape& shape, bool isTrained = true);
    Variable trained(std::string_view name, const Shape& shape, DType dtype) { return added(name, shape, dtype, true); }
    Variable buffer(std::string_view name, const Shape& shape, DType dtype);
    Variable input(std::string_view name, const Shape& shape, DType dtype, bool wantsGradient = false);
    Variable target(std::string_view name, const Shape& shape, DType dtype);

    // --- modules and blocks ---------------------------------------------------------------------
    template <typename Body> Variable layer(Body body) { return block(Block::Kind::Layer, body); }
    template <typename Body> Variable attentionCore(Body body) { return block(Block::Kind::AttentionCore, body); }
    /// for (i = first; i < first + count; ++i) body(i, x), where `body` opens a module "prefix.i" and gives x
    /// a new value; it does the same for each i. Iterations from the fourth on are copies of the third where that is
    /// one of the second: Graph::copies says so.
    template <typename Body>
    void repeat(Variable& x, std::string_view prefix, std::int64_t first, std::int64_t count, Body body)
    {
        std::array<Mark, recordedIterations + 1> marks{mark()};
        for (std::int64_t i = 0; i < count && ok(); ++i) {
            body(first + i, x);
            if (i < recordedIterations)
                marks[std::size_t(i + 1)] = mark();
            if (i + 1 == recordedIterations && !m_options.recordsEveryIteration && isCopy(marks))
                return copyIterations(marks, prefix, first + i + 1, count - recordedIterations, x);
        }
    }
    /// body(argument), and the argument dies when it returns.
    template <typename Body> static Variable call(Variable argument, Body body)
    {
        Variable result = body(std::as_const(argument));
        argument.reset();
        return result;
    }

    // --- layers: a module of that name with its parameters ----------------------------------------
    Variable linear(std::string_view name, Variable x, std::int64_t outputs, bool hasBias = true);
    /// The same matrix times each piece. Refuses an adapter beside it.
    std::vector<Variable> linearOfEach(std::string_view name, std::vector<Variable> pieces, std::int64_t outputs,
                                       bool hasBias);
    /// One matrix for queries, keys and values of these widths, with LitGPT's adapters (litgpt.h).
    Variable jointLinear(std::string_view name, Variable x, const std::array<std::int64_t, 3>& widths, bool hasBias);
    /// result + B A x, where the linear module whose scope is open has an adapter; `weight` and `bias` are its own.
    Variable adapted(Variable x, Variable result, const Variable& weight, const Variable& bias = {});
    /// What a head multiplies by that shares the weight of an embedding: the original where modules_to_save copied the
    /// embedding, a copy of its own where they name the head.
    Variable tiedWeight(std::string_view head, const Variable& embedding);
    Variable layerNorm(std::string_view name, Variable x, bool hasBias = true);
    Variable rmsNorm(std::string_view name, Variable x);
    Variable embedding(std::string_view name, Variable indices, std::int64_t count, std::int64_t width);
    Variable convolution(std::string_view name, Variable x, std::int64_t channels, ConvolutionShape shape);
    /// Conv1d: x (B, C, L).
    Variable convolution1d(std::string_view name, Variable x, std::int64_t channels, ConvolutionShape shape);
    Variable batchNorm(std::string_view name, Variable x);

    // --- views ------------------------------------------------------------------------------------
    Variable view(Variable x, const Shape& shape); ///< network.shape when it needs a copy
    Variable reshape(Variable x, const Shape& shape);
    Variable transpose(Variable x, int a, int b);
    Variable permute(Variable x, std::initializer_list<int> order);
    Variable permute(Variable x, std::span<const int> order);
    Variable expand(Variable x, const Shape& shape);
    Variable narrow(Variable x, int dimension, std::int64_t length); ///< x[..., :length]
    Variable select(Variable x, int dimension);                      ///< x[:, i]
    Variable unsqueeze(Variable x, int dimension);
    Variable flatten(Variable x, int from);
    std::vector<Variable> unbind(Variable x, int dimension); ///< a, b = x: every x[:, i]
    std::vector<Variable> split(Variable x, const std::vector<std::int64_t>& sizes, int dimension);
    std::vector<Variable> chunk(Variable x, int count, int dimension);
    Variable detach(Variable x);

    // --- copies -----------------------------------------------------------------------------------
    Variable contiguous(Variable x);
    Variable clone(Variable x);             ///< of the same order of dimensions
    Variable cast(Variable x, DType dtype); ///< x.to(dtype); x itself when it has that type
    Variable cat(std::vector<Variable> parts, int dimension);
    Variable stack(std::vector<Variable> parts, int dimension);
    Variable pad(Variable x, std::int64_t before, std::int64_t after);
    Variable fill(const Shape& shape, DType dtype);          ///< torch.ones(…), torch.arange(…)
    Variable compare(Variable x, DType dtype = DType::Bool); ///< ~x
    Variable equalsNumber(Variable x);                       ///< x == 0
    Variable compare(Variable x, Variable y);                ///< x >= y, broadcast

    // --- elementwise ------------------------------------------------------------------------------
    Variable add(Variable x, Variable y);
    Variable addInPlace(Variable x, Variable y); ///< x += y
    Variable subtract(Variable x, Variable y);
    Variable multiply(Variable x, Variable y);
    Variable divide(Variable x, Variable y);
    Variable scale(Variable x); ///< x * number, x / number
    Variable shift(Variable x); ///< x + number
    Variable negate(Variable x);
    /// Any one-operand elementwise operator; `inPlace` for its underscore form.
    Variable unary(OperatorKind kind, Variable x, bool inPlace = false);
    Variable gelu(Variable x) { return unary(OperatorKind::Gelu, std::move(x)); }
    Variable silu(Variable x) { return unary(OperatorKind::Silu, std::move(x)); }
    Variable relu(Variable x) { return unary(OperatorKind::Relu, std::move(x)); }
    Variable tanh(Variable x) { return unary(OperatorKind::Tanh, std::move(x)); }
    Variable sigmoid(Variable x) { return unary(OperatorKind::Sigmoid, std::move(x)); }
    Variable gatedActivation(Variable gate, Variable x); ///< SwiGLU's silu(gate) · x as one kernel
    Variable maskedFill(Variable x, Variable mask);
    Variable where(Variable mask, Variable x); ///< torch.where(mask, x, number)
    Variable dropout(Variable x, double probability);

    // --- reductions and norms ---------------------------------------------------------------------
    Variable sum(Variable x, int dimension, bool keep = false);
    Variable sumAll(Variable x);
    Variable mean(Variable x, int dimension, bool keep = true);
    Variable meanAll(Variable x);
    Variable maximum(Variable x, int dimension, bool keep = false); ///< values; indices die
    Variable variance(Variable x, int dimension);
    Variable softmax(Variable x);
    Variable softmax(Variable x, DType computed); ///< F.softmax(x, -1, dtype=…): a cast before it
    Variable logSoftmax(Variable x);
    Variable layerNorm(Variable x, Variable weight, Variable bias);
    Variable fusedRmsNorm(Variable x, Variable weight);
    Variable groupNorm(Variable x, std::int64_t groups, Variable weight, Variable bias);
    /// `mean` and `variance` are the running statistics.
    Variable batchNorm(Variable x, Variable weight, Variable bias, Variable mean, Variable variance);

    // --- between devices (operators_parallel.cpp) -------------------------------------------------
    /// What matrices that are divided by columns read: x (B, S, …) whole along the sequence.
    Variable columnInput(Variable x);
    /// The sum over devices of what matrices divided by rows made; sequence parallel: its own part.
    Variable rowOutput(Variable x);
    /// As many rows as before, each from the rank that has what they need.
    Variable allToAll(Variable x);

    // --- products ---------------------------------------------------------------------------------
    Variable linear(Variable x, Variable weight, Variable bias = {});
    Variable matmul(Variable x, Variable y);
    /// Two operands, one letter a dimension, no repeated letter within an operand and none summed
    /// that only one has: einsum("bqhd,bkhd->bhqk", q, k).
    Variable einsum(std::string_view equation, Variable x, Variable y);
    Variable convolution(Variable x, Variable weight, Variable bias, const ConvolutionShape& shape);
    /// x (B, H', S, D) with every head H / H' times in a row, copied.
    Variable repeatedHeads(Variable x, std::int64_t heads);
    /// q (B, H, S, D), k and v with as many or fewer heads; result (B, H, S, D), dense as (B, S, H, D). A causal one
    /// leaves out what its mask hides; a `mask` of Bool (B, 1, S, keys) comes in place of that.
    Variable scaledDotProduct(Variable q, Variable k, Variable v, bool isCausal = false, const Variable& mask = {});

    /// (B, n, k) and (B, k, m), as they are. grouped_mm also keeps where each group of rows ends: `offsets` (B).
    Variable bmm(Variable x, Variable y, const Variable& offsets = {});
    Variable mm(Variable x, Variable y, Variable bias = {}); ///< (n, k) and (k, m)

    // --- for programs of others (operators_general.cpp) -------------------------------------------
    /// Any number of dimensions, strides and paddings: what they make is `result`.
    Variable convolution(Variable x, Variable weight, Variable bias, const Shape& result, std::int64_t groups);
    Variable pool(OperatorKind kind, Variable x, const Shape& result); ///< and interpolation
    /// Over several dimensions, which are 1 in `kept`.
    Variable reduced(OperatorKind kind, Variable x, const Shape& kept);
    struct OtherKeeps
    {
        bool inputs = false, result = false;
        int temporaries = 0; ///< of the gradient's size, while backward makes it
    };
    /// An operator without a rule: one result; backward makes a gradient for each input that wants one.
    Variable other(std::vector<Variable> inputs, const Layout& layout, DType dtype, const OtherKeeps& keeps,
                   bool inPlace);
    /// torch.set_grad_enabled(wanted); answers what was.
    bool recordGradient(bool wanted);
    /// The same for autocast, which is off within an operator that it cast the arguments of.
    std::optional<DType> recordAutocast(std::optional<DType> wanted);

    // --- lookups, pictures, losses ------------------------------------------------------------------
    Variable embedding(Variable indices, Variable weight);
    /// x[indices], along the first dimension; where they are the places of a `mask` of Bool, it is kept in their place.
    Variable index(Variable x, Variable indices, const Variable& mask = {});
    Variable indexSelect(Variable x, int dimension, Variable indices);
    Variable gather(Variable x, Variable indices);
    Variable maxPool(Variable x, std::int64_t kernel, std::int64_t stride, std::int64_t padding = 0);
    Variable averagePool(Variable x, std::int64_t kernel);
    Variable adaptiveAveragePool(Variable x, std::int64_t size);
    Variable interpolate(Variable x, std::int64_t factor, bool bilinear = false);
    Variable crossEntropy(Variable logits, Variable target);
    Variable mseLoss(Variable x, Variable target);
    /// The mean cross-entropy of rows (N, H) through a matrix (V, H), without logits.
    Variable ligerLoss(Variable rows, Variable weight, Variable target);
    Variable cutLoss(Variable rows, Variable weight, Variable target);
    /// The same of logits (N, V).
    Variable inPlaceLoss(Variable logits, Variable target);

private:
    friend class Variable;
    friend class ModuleScope;

    /// How much of everything has been recorded (builder_repeat.cpp).
    struct Mark
    {
        std::uint32_t operators = 0, operands = 0, tensors = 0, storages = 0, modules = 0, parameters = 0, buffers = 0,
                      blocks = 0, casts = 0;
    };
    /// The first differs where it meets what is before the loop, the second where it meets the first.
    static constexpr std::int64_t recordedIterations = 3;
    using Marks = std::array<Mark, recordedIterations + 1>;
    Mark mark() const;
    bool isCopy(const Marks& marks) const;
    void copyIterations(const Marks& marks, std::string_view prefix, std::int64_t first, std::int64_t count,
                        Variable& x);
    void copyIteration(const Marks& marks, std::string name, std::uint32_t number);
    template <typename Map> void copyBesides(const Marks& marks, Map tensor, Map storage);
    void refuseTensors();
    static constexpr std::size_t tensorLimit = 20'000'000;

    struct Output
    {
        Layout layout;
        DType dtype = DType::Float32;
        bool isFresh = true; ///< false: a view of inputs[0]
    };
    /// The general form of every method above: one output.
    Variable record(OperatorKind kind, std::initializer_list<TensorId> inputs, const Output& output,
                    std::initializer_list<TensorId> saved = {}, std::int64_t attribute = 0);
    /// Any number of outputs; `saved` may name them through the result's ids.
    Operator& begin(OperatorKind kind, std::span<const TensorId> inputs);
    TensorId addOutput(const Output& output, bool hasGradient);
    void save(TensorId tensor);
    bool wantsGradient(std::span<const TensorId> inputs) const;
    bool needsGradient(const Variable& x) const;

    /// A result whose operands are dropped first: parameters of a C++ function would otherwise live
    /// until the end of the caller's statement.
    template <typename... Used> static Variable settled(Variable result, Used&... used)
    {
        (used.reset(), ...);
        return result;
    }
    Variable viewOf(OperatorKind kind, Variable& x, const Layout& layout, std::int64_t attribute = 0);
    Variable elementwise(OperatorKind kind, Variable& x, Variable& y, bool savesOther);
    Variable reduction(OperatorKind kind, Variable& x, int dimension, bool keep, bool savesInput);
    Variable pooled(OperatorKind kind, Variable& x, std::int64_t height, std::int64_t width, bool savesInput);
    void castEach(std::vector<Variable*> operands); ///< of a function that autocast wraps, by lowPrecision()
    Variable lowPrecision(Variable x);              ///< autocast's cast, cached for parameters
    Variable highPrecision(Variable x);
    Variable highPrecisionOnGpu(Variable x);
    Variable composedRmsNorm(Variable x, Variable weight);
    Variable scaleByNumber(Variable x);
    Variable safeSoftmax(Variable x);
    Variable addedMask(const Variable& mask, DType dtype, bool isAligned);
    Variable mathAttention(Variable query, Variable key, Variable value, bool isCausal, const Variable& added);
    Variable attentionKernel(bool isEfficient, Variable& q, Variable& k, Variable& v, bool isCausal,
                             const Variable& added);
    Variable logSoftmaxOf(Variable x, bool isDivided = false); ///< in the type of x, under autocast too
    void sumInFloat();                                         ///< the sum recorded last, under autocast
    bool isInLayer() const { return m_layers > 0; }
    // --- adapters and quantized weights (adapters.cpp)
    bool isQuantizedHere() const
    {
        const auto& adapters = m_options.adapters;
        return adapters && adapters->isQuantized() && (isInLayer() || adapters->quantizesHead);
    }
    bool hasAdapter();
    bool isSavedModule();
    bool scalesInput() const; ///< IA3 on the layer whose scope is open
    /// x times a trained vector over its last dimension, in the type of x.
    Variable scaledByVector(Variable x, bool isInput);
    /// result + b · B (d · A x) with frozen matrices that all layers share.
    Variable veraAdapted(Variable x, Variable result);
    Variable sharedMatrix(std::size_t which, int dimension, std::int64_t length);
    bool isWithin(std::string_view type) const; ///< a module whose type contains the word
    void checkAdapterNames();
    Variable decomposed(const Variable& x, const Variable& result, const Variable& weight, const Variable& bias,
                        const Variable& a, const Variable& b);
    Variable added(std::string_view name, const Shape& shape, DType dtype, bool isTrained);
    bool isJointPart(std::string_view part);
    Variable jointAdapted(Variable x, Variable result, const std::array<std::int64_t, 3>& widths);
    bool isRankWithin(std::int64_t inputs, std::int64_t outputs);
    Variable linearWeight(const Shape& shape);
    Variable linearBias(std::int64_t outputs, DType input);
    DType computeType(DType input) const;
    Variable storedLinear(Variable x, Variable weight, Variable bias);
    Variable dequantized(const Variable& weight, DType dtype);
    Variable quantizedLinear(Variable x, Variable weight, Variable bias);
    Variable gptqLinear(Variable x, const Variable& weight, Variable bias);
    Variable int8Linear(Variable x, Variable weight, Variable bias);
    Variable fp8Copy(const Variable& x);
    Variable product(Variable& x, const Variable& operand, const Variable& kept, const Variable& weight,
                     const Variable& bias);
    Variable castProduct(Variable x, Variable y);
    Variable made(std::string_view name, const Shape& shape, DType dtype, Role role, bool gradient);
    LayoutId layoutId(const Layout& layout);
    TensorId newTensor(const Layout& layout, DType dtype, StorageId storage, bool gradient);
    StorageId newStorage(const Shape& shape, DType dtype, OperatorKind source, Role role);

    template <typename Body> Variable block(Block::Kind kind, Body body)
    {
        const std::size_t index = beginBlock(kind);
        m_layers += kind == Block::Kind::Layer;
        Variable output = body();
        m_layers -= kind == Block::Kind::Layer;
        endBlock(index, output);
        return output;
    }
    std::size_t beginBlock(Block::Kind kind);
    void endBlock(std::size_t index, const Variable& output);

    void retain(TensorId tensor);
    void release(TensorId tensor);
    void enterModule(std::string_view name, std::string_view type);
    void leaveModule();

    BuildOptions m_options;
    std::optional<Error> m_error;
    struct LayoutHash
    {
        std::size_t operator()(const Layout& layout) const { return layout.hash(); }
    };

    Graph m_graph;
    std::unordered_map<Layout, LayoutId, LayoutHash> m_layouts; ///< of m_graph
    std::vector<std::uint32_t> m_names;                         ///< variables per tensor
    std::vector<TensorId> m_castOf;                             ///< autocast's cache, by parameter
    std::vector<Variable> m_casts;
    struct Gathered
    {
        TensorId whole = noTensor, part = noTensor;
    };
    Gathered gatheredIn(TensorId tensor) const;
    std::vector<Gathered> m_gathered; ///< by storage: which tensor was gathered there, from what
    int m_layers = 0;                 ///< Layer blocks that are being recorded
    bool m_hasAdapters = false;       ///< some linear layer got one
    std::array<TensorId, 2> m_sharedMatrices{noTensor, noTensor}; ///< VeRA's A and B
    std::vector<std::string> m_linearNames,
        m_holderNames;                                  ///< last components: of linear layers, of all with parameters
    std::unordered_map<TensorId, TensorId> m_originals; ///< trained copy of modules_to_save -> frozen original
    ModuleIndex m_module = 0;
};

/// The module that operators and parameters belong to while it lives.
class ModuleScope
{
public:
    ModuleScope(NetworkBuilder& builder, std::string_view name, std::string_view type = {})
        : m_builder(builder)
    {
        m_builder.enterModule(name, type);
    }
    ~ModuleScope() { m_builder.leaveModule(); }
    ModuleScope(const ModuleScope&) = delete;
    ModuleScope& operator=(const ModuleScope&) = delete;

private:
    NetworkBuilder& m_builder;
};

} // namespace memscape
