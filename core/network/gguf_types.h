// SPDX-License-Identifier: Apache-2.0
// The number formats of ggml (ggml/include/ggml.h, ggml-common.h): values are stored in blocks, each with its scales.
#pragma once

#include <cstdint>
#include <string_view>

namespace memscape {

struct GgufType
{
    std::uint32_t id;
    const char* name;
    std::int64_t elements, bytes; ///< of a block
};

/// Null for a type that is not known.
const GgufType* ggufType(std::uint32_t id);
const GgufType* ggufType(std::string_view name);

} // namespace memscape
