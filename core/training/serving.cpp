// SPDX-License-Identifier: Apache-2.0
#include "core/training/serving.h"

#include "core/base/text.h"
#include "core/training/lora.h"
#include "core/training/sharding.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include <fmt/format.h>

namespace memscape {

namespace {

template <typename Form, std::size_t n>
Result<Form> formFromText(std::string_view text, const std::array<std::pair<const char*, Form>, n>& forms,
                          const char* what)
{
    std::vector<std::string> names;
    for (const auto& [name, form] : forms) {
        if (text == name)
            return form;
        names.emplace_back(name);
    }
    return fail("plan.precision", fmt::format("no {} \"{}\"", what, quotedForMessage(text)), didYouMean(text, names));
}

std::int64_t storedSize(const ModelDescription& model)
{
    if (model.storedDtype == "float32")
        return 4;
    return model.storedDtype.starts_with("float8") ? 1 : 2;
}

bool isPlain(StoredForm form)
{
    return form.kind <= StoredForm::Float16;
}

constexpr std::int64_t mxfp4Block = 32, mxfp4BlockBytes = 17; ///< 32 elements of 4 bits, a scale of 8

bool isMxfp4(const ModelTensor& tensor, const ModelDescription& model, StoredForm form)
{
    return form.kind == StoredForm::AsStored && model.mxfp4Experts && tensor.copies > 1
        && tensor.role == TensorRole::Matrix;
}

std::int64_t tensorBytes(const ModelTensor& tensor, const ModelDescription& model, StoredForm form, std::int64_t plain,
                         std::int64_t parallel)
{
    if (form.kind == StoredForm::Gguf)
        return ggufTensorBytes(tensor, model, form.mixture, parallel);
    const bool isWhole = tensor.role == TensorRole::Norm || tensor.role == TensorRole::Other;
    const std::int64_t count = isWhole ? tensor.elements() : piece(tensor.elements(), parallel);
    if (isMxfp4(tensor, model, form))
        return piece(count, mxfp4Block) * mxfp4BlockBytes;
    if (!isQuantizedIn(tensor, form))
        return plain * count;
    return matrixBytes(piece(tensor.shape[0], parallel), tensor.shape[1], form, plain);
}

/// B of an element that is not quantized.
std::int64_t plainSize(const ModelDescription& model, StoredForm form, std::int64_t computed)
{
    if (form.kind == StoredForm::AsStored)
        return storedSize(model);
    return !isPlain(form) ? computed : form.kind == StoredForm::Float32 ? 4 : 2;
}

/// Copies of a tensor that `batch` tokens are sent to, on average.
double copiesRead(const ModelTensor& tensor, std::int64_t batch)
{
    const double all = double(tensor.copies);
    return all * (1 - std::pow(1 - double(tensor.activeCopies) / all, double(batch)));
}

struct CacheRule
{
    double element = 2; ///< B per element
    double head = 0;    ///< B per head, token and side
};

CacheRule ruleOf(CacheForm form)
{
    switch (form) {
    case CacheForm::Float32: return {4, 0};
    case CacheForm::Float8: return {1, 0};
    case CacheForm::Int8: return {1, 2};
    case CacheForm::Int4: return {0.5 + 4.0 / 32, 0};
    case CacheForm::Gguf8: return {34.0 / 32, 0};
    case CacheForm::Gguf4: return {18.0 / 32, 0};
    case CacheForm::BFloat16:
    case CacheForm::Float16: break;
    }
    return {2, 0};
}

/// Bytes of one token in one layer.
double tokenBytes(const ModelDescription& model, const CacheRule& rule, std::int64_t parallel)
{
    if (model.latent.keyValueRank > 0) // one latent vector, the same on every device
        return double(model.latent.keyValueRank + model.latent.ropeHeadDim) * rule.element + rule.head;
    const std::int64_t heads = std::max<std::int64_t>(1, piece(model.kvHeads, parallel));
    return 2 * double(heads) * (double(model.headDim) * rule.element + rule.head);
}

/// What a layer keeps for each sequence, and once for all of them, in whole pages.
struct LayerTokens
{
    std::int64_t own = 0, shared = 0;
};

/// Tokens that a decoder layer keeps of what Whisper's encoder made of each recording.
std::int64_t heardTokens(const ModelDescription& model)
{
    return model.architecture == "whisper" ? model.audio.positions : 0;
}

/// A state space model keeps one state and the last inputs of its convolution, however long the context is.
double stateBytes(const ModelDescription& model, const CacheRule& rule)
{
    const StateSpace& space = model.stateSpace;
    return double(model.layers) * double(space.inner) * double(space.state + space.kernel) * rule.element;
}

/// Whether only the prompt passes through a tensor: Whisper's encoder, a vision tower.
bool isOfPrompt(const ModelTensor& tensor)
{
    const std::string& name = tensor.name;
    return name.starts_with("model.encoder.") || name.find("vision_tower.") != std::string::npos
        || name.find("visual.") != std::string::npos || name.find("multi_modal_projector.") != std::string::npos;
}

LayerTokens keptTokens(const ModelDescription& model, std::int64_t layer, const CacheUse& use)
{
    const std::int64_t page = std::max<std::int64_t>(use.page, 1);
    const std::int64_t kept = model.isSliding(layer) ? std::min(use.context, model.slidingWindow) : use.context;
    const std::int64_t forgotten = use.context - kept; // that have left the window
    const std::int64_t prefix = std::clamp<std::int64_t>(use.sharedPrefix - forgotten, 0, kept);
    LayerTokens tokens;
    tokens.shared = use.batch > 1 ? prefix / page * page : 0;
    tokens.own = piece(kept - tokens.shared, page) * page;
    return tokens;
}

} // namespace

bool isQuantizedIn(const ModelTensor& tensor, StoredForm form)
{
    const bool isWithin = tensor.layer >= 0 || form.quantizesHead || form.kind == StoredForm::Gguf;
    return !isPlain(form) && tensor.role == TensorRole::Matrix && isWithin && tensor.shape.size() == 2;
}

Result<StoredShares> storedShares(const ModelDescription& model, StoredForm form, std::int64_t computed)
{
    MEMSCAPE_TRY(tensors, inventory(model));
    double stored[2] = {}, whole[2] = {};
    for (const ModelTensor& tensor : tensors.tensors) {
        if (tensor.layer < 0 || !(isQuantizedIn(tensor, form) || isMxfp4(tensor, model, form)))
            continue;
        const bool isExpert = tensor.copies > 1;
        stored[isExpert] += double(tensorBytes(tensor, model, form, computed, 1)) * double(tensor.copies);
        whole[isExpert] += double(tensor.elements() * computed) * double(tensor.copies);
    }
    return StoredShares{whole[0] > 0 ? stored[0] / whole[0] : 1, whole[1] > 0 ? stored[1] / whole[1] : 1};
}

std::int64_t servedTensorBytes(const ModelTensor& tensor, const ModelDescription& model, StoredForm form,
                               std::int64_t computed, std::int64_t tensorParallel)
{
    return tensorBytes(tensor, model, form, plainSize(model, form, computed), tensorParallel);
}

std::int64_t hostWeights(const Inventory& tensors, const ModelDescription& model, StoredForm form,
                         std::int64_t tensorParallel)
{
    std::int64_t bytes = 0;
    for (const ModelTensor& tensor : tensors.tensors) {
        const bool isHead = model.tied && tensor.shape[0] == model.vocab;
        if (form.kind == StoredForm::Gguf && tensor.role == TensorRole::Embedding && !isHead)
            bytes += servedTensorBytes(tensor, model, form, 2, tensorParallel);
    }
    return bytes;
}

std::int64_t matrixBytes(std::int64_t out, std::int64_t in, StoredForm form, std::int64_t plain)
{
    const std::int64_t count = out * in;
    const std::int64_t half = piece(count, 2), groups = out * (form.group > 0 ? piece(in, form.group) : 1);
    switch (form.kind) {
    case StoredForm::Float32: return 4 * count;
    case StoredForm::BFloat16:
    case StoredForm::Float16: return 2 * count;
    case StoredForm::Float8: return count + 4;
    case StoredForm::Int8: return count + 4 * out;
    case StoredForm::Int4: return half + 4 * groups;
    case StoredForm::NormalFloat4: return normalFloatBytes(count, false);
    case StoredForm::NormalFloat4Double: return normalFloatBytes(count);
    case StoredForm::Gptq: return gptqBytes(out, in, form.group);
    case StoredForm::Gptq8: return count + 3 * groups + 4 * in;
    case StoredForm::Awq: return half + 2 * groups + piece(groups, 2);
    case StoredForm::AsStored:
    case StoredForm::Gguf: break;
    }
    return plain * count;
}

Result<StoredForm> storedFormFromText(std::string_view text)
{
    using F = StoredForm;
    if (const auto mixture = ggufMixtureFromText(text))
        return F(*mixture);
    static constexpr std::array<std::pair<const char*, F::Kind>, 12> forms{{{"stored", F::AsStored},
                                                                            {"fp32", F::Float32},
                                                                            {"bf16", F::BFloat16},
                                                                            {"fp16", F::Float16},
                                                                            {"fp8", F::Float8},
                                                                            {"int8", F::Int8},
                                                                            {"int4", F::Int4},
                                                                            {"nf4", F::NormalFloat4},
                                                                            {"nf4-double", F::NormalFloat4Double},
                                                                            {"gptq", F::Gptq},
                                                                            {"gptq-8bit", F::Gptq8},
                                                                            {"awq", F::Awq}}};
    MEMSCAPE_TRY(kind, formFromText(text, forms, "form of weights"));
    return F(kind);
}

Result<CacheForm> cacheFormFromText(std::string_view text)
{
    using F = CacheForm;
    static constexpr std::array<std::pair<const char*, F>, 8> forms{{{"bf16", F::BFloat16},
                                                                     {"fp16", F::Float16},
                                                                     {"fp32", F::Float32},
                                                                     {"fp8", F::Float8},
                                                                     {"int8", F::Int8},
                                                                     {"int4", F::Int4},
                                                                     {"q8_0", F::Gguf8},
                                                                     {"q4_0", F::Gguf4}}};
    return formFromText(text, forms, "form of the cache");
}

Result<std::int64_t> servedWeights(const ModelDescription& model, StoredForm form, std::int64_t computed,
                                   std::int64_t tensorParallel)
{
    if (form.kind == StoredForm::AsStored && model.stored)
        return piece(model.stored->bytes, tensorParallel);
    MEMSCAPE_TRY(tensors, inventory(model));
    const std::int64_t plain = plainSize(model, form, computed);
    constexpr double most = 0x1p62;
    double checked = 0;
    std::int64_t bytes = 0;
    for (const ModelTensor& tensor : tensors.tensors) {
        const std::int64_t one = tensorBytes(tensor, model, form, plain, tensorParallel);
        checked += double(one) * double(tensor.copies);
        if (checked > most)
            return fail("model.size", "the weights do not fit into 2^62 bytes", "check the sizes of the model");
        bytes += one * tensor.copies;
    }
    return bytes;
}

Result<ReadWeights> weightsReadByStep(const ModelDescription& model, StoredForm form, std::int64_t computed,
                                      std::int64_t tensorParallel, std::int64_t batch)
{
    MEMSCAPE_TRY(tensors, inventory(model));
    const std::int64_t plain = plainSize(model, form, computed);
    ReadWeights read;
    double all = 0;
    for (const ModelTensor& tensor : tensors.tensors) {
        const double one = double(tensorBytes(tensor, model, form, plain, tensorParallel));
        // A tied table is read whole by the head.
        const bool isLookedUp = tensor.role == TensorRole::Embedding && !(model.tied && tensor.shape[0] == model.vocab);
        all += one * double(tensor.copies);
        if (isOfPrompt(tensor))
            continue;
        double& bytes = isQuantizedIn(tensor, form) || isMxfp4(tensor, model, form) ? read.quantized : read.plain;
        bytes += isLookedUp ? one * std::min(1.0, double(batch) / double(std::max<std::int64_t>(tensor.shape[0], 1)))
                            : one * copiesRead(tensor, batch);
    }
    if (form.kind == StoredForm::AsStored && model.stored && all > 0) // as large as the file says, in the same shares
        read.plain *= double(piece(model.stored->bytes, tensorParallel)) / all;
    return read;
}

Result<std::int64_t> cacheBytes(const ModelDescription& model, CacheForm form, const CacheUse& use)
{
    const bool isStateSpace = model.family == Family::StateSpace;
    if (!isStateSpace && model.kvHeads == 0 && model.latent.keyValueRank == 0)
        return 0;
    const double token = tokenBytes(model, ruleOf(form), use.tensorParallel);
    const std::int64_t layers = model.family == Family::EncoderDecoder ? model.decoderLayers : model.layers;
    double own = 0, shared = 0; // tokens, over all layers
    if (model.family == Family::Encoder || model.family == Family::VisionTransformer
        || model.family == Family::Diffusion)
        return 0; // nothing is generated
    for (std::int64_t layer = 0; layer < layers; ++layer) {
        const LayerTokens kept = keptTokens(model, layer, use);
        own += double(kept.own + heardTokens(model));
        shared += double(kept.shared);
    }
    const double bytes = isStateSpace ? std::ceil(stateBytes(model, ruleOf(form))) * double(use.batch)
                                      : std::ceil(token * own) * double(use.batch) + std::ceil(token * shared);
    if (bytes > 0x1p62)
        return fail("model.size", "the cache does not fit into 2^62 bytes", "take a smaller batch or context");
    return static_cast<std::int64_t>(bytes);
}

} // namespace memscape
