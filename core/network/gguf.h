// SPDX-License-Identifier: Apache-2.0
// The header of a GGUF file (github.com/ggml-org/ggml, docs/gguf.md): "GGUF", a version, how many tensors and how many
// pairs of metadata; the pairs; of each tensor name, sizes, type and offset. Only the header is read, a piece at a
// time, and of the metadata only numbers, short texts and how many elements an array has are kept, so a file of a
// hundred gigabytes answers at once.
//
// Everything that a header claims is checked: lengths against the file before anything of that length is read, types,
// tensors against the file's end and against each other. Left out: versions before 2, files of another byte order,
// the parts of a model that is split over several files.
#pragma once

#include "core/network/safetensors.h"

#include <variant>

namespace memscape {

/// Whether the file begins with the letters GGUF. False also when it cannot be read.
bool saysGguf(const std::filesystem::path& path);

/// What the metadata say: a number, a truth value or a text by its key; of an array its number of elements.
using GgufMetadata = std::map<std::string, std::variant<double, bool, std::string>>;

struct GgufFile
{
    StoredModel stored;
    GgufMetadata metadata;

    double number(const std::string& key, double fallback) const; ///< of a number or an array
    std::string text(const std::string& key) const;               ///< empty: none
};

/// dtypes are ggml's names: "F32", "Q4_K". Errors: file.* for the file; gguf.header (not such a file, cut off, a length
/// that lies), gguf.tensor (a type, sizes or an offset that cannot be, a name that comes twice).
Result<StoredModel> readGguf(const std::filesystem::path& path);
Result<GgufFile> readGgufFile(const std::filesystem::path& path);

} // namespace memscape
