// SPDX-License-Identifier: Apache-2.0
#include "core/network/families/attention.h"
#include "core/network/families/decoder.h"
#include "core/network/families/decoder_parts.h"
#include "core/network/litgpt.h"
#include "core/network/network.h"

namespace memscape {

namespace {

struct Heads
{
    Variable q, k, v;
};

/// Rotates the first dimensions of every head; the rest passes.
Variable partlyRotated(NetworkBuilder& b, const Variable& x, const Variable& cosine, const Variable& sine)
{
    if (!b.ok())
        return {};
    const std::int64_t width = cosine.size(-1);
    if (width == x.size(-1))
        return rotated(b, x, cosine, sine);
    std::vector<Variable> parts = b.split(x, {width, x.size(-1) - width}, -1);
    if (!b.ok())
        return {};
    Variable turned = rotated(b, parts[0], cosine, sine);
    return b.cat({std::move(turned), parts[1]}, -1);
}

/// LitGPT joins what turns to what passes even where nothing does.
Variable joinedRotated(NetworkBuilder& b, const Variable& x, const Variable& cosine, const Variable& sine)
{
    Variable turned = partlyRotated(b, x, cosine, sine);
    return b.ok() && cosine.size(-1) == x.size(-1) ? b.cat({std::move(turned)}, -1) : turned;
}

/// x1·cos − x2·sin and x2·cos + x1·sin of the halves of a head, joined; the tables are as wide as a half (GPT-OSS).
Variable halvesRotated(NetworkBuilder& b, const Variable& x, const Variable& cosine, const Variable& sine)
{
    const std::vector<Variable> halves = b.chunk(x, 2, -1); // views of the same size
    if (!b.ok())
        return {};
    Variable first = b.multiply(halves[0], cosine);
    first = b.subtract(std::move(first), b.multiply(halves[1], sine));
    Variable second = b.multiply(halves[1], cosine);
    second = b.add(std::move(second), b.multiply(halves[0], sine));
    return b.cat({std::move(first), std::move(second)}, -1);
}

/// GPT-J: tables of the halves are repeated for each call, and pairs of neighbours turn instead of halves.
Variable pairwiseRotated(NetworkBuilder& b, const Variable& x, const Variable& cosine, const Variable& sine)
{
    if (!b.ok())
        return {};
    const std::int64_t width = cosine.size(-1);
    const bool isAll = width == x.size(-1);
    const std::vector<Variable> parts = isAll ? std::vector{x} : b.split(x, {width, x.size(-1) - width}, -1);
    if (!b.ok())
        return {};
    const auto repeated = [&](const Variable& table) { return b.clone(table); }; // repeat_interleave
    Variable turned = rotated(b, parts[0], repeated(cosine), repeated(sine));
    return isAll ? turned : b.cat({std::move(turned), parts[1]}, -1);
}

/// Falcon: one key and value for all (7B), or for each group of heads, repeated by hand (40B); [..., [-2], :] copies.
Heads falconHeads(NetworkBuilder& b, const ModelDescription& model, const DecoderNames& names, const Variable& x)
{
    const std::int64_t width = model.headDim, groups = model.kvHeads, each = model.heads / groups;
    Variable fused = b.linear(names.fusedQkv, x, (model.heads + 2 * groups) * width, model.biases.query);
    if (!b.ok())
        return {};
    const std::int64_t batch = x.size(0), length = x.size(1);
    fused = b.view(std::move(fused), {batch, length, groups, each + 2, width});
    const auto chosen = [&] { return b.indexSelect(fused, 3, b.fill({1}, DType::Int64)); };
    const auto asHeads = [&](Variable part, std::int64_t heads) {
        return b.transpose(b.reshape(std::move(part), {batch, length, heads, width}), 1, 2);
    };
    const bool isRepeated = groups > 1;
    const auto shared = [&] {
        Variable part = chosen();
        if (isRepeated)
            part = b.expand(std::move(part), {batch, length, groups, each, width});
        return asHeads(std::move(part), isRepeated ? model.heads : 1);
    };
    Heads heads;
    heads.q = asHeads(b.narrow(fused, 3, each), model.heads);
    heads.k = shared();
    heads.v = shared();
    return heads;
}

/// GPT-NeoX and BLOOM interleave q, k and v head by head; Phi-3 and GPT-2 put them side by side.
Heads fusedHeads(NetworkBuilder& b, const ModelDescription& model, const DecoderNames& names, const Variable& x)
{
    if (model.architecture == "falcon" && model.kvHeads != model.heads)
        return falconHeads(b, model, names, x);
    const std::int64_t width = model.headDim, queries = model.heads * width, keys = model.kvHeads * width;
    Variable fused = isLitGpt(model) ? b.jointLinear(names.fusedQkv, x, {queries, keys, keys}, model.biases.query)
                                     : b.linear(names.fusedQkv, x, queries + 2 * keys, model.biases.query);
    if (model.architecture == "gpt_neox" || model.architecture == "bloom" || model.architecture == "falcon") {
        fused = splitHeads(b, std::move(fused), model.heads, 3 * width);
        std::vector<Variable> parts = b.chunk(std::move(fused), 3, -1);
        return b.ok() ? Heads{parts[0], parts[1], parts[2]} : Heads{};
    }
    std::vector<Variable> parts = b.split(std::move(fused), {queries, keys, keys}, -1);
    if (!b.ok())
        return {};
    return {splitHeads(b, parts[0], model.heads, width), splitHeads(b, parts[1], model.kvHeads, width),
            splitHeads(b, parts[2], model.kvHeads, width)};
}

/// One projection, its norm where queries and keys have one, as heads.
Variable projected(NetworkBuilder& b, const ModelDescription& model, const char* name, const Variable& x,
                   std::int64_t heads, bool hasBias, const char* norm)
{
    Variable y = b.linear(name, x, heads * model.headDim, hasBias);
    if (*norm && model.queryKeyNormWhole)
        y = decoderNorm(b, model, norm, std::move(y));
    if (!*norm || !model.queryKeyNorm)
        return b.ok() ? splitHeads(b, std::move(y), heads, model.headDim) : Variable();
    if (!b.ok())
        return {};
    y = b.view(std::move(y), {x.size(0), x.size(1), heads, model.headDim});
    if (model.architecture.starts_with("gemma")) // Gemma transposes first
        return decoderNorm(b, model, norm, b.transpose(std::move(y), 1, 2));
    return b.transpose(decoderNorm(b, model, norm, std::move(y)), 1, 2);
}

Heads separateHeads(NetworkBuilder& b, const ModelDescription& model, const Variable& x)
{
    Heads heads;
    if (model.architecture == "opt") { // scales the queries, not the scores
        Variable q = b.scale(b.linear("q_proj", x, model.heads * model.headDim, model.biases.query));
        heads.q = b.ok() ? splitHeads(b, std::move(q), model.heads, model.headDim) : Variable();
    } else {
        heads.q = projected(b, model, "q_proj", x, model.heads, model.biases.query, "q_norm");
    }
    heads.k = projected(b, model, "k_proj", x, model.kvHeads, model.biases.key, "k_norm");
    heads.v = projected(b, model, "v_proj", x, model.kvHeads, model.biases.value, "");
    return heads;
}

/// FlashAttention caps scores itself (flash_attn 2.6); F.scaled_dot_product_attention leaves the cap out.
bool hasFusedCap(const ModelDescription& model, const BuildOptions& options)
{
    const bool isFlash = options.attention == AttentionKernel::Flash && !options.rules.isOnCpu;
    return !isLitGpt(model) && (isFlash || callsFusedAttention(model, options.transformers));
}

/// softmax(…, dtype=float32) of eager attention; OPT had it in fp16 alone and GPT-NeoX not at all before they took the
/// attention that models share (modeling_opt.py and modeling_gpt_neox.py of 4.43; GPT-NeoX's changed in 4.48).
bool hasSoftmaxInFloat(const ModelDescription& model, Transformers version, const Variable& query)
{
    if (version < Transformers::Before454 && model.architecture == "gpt_neox")
        return false;
    if (version < Transformers::Before454 && model.architecture == "opt")
        return query && query.dtype() == DType::Float16;
    return model.architecture != "falcon";
}

} // namespace

Variable decoderAttention(NetworkBuilder& b, const ModelDescription& model, const DecoderNames& names,
                          const DecoderTables& tables, bool isSliding, const Variable& x)
{
    const ModuleScope scope(b, names.attention, "Attention");
    Heads heads = *names.fusedQkv ? fusedHeads(b, model, names, x) : separateHeads(b, model, x);
    if (tables.cosine) {
        const bool own = isSliding && tables.slidingCosine;
        const Variable& cosine = own ? tables.slidingCosine : tables.cosine;
        const Variable& sine = own ? tables.slidingSine : tables.sine;
        // One function rotates both; its arguments live until it returns.
        const auto turn = model.architecture == "gptj" ? pairwiseRotated
            : model.architecture == "gpt_oss"          ? halvesRotated
            : isLitGpt(model)                          ? joinedRotated
                                                       : partlyRotated;
        Variable q = turn(b, heads.q, cosine, sine);
        heads.k = turn(b, heads.k, cosine, sine);
        heads.q = std::move(q);
    }
    tables.prefix.join(b, heads.k, heads.v);
    if (isLitGpt(model)) {
        heads.k = b.repeatedHeads(std::move(heads.k), model.heads);
        heads.v = b.repeatedHeads(std::move(heads.v), model.heads);
    }
    AttentionStyle style;
    style.probabilities = tables.probabilities;
    if (model.attentionSinks)
        style.sinks = b.parameter("sinks", {model.heads});
    style.mask = isSliding ? tables.slidingMask : tables.mask;
    style.bias = tables.slopes;
    if (b.options().attention == AttentionKernel::Eager || !hasFusedCap(model, b.options()))
        style.softcap = model.attentionSoftcap;
    style.softmaxInFloat = hasSoftmaxInFloat(model, b.options().transformers, heads.q);
    style.clampsScores = model.architecture == "opt" && b.options().transformers < Transformers::Before454;
    style.scoresInFloat = model.architecture == "gptj";
    style.rotatesInFloat = rotatesInFloat(model, b.options().transformers);
    style.fillsMask = model.architecture == "mpt";
    style.isCausal = true;
    style.isWindowed = isSliding;
    Variable context = attend(b, heads.q, heads.k, heads.v, style);
    return b.linear(names.output, std::move(context), model.hidden, model.biases.attentionOutput);
}

namespace {

/// DeepSeek's interleaved pairs, even and odd.
Variable rotatedPairs(NetworkBuilder& b, const Variable& x, const DecoderTables& tables)
{
    if (!b.ok())
        return {};
    const std::int64_t width = x.size(-1) / 2;
    const Variable cosine = b.narrow(tables.cosine, -1, width);
    const Variable sine = b.narrow(tables.sine, -1, width);
    return halvesRotated(b, x, cosine, sine);
}

} // namespace

Variable latentAttention(NetworkBuilder& b, const ModelDescription& model, const DecoderNames& names,
                         const DecoderTables& tables, const Variable& x)
{
    const ModuleScope scope(b, names.attention, "Attention");
    const LatentAttention& latent = model.latent;
    const std::int64_t queries = model.heads * model.queryHeadDim();
    const bool bias = model.biases.query;
    Variable q = latent.queryRank > 0
        ? b.linear("q_b_proj", b.rmsNorm("q_a_layernorm", b.linear("q_a_proj", x, latent.queryRank, bias)), queries,
                   false)
        : b.linear("q_proj", x, queries, false);
    if (!b.ok())
        return {};
    q = splitHeads(b, std::move(q), model.heads, model.queryHeadDim());
    std::vector<Variable> parts = b.split(q, {latent.plainHeadDim, latent.ropeHeadDim}, -1);
    Variable compressed = b.linear("kv_a_proj_with_mqa", x, latent.keyValueRank + latent.ropeHeadDim, bias);
    std::vector<Variable> keys = b.split(compressed, {latent.keyValueRank, latent.ropeHeadDim}, -1);
    if (!b.ok())
        return {};
    Variable inner = b.rmsNorm("kv_a_layernorm", keys[0]);
    Variable keyTurned = rotatedPairs(b, splitHeads(b, keys[1], 1, latent.ropeHeadDim), tables);
    Variable queryTurned = rotatedPairs(b, parts[1], tables);
    q = b.cat({parts[0], std::move(queryTurned)}, -1);
    Variable expanded =
        b.linear("kv_b_proj", std::move(inner), model.heads * (latent.plainHeadDim + latent.valueHeadDim), false);
    if (!b.ok())
        return {};
    expanded = splitHeads(b, std::move(expanded), model.heads, latent.plainHeadDim + latent.valueHeadDim);
    std::vector<Variable> made = b.split(expanded, {latent.plainHeadDim, latent.valueHeadDim}, -1);
    if (!b.ok())
        return {};
    keyTurned = b.expand(std::move(keyTurned), {x.size(0), model.heads, x.size(1), latent.ropeHeadDim});
    const Variable k = b.cat({made[0], std::move(keyTurned)}, -1);
    AttentionStyle style;
    style.mask = tables.mask;
    style.isCausal = true;
    Variable context = attend(b, q, k, made[1], style);
    return b.linear(names.output, std::move(context), model.hidden, bias);
}

} // namespace memscape
