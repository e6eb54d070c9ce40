// SPDX-License-Identifier: Apache-2.0
// FNV-1a of 64 bits (Fowler, Noll, Vo; draft-eastlake-fnv): the same number on every machine. It tells one version of a
// lab from another and deals variants out; it does not prevent forgery.
#pragma once

#include <cstdint>
#include <string_view>

namespace memscape {

constexpr std::uint64_t labHash(std::string_view text, std::uint64_t hash = 0xcbf29ce484222325)
{
    for (const char letter : text)
        hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
    return hash;
}

} // namespace memscape
