// SPDX-License-Identifier: Apache-2.0
// The GPT-2 in the manner of nanoGPT and transformers' LLaMA that tests/data/pytorch/model_steps.py defines, as our own
// networks, with what its JSON says of them: sizes, precision, attention, chunks of the loss, adapters.
#pragma once

#include "core/network/families/gpt2.h"
#include "core/network/model_config.h"
#include "core/network/network.h"
#include "tests/support/real_steps.h"

namespace memscape::test {

inline BuildOptions recordedOptions(const QJsonObject& measured)
{
    BuildOptions options;
    options.batch = measured["batch"].toInteger();
    options.sequence = std::max<qint64>(1, measured["sequence"].toInteger());
    const QString precision = measured["precision"].toString(), attention = measured["attention"].toString();
    if (precision == "bf16-autocast" || precision == "bf16-under-autocast")
        options.autocast = DType::BFloat16;
    if (precision == "fp16-autocast")
        options.autocast = DType::Float16;
    if (precision == "bf16" || precision == "bf16-under-autocast")
        options.weights = DType::BFloat16;
    options.attention = attention == "flash" ? AttentionKernel::Flash
        : attention == "efficient"           ? AttentionKernel::Efficient
                                             : AttentionKernel::Eager;
    options.keepsLogits = true;
    options.rules.normStatisticsInFloat = precision != "bf16"; // as on a CPU, where it was recorded
    options.rules.efficientSharesHeads = false;                // as before PyTorch 2.14: heads are copied
    options.lossChunks = measured["chunks"].toInteger();
    options.lossForm = options.lossChunks > 0 ? LossForm::Chunked : LossForm::Library;
    options.logitsInFloat = measured["model"] == "llama" || options.lossChunks > 0;
    if (const QJsonObject recorded = measured["adapters"].toObject(); !recorded.isEmpty()) {
        AdapterOptions adapters;
        adapters.rank = recorded["rank"].toInteger();
        for (const QJsonValue& target : recorded["targets"].toArray())
            adapters.targets.push_back(target.toString().toStdString());
        options.adapters = adapters;
    }
    return options;
}

/// "gpt2" or "llama".
inline Result<Graph> recordedNetwork(const QJsonObject& measured, const BuildOptions& options)
{
    const auto size = [&](const char* key) { return measured[key].toInteger(); };
    if (measured["model"] == "gpt2") {
        Gpt2Shape shape;
        shape.hidden = size("hidden");
        shape.layers = size("layers");
        shape.heads = size("heads");
        shape.vocabulary = size("vocab");
        shape.positions = size("sequence");
        shape.isTied = true;
        return gpt2(shape, options);
    }
    const Json config = llamaConfig(measured);
    const auto model = modelFromConfig(JsonReader(config), "recorded");
    if (!model)
        return tl::unexpected(model.error());
    return buildNetwork(*model, options);
}

} // namespace memscape::test
