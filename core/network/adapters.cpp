// SPDX-License-Identifier: Apache-2.0
// Linear layers whose weights are not simply the parameter.
//
// Adapters, after peft's lora.Linear: result + B(A(dropout(x))) · alpha / r. The base is frozen, so its product keeps
// the weight for the gradient of x, but not x; A keeps x, B keeps the r columns between them, and both their weights.
// x is cast to the type of A first, and the sum back to that of the base's result: beside half weights adapters in fp32
// keep an fp32 copy of x. Beside quantized weights the result is cloned, and autocast is left to cast x
// (peft/tuners/lora/layer.py, bnb.py). rsLoRA changes alpha / r alone. LoRA-FA freezes A, which then has no use for x
// (create_lorafa_optimizer of peft/optimizers/lorafa.py; left out: its optimizer's inverse of A Aᵀ, r × r).
//
// DoRA, after peft's DoraLinearLayer: (m / |W + s B A| − 1) W x + m / |W + s B A| · s B A x. The norm has no gradient,
// but B A is made by running the identity through both, and W + s B A beside it: matrices as large as W. Both factors
// of each product are kept, W x and B A x. With dropout W x is computed once more, and W kept as it was cast.
//
// modules_to_save: the original stays, frozen; the copy is trained and used. Norms that are trained alone
// (peft/tuners/ln_tuning) are kept so, too, in the type of the weights. IA3 and VeRA: adapter_vectors.cpp; prompts and
// prefixes: families/decoder.cpp.
//
// 4-bit weights, after bitsandbytes' MatMul4Bit: x is cast to the compute type, the weight dequantized to it for the
// product and again for its backward, the result cast back. What is packed is the quantized weight alone. Before 0.44
// (pull request 1270) x was kept beside it, though a frozen weight's backward has no use for it: as an attribute of the
// node, `ctx.tensors = (A, B)`, which lives as long as the loss. Before 0.43 weights were quantized from fp16,
// `self.data.contiguous().half()`, dequantized to it and cast to the compute type: `F.dequantize_4bit(B).to(A.dtype)`.
//
// 8-bit weights, after MatMul8bitLt: x is quantized by way of fp16, the product is int32, then fp16, then of the type
// of x; its node keeps x itself. Backward dequantizes the weight. Left out: columns of outliers.
//
// GPTQ, after AutoGPTQ's QuantLinear without ExLlama's kernels, which have no backward (qlinear_cuda_old.py, 128 rows
// and more; peft/tuners/lora/gptq.py): PyTorch's own operators shift the codes apart as int32, keep them as bytes, take
// their offsets away and multiply them by their scales. Autograd packs what is multiplied, the whole matrix in fp16,
// for the gradient of x. The bias is added to the product. Left out: the offsets, shifted apart, 1 B a group.
//
// FP8, after Transformer Engine's Linear (transformer_engine/pytorch/module/linear.py): x is cast to
// FP8, one byte an element, and that copy is packed instead of x; gradients of x are in half. torchao's Float8Linear
// packs x itself (matmul_with_hp_or_float8_args: save_for_backward(input_hp, weight_hp_t)) and casts it again. Left
// out: their scales, a few floats a layer.
//
// Left out: adapters of convolutions, of embeddings and of experts that are one parameter; the scales of NF4 while
// they are dequantized; gradients of the embeddings' output (enable_input_require_grads), which reach the first norm.
#include "core/network/builder.h"

#include "core/base/text.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr std::string_view allLinear = "all-linear", attentionLayers = "attention";

bool isTargetWord(std::string_view target)
{
    return target == allLinear || target == attentionLayers;
}

/// "q_proj" and "self_attn.q_proj" name "model.layers.0.self_attn.q_proj".
bool isNamed(std::string_view path, std::string_view name)
{
    return path == name
        || (path.size() > name.size() && path.ends_with(name) && path[path.size() - name.size() - 1] == '.');
}

std::string_view lastComponent(std::string_view path)
{
    return path.substr(path.rfind('.') + 1);
}

void addOnce(std::vector<std::string>& names, std::string_view name)
{
    if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end())
        names.emplace_back(name);
}

bool isAmong(const std::vector<std::string>& names, std::string_view path)
{
    return std::any_of(names.begin(), names.end(), [&](const std::string& name) { return isNamed(path, name); });
}

} // namespace

// --- which modules ----------------------------------------------------------------------------------

bool NetworkBuilder::isWithin(std::string_view type) const
{
    for (ModuleIndex module = m_module; module != 0; module = m_graph.modules[module].parent)
        if (m_graph.modules[module].type.find(type) != std::string::npos)
            return true;
    return false;
}

bool NetworkBuilder::hasAdapter()
{
    if (!m_options.adapters || !m_options.adapters->stands() || !ok())
        return false;
    const std::string path = m_graph.path(m_module);
    addOnce(m_linearNames, lastComponent(path));
    const std::vector<std::string>& targets = m_options.adapters->targets;
    const auto asks = [&](std::string_view word) {
        return std::find(targets.begin(), targets.end(), word) != targets.end();
    };
    const bool isTarget = ((targets.empty() || asks(allLinear)) && isInLayer())
        || (asks(attentionLayers) && (isWithin("Attention") || isWithin("Attn"))) || isAmong(targets, path);
    m_hasAdapters |= isTarget;
    return isTarget;
}

bool NetworkBuilder::isSavedModule()
{
    if (!ok())
        return false;
    const std::string path = m_graph.path(m_module);
    addOnce(m_holderNames, lastComponent(path));
    const AdapterOptions& adapters = *m_options.adapters;
    return isAmong(adapters.saved, path) || (adapters.kind == AdapterKind::Norms && isAmong(adapters.targets, path));
}

bool NetworkBuilder::scalesInput() const
{
    const AdapterOptions& adapters = *m_options.adapters;
    return adapters.kind == AdapterKind::Ia3 && isAmong(adapters.feedForward, m_graph.path(m_module));
}

void NetworkBuilder::checkAdapterNames()
{
    if (!m_options.adapters || m_options.adapters->rank == 0 || m_error)
        return;
    const AdapterOptions& adapters = *m_options.adapters;
    const bool areNorms = adapters.kind == AdapterKind::Norms;
    const auto refuseName = [&](const char* key, const char* what, const std::string& name,
                                const std::vector<std::string>& known) {
        m_error = Error{"plan.lora", fmt::format("this network has no {} called \"{}\"", what, quotedForMessage(name)),
                        key, fmt::format("it has {}", join(known, ", "))};
    };
    if (adapters.stands())
        for (const std::string& target : adapters.targets)
            if (!isTargetWord(target) && !isAmong(m_linearNames, lastComponent(target)))
                return refuseName("adapter_targets", "linear layer", target, m_linearNames);
    if (areNorms)
        for (const std::string& target : adapters.targets)
            if (!isAmong(m_holderNames, lastComponent(target)))
                return refuseName("adapter_targets", "module with weights", target, m_holderNames);
    for (const std::string& name : adapters.saved)
        if (!isAmong(m_holderNames, lastComponent(name)))
            return refuseName("modules_to_save", "module with weights", name, m_holderNames);
    if (adapters.stands() && !m_hasAdapters)
        m_error = Error{"plan.lora", "no matrix of this network gets an adapter", "adapter_targets",
                        m_linearNames.empty() ? "it has no linear layer"
                                              : fmt::format("it has {}", join(m_linearNames, ", "))};
}

Variable NetworkBuilder::tiedWeight(std::string_view head, const Variable& embedding)
{
    if (!m_options.adapters || !ok())
        return embedding;
    const auto original = m_originals.find(embedding.id());
    const Variable frozen = original == m_originals.end() ? embedding : Variable(*this, original->second);
    const ModuleScope scope(*this, head, "Linear");
    if (!isSavedModule() || !ok())
        return frozen;
    const ModuleScope saved(*this, "modules_to_save");
    return added("weight", frozen.shape(), m_options.weights, true);
}

// --- adapters ---------------------------------------------------------------------------------------

bool NetworkBuilder::isRankWithin(std::int64_t inputs, std::int64_t outputs)
{
    const std::int64_t rank = m_options.adapters->rank;
    if (rank < 1 || rank > std::min(inputs, outputs))
        refuse("plan.range",
               fmt::format("rank {} exceeds the smaller side of this layer ({} x {})", rank, outputs, inputs));
    return ok();
}

bool NetworkBuilder::isJointPart(std::string_view part)
{
    const std::vector<std::string>& targets = m_options.adapters->targets;
    addOnce(m_linearNames, part);
    const bool isTarget = targets.empty() || std::any_of(targets.begin(), targets.end(), [&](const std::string& one) {
                              return isTargetWord(one) || one == part;
                          });
    m_hasAdapters |= isTarget;
    return isTarget;
}

// One dropout, and one A with rows for each part; B is a grouped convolution over its results. Where a part has none,
// index_copy_ writes the others into zeros of the whole width, and keeps what it copies for backward.
Variable NetworkBuilder::jointAdapted(Variable x, Variable result, const std::array<std::int64_t, 3>& widths)
{
    if (!ok() || !m_options.adapters || !m_options.adapters->stands())
        return result;
    const AdapterOptions& adapters = *m_options.adapters;
    std::int64_t width = 0, parts = 0;
    for (std::size_t i = 0; i < widths.size(); ++i)
        if (isJointPart(std::array{"query", "key", "value"}[i])) {
            width += widths[i];
            ++parts;
        }
    if (parts == 0 || !isRankWithin(x.size(-1), width))
        return result;
    const DType type = adapters.weights.value_or(m_options.weights);
    const Variable a = added("lora_A", {adapters.rank * parts, x.size(-1)}, type, true);
    const Variable b = added("lora_B", {width, adapters.rank}, type, true);
    Variable low = linear(dropout(std::move(x), adapters.dropout), a);
    if (!ok())
        return {};
    Shape shape = result.shape();
    const std::int64_t whole = std::exchange(shape[shape.rank - 1], width);
    const DType dtype = low.dtype();
    Variable more = other({std::move(low), b}, Layout(shape), dtype, {.inputs = true}, false);
    if (width < whole && ok()) {
        shape[shape.rank - 1] = whole;
        more = other({std::move(more), fill({width}, DType::Int64)}, Layout(shape), dtype, {.inputs = true}, false);
    }
    return add(std::move(result), scale(std::move(more)));
}

Variable NetworkBuilder::adapted(Variable x, Variable result, const Variable& weight, const Variable& bias)
{
    if (!ok() || !hasAdapter())
        return result;
    const AdapterOptions& adapters = *m_options.adapters;
    if (adapters.kind == AdapterKind::Ia3)
        return scaledByVector(std::move(result), false);
    if (adapters.kind == AdapterKind::Vera)
        return veraAdapted(std::move(x), std::move(result));
    const std::int64_t inputs = x.size(-1), outputs = result.size(-1);
    if (!isRankWithin(inputs, outputs))
        return {};
    // torch.is_autocast_enabled() asks for the autocast of CUDA, on a CPU, too.
    const bool isAutocast = m_options.autocast && !m_options.rules.isOnCpu;
    const bool isBesideQuantized = isQuantizedHere(), isCast = !isBesideQuantized || !isAutocast;
    const DType type = adapters.weights.value_or(m_options.weights), before = result.dtype();
    const auto matrix = [&](std::string_view part, const Shape& shape, bool isTrained) {
        const ModuleScope scope(*this, part, "Linear");
        return added("weight", shape, type, isTrained);
    };
    if (isNormalFloat(adapters.base) && isBesideQuantized)
        result = clone(std::move(result));
    if (isCast)
        x = cast(std::move(x), type);
    const Variable a = matrix("lora_A", {adapters.rank, inputs}, !adapters.isDownFrozen);
    const Variable b = matrix("lora_B", {outputs, adapters.rank}, true);
    if (adapters.isDecomposed) {
        const bool hasDropout = adapters.dropout > 0;
        x = dropout(std::move(x), adapters.dropout);
        Variable more = decomposed(x, hasDropout ? Variable() : result, weight, bias, a, b);
        result = add(std::move(result), std::move(more));
        return isCast ? cast(std::move(result), before) : result;
    }
    Variable low = scale(linear(linear(dropout(std::move(x), adapters.dropout), a), b));
    if (isBesideQuantized && isCast)
        low = cast(std::move(low), before);
    result = add(std::move(result), std::move(low));
    return isBesideQuantized ? result : cast(std::move(result), before);
}

// `result` is W x, or nothing where it has to be computed of what dropout left of x.
Variable NetworkBuilder::decomposed(const Variable& x, const Variable& result, const Variable& weight,
                                    const Variable& bias, const Variable& a, const Variable& b)
{
    if (!ok())
        return {};
    const std::int64_t inputs = x.size(-1), outputs = b.size(0);
    Variable magnitude;
    {
        const ModuleScope scope(*this, "lora_magnitude_vector");
        magnitude = added("weight", {outputs}, a.dtype(), true);
    }
    lowPrecision(a), lowPrecision(b); // autocast keeps their casts, with gradients, before they are used without
    const bool wanted = recordGradient(false);
    Variable identity = lowPrecision(fill({inputs, inputs}, a.dtype()));
    const Variable between = linear(identity, a);
    const Variable product = cast(transpose(linear(between, b), 0, 1), x.dtype());
    if (!ok())
        return {};
    const bool isQuantized = weight.dtype() == DType::Int8 || weight.dtype() == DType::UInt8;
    Variable base = isQuantized ? dequantized(weight, computeType(x.dtype())) : weight;
    if (ok() && base.size(0) != outputs) // it lies transposed, as transformers' Conv1D
        base = transpose(std::move(base), 0, 1);
    base = cast(std::move(base), x.dtype());
    Variable norm;
    {
        Variable scaled = scale(product);
        const Variable sum = add(base, std::move(scaled));
        norm = this->sum(sum, 1); // torch.linalg.norm: the same bytes
    }
    norm = cast(std::move(norm), x.dtype());
    recordGradient(wanted);
    if (!ok())
        return {};
    const Variable factor = view(divide(std::move(magnitude), norm), {1, outputs});
    const Variable low = linear(linear(x, a), b);
    Variable whole = !result ? linear(x, base) : bias ? subtract(result, bias) : result;
    Variable more = shift(factor);
    more = multiply(std::move(more), std::move(whole));
    Variable rest = scale(multiply(factor, low));
    return add(std::move(more), std::move(rest));
}

// --- weights in fewer bits --------------------------------------------------------------------------

/// In which a 4-bit layer multiplies.
DType NetworkBuilder::computeType(DType input) const
{
    const bool isLowered = m_options.autocast && input == DType::Float32;
    const DType standard = isLowered ? *m_options.autocast : input;
    return m_options.adapters ? m_options.adapters->compute.value_or(standard) : standard;
}

Variable NetworkBuilder::linearWeight(const Shape& shape)
{
    if (!isQuantizedHere())
        return parameter("weight", shape);
    const BaseForm form = m_options.adapters->base;
    Variable weight = added("weight", shape, form == BaseForm::Int8 ? DType::Int8 : DType::UInt8, false);
    if (ok())
        m_graph.storages[m_graph.tensors[weight.id()].storage].bytes = quantizedBytes(form, shape[0], shape[1]);
    return weight;
}

/// bitsandbytes casts the bias of its layers to the type that they compute in, for good.
Variable NetworkBuilder::linearBias(std::int64_t outputs, DType input)
{
    if (!isQuantizedHere())
        return parameter("bias", {outputs});
    return added("bias", {outputs}, m_options.adapters->base == BaseForm::Int8 ? input : computeType(input), false);
}

Variable NetworkBuilder::storedLinear(Variable x, Variable weight, Variable bias)
{
    if (!isQuantizedHere())
        return linear(std::move(x), std::move(weight), std::move(bias));
    switch (m_options.adapters->base) {
    case BaseForm::Int8: return int8Linear(std::move(x), std::move(weight), std::move(bias));
    case BaseForm::Gptq: return gptqLinear(std::move(x), weight, std::move(bias));
    default: return quantizedLinear(std::move(x), std::move(weight), std::move(bias));
    }
}

Variable NetworkBuilder::dequantized(const Variable& weight, DType dtype)
{
    if (!ok())
        return {};
    Variable whole = record(OperatorKind::Dequantize, {weight.id()}, {Layout(weight.shape()), dtype});
    m_graph.storages[m_graph.tensors[whole.id()].storage].role = Role::WeightCast;
    return whole;
}

Variable NetworkBuilder::quantizedLinear(Variable x, Variable weight, Variable bias)
{
    const Variable held = x;
    const DType before = x.dtype();
    x = cast(std::move(x), computeType(before));
    if (!ok())
        return {};
    const Shape rows{x.layout().elements() / std::max<std::int64_t>(x.size(-1), 1), x.size(-1)};
    if (!x.layout().viewed(rows))
        x = contiguous(std::move(x));
    Variable whole = dequantized(weight, x.dtype());
    if (!ok())
        return {};
    Variable result = product(x, whole, x, weight, bias);
    if (m_options.adapters->keepsInputs && needsGradient(x)) {
        save(x.id());
        m_graph.operators.back().keepsAsAttribute = true;
    }
    result = settled(std::move(result), x, weight, bias);
    whole = {}; // MatMul4Bit.forward returns, then its caller casts the result
    return cast(std::move(result), before);
}

Variable NetworkBuilder::gptqLinear(Variable x, const Variable& weight, Variable bias)
{
    const DType before = x.dtype();
    x = cast(std::move(x), computeType(before));
    const bool wanted = recordGradient(false);
    Variable codes = dequantized(weight, DType::Int32);
    codes = shift(cast(std::move(codes), DType::Int8)); // to their 4 bits
    Variable centred = shift(codes);
    Variable whole = cast(centred, x.dtype()); // by their scales
    codes = centred = {};
    recordGradient(wanted);
    if (!ok())
        return {};
    Variable result = product(x, whole, x, whole, {});
    result = settled(std::move(result), x, whole);
    if (bias)
        result = add(std::move(result), std::move(bias));
    return cast(std::move(result), before);
}

Variable NetworkBuilder::int8Linear(Variable x, Variable weight, Variable bias)
{
    if (!ok())
        return {};
    const Shape rows{x.layout().elements() / std::max<std::int64_t>(x.size(-1), 1), x.size(-1)};
    if (!x.layout().viewed(rows))
        x = contiguous(std::move(x));
    Shape shape = x.shape();
    shape[shape.rank - 1] = weight.size(0);
    const bool wanted = recordGradient(false);
    const Variable codes = cast(cast(x, DType::Float16), DType::Int8), scales = fill({rows[0]}, DType::Float32);
    const Variable sums = fill(shape, DType::Int32);
    const Variable half = x.dtype() == DType::Float16 ? Variable() : fill(shape, DType::Float16);
    recordGradient(wanted);
    if (!ok())
        return {};
    const DType dtype = x.dtype();
    const std::array<TensorId, 3> inputs{x.id(), weight.id(), bias.id()};
    begin(bias ? OperatorKind::Addmm : OperatorKind::Mm, {inputs.data(), bias ? 3u : 2u});
    Variable result(*this, addOutput({Layout(shape), dtype}, true));
    if (needsGradient(x)) {
        save(x.id());
        save(weight.id());
    }
    return settled(std::move(result), x, weight, bias);
}

Variable NetworkBuilder::fp8Copy(const Variable& x)
{
    if (!m_options.isProductInFp8 || !isInLayer() || !ok())
        return {};
    Variable copy = record(OperatorKind::Cast, {x.id()}, {Layout(x.shape()), DType::Float8E4M3});
    m_graph.operators.back().hasGradient = false;
    m_graph.tensors[copy.id()].needsGradient = false;
    return copy;
}

} // namespace memscape
