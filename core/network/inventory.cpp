// SPDX-License-Identifier: Apache-2.0
#include "core/network/inventory.h"

#include "core/network/inventory_writer.h"
#include "core/network/network_file.h"

#include <fmt/format.h>

namespace memscape {

std::int64_t ModelTensor::elements() const
{
    std::int64_t count = 1;
    for (const std::int64_t size : shape)
        count *= size;
    return count;
}

std::int64_t Inventory::tensorCount() const
{
    std::int64_t count = 0;
    for (const ModelTensor& tensor : tensors)
        count += tensor.copies;
    return count;
}

void InventoryWriter::enter(std::string prefix, std::int64_t layer)
{
    m_prefix = std::move(prefix);
    m_layer = layer;
    repeat(1, 1);
}

void InventoryWriter::repeat(std::int64_t copies, std::int64_t active)
{
    m_copies = copies;
    m_active = active;
}

void InventoryWriter::add(std::string_view name, std::vector<std::int64_t> shape, TensorRole role)
{
    if (failed())
        return;
    constexpr std::int64_t limit = std::int64_t(1) << 62;
    std::int64_t all = m_copies;
    bool tooLarge = false;
    for (const std::int64_t size : shape)
        tooLarge = tooLarge || __builtin_mul_overflow(all, size, &all);
    if (tooLarge || all > limit - m_inventory.total)
        return refuse(Error{"model.size",
                            fmt::format("{}{} makes the model larger than can be counted", m_prefix, name),
                            {},
                            "take smaller sizes"});
    m_inventory.total += all;
    m_inventory.active += all / m_copies * m_active;
    m_inventory.tensors.push_back({m_prefix + std::string(name), std::move(shape), role, m_copies, m_active, m_layer});
}

void InventoryWriter::linear(std::string_view name, std::int64_t outputs, std::int64_t inputs, bool hasBias)
{
    add(fmt::format("{}.weight", name), {outputs, inputs}, TensorRole::Matrix);
    if (hasBias)
        add(fmt::format("{}.bias", name), {outputs}, TensorRole::Bias);
}

void InventoryWriter::transposedLinear(std::string_view name, std::int64_t outputs, std::int64_t inputs)
{
    add(fmt::format("{}.weight", name), {inputs, outputs}, TensorRole::Matrix);
    add(fmt::format("{}.bias", name), {outputs}, TensorRole::Bias);
}

void InventoryWriter::norm(std::string_view name, std::int64_t width, bool hasBias)
{
    add(fmt::format("{}.weight", name), {width}, TensorRole::Norm);
    if (hasBias)
        add(fmt::format("{}.bias", name), {width}, TensorRole::Norm);
}

void InventoryWriter::embedding(std::string_view name, std::int64_t count, std::int64_t width)
{
    add(fmt::format("{}.weight", name), {count, width}, TensorRole::Embedding);
}

void InventoryWriter::refuse(Error error)
{
    if (!m_error)
        m_error = std::move(error);
}

Result<Inventory> InventoryWriter::finish()
{
    if (m_error)
        return fail(*m_error);
    return std::move(m_inventory);
}

void writeMlp(const ModelDescription& model, InventoryWriter& out)
{
    for (std::size_t i = 0; i + 1 < model.mlpSizes.size(); ++i) {
        out.enter("", static_cast<std::int64_t>(i));
        out.linear(fmt::format("layers.{}", i), model.mlpSizes[i + 1], model.mlpSizes[i], model.biases.feedForward);
    }
}

namespace {

/// By its number of dimensions; a table that is looked up cannot be told from a matrix by its size.
TensorRole roleOf(const FileNamedTensor& named)
{
    switch (named.tensor.sizes.size()) {
    case 0: return TensorRole::Other;
    case 1: return named.name.ends_with("bias") ? TensorRole::Bias : TensorRole::Norm;
    case 2: return TensorRole::Matrix;
    default: return TensorRole::Convolution;
    }
}

void writeTraced(const ModelDescription& model, InventoryWriter& out)
{
    out.enter("", -1);
    for (const FileNamedTensor& named : model.program->parameters) {
        std::vector<std::int64_t> shape;
        for (const FileSize& size : named.tensor.sizes)
            shape.push_back(size.constant);
        out.add(named.name, std::move(shape), roleOf(named));
    }
}

} // namespace

bool isListedAsRecorded(const ModelDescription& model)
{
    const std::string& name = model.architecture;
    return model.family == Family::StateSpace || model.family == Family::Diffusion || model.vision.layers > 0
        || name == "whisper" || name == "dinov2" || name == "swin";
}

Result<Inventory> inventory(const ModelDescription& model)
{
    MEMSCAPE_CHECK(checkModel(model));
    InventoryWriter out;
    if (isListedAsRecorded(model)) {
        writeRecorded(model, out);
        return out.finish();
    }
    switch (model.family) {
    case Family::Decoder: writeDecoder(model, out); break;
    case Family::Encoder: writeEncoder(model, out); break;
    case Family::EncoderDecoder: writeEncoderDecoder(model, out); break;
    case Family::VisionTransformer: writeVisionTransformer(model, out); break;
    case Family::Diffusion:
    case Family::StateSpace: break; // above
    case Family::Cnn: writeCnn(model, out); break;
    case Family::Mlp: writeMlp(model, out); break;
    case Family::Traced: writeTraced(model, out); break;
    }
    return out.finish();
}

} // namespace memscape
