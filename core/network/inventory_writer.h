// SPDX-License-Identifier: Apache-2.0
// Writes an Inventory tensor by tensor. Products are checked; the first that does not fit is kept
// and ends the list, so that the functions that describe a family stay a list of its tensors.
#pragma once

#include "core/network/inventory.h"

#include <optional>
#include <string_view>

namespace memscape {

class InventoryWriter
{
public:
    /// All that follows belongs to layer `index` (−1: to none) and has this prefix.
    void enter(std::string prefix, std::int64_t layer = -1);
    /// What follows exists `copies` times, of which a token uses `active`.
    void repeat(std::int64_t copies, std::int64_t active);

    void add(std::string_view name, std::vector<std::int64_t> shape, TensorRole role);
    /// name.weight (outputs, inputs) and, when asked for, name.bias (outputs).
    void linear(std::string_view name, std::int64_t outputs, std::int64_t inputs, bool hasBias);
    /// The same with the weight stored (inputs, outputs), as GPT-2's Conv1D does.
    void transposedLinear(std::string_view name, std::int64_t outputs, std::int64_t inputs);
    void norm(std::string_view name, std::int64_t width, bool hasBias);
    void embedding(std::string_view name, std::int64_t count, std::int64_t width);

    /// Ends the list with this error; the first one is kept.
    void refuse(Error error);
    bool failed() const { return m_error.has_value(); }
    /// Errors: what was refused, or model.size.
    Result<Inventory> finish();

private:
    Inventory m_inventory;
    std::string m_prefix;
    std::int64_t m_layer = -1;
    std::int64_t m_copies = 1, m_active = 1;
    std::optional<Error> m_error;
};

void writeDecoder(const ModelDescription& model, InventoryWriter& out);
void writeEncoder(const ModelDescription& model, InventoryWriter& out);        ///< BERT
void writeEncoderDecoder(const ModelDescription& model, InventoryWriter& out); ///< T5
void writeVisionTransformer(const ModelDescription& model, InventoryWriter& out);
void writeCnn(const ModelDescription& model, InventoryWriter& out);
void writeMlp(const ModelDescription& model, InventoryWriter& out);
void writeRecorded(const ModelDescription& model, InventoryWriter& out); ///< as the network is recorded

} // namespace memscape
