// SPDX-License-Identifier: Apache-2.0
// The header of a safetensors file: eight bytes of length, then JSON {name: {dtype, shape,
// data_offsets}} (github.com/huggingface/safetensors, "Format"). Only the header is read, so a file
// of a hundred gigabytes answers at once. An index (model.safetensors.index.json) leads to the
// headers of all its parts.
//
// Everything that a header claims is checked: its length against the file, every tensor's shape
// times its element against its offsets, offsets against each other and the file's end.
#pragma once

#include "core/base/result.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace memscape {

struct StoredTensor
{
    std::string name;
    std::string dtype; ///< as written: "BF16", "F8_E4M3", "I32"
    std::vector<std::int64_t> shape;
    std::int64_t elements = 0;
    std::int64_t bytes = 0;
};

struct StoredModel
{
    std::vector<StoredTensor> tensors; ///< in the order of the files, sorted by offset
    std::int64_t elements = 0;
    std::int64_t bytes = 0;
    std::map<std::string, std::int64_t> bytesByDtype;
    std::size_t files = 0;
};

/// Bits of one element of a safetensors dtype; 0 for one that is not known.
int storedBits(std::string_view dtype);

/// Errors: file.* for the file; safetensors.header (not a safetensors file, a length that lies),
/// safetensors.tensor (place: the tensor; dtype, shape or offsets that cannot be), json.*.
Result<StoredModel> readSafetensors(const std::filesystem::path& path);

/// All parts of an index; every part must lie beside it.
/// Errors: those of readSafetensors(), safetensors.index.
Result<StoredModel> readSafetensorsIndex(const std::filesystem::path& path);

} // namespace memscape
