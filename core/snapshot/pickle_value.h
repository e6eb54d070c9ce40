// SPDX-License-Identifier: Apache-2.0
// The values of the restricted pickle machine. Numbers are in the value itself; a text is its id; a container is an
// index of the machine's objects. What has become a row of a table (an event, a frame …) is named by its row.
#pragma once

#include "core/snapshot/snapshot.h"

#include <bit>

namespace memscape {

enum class PickleTag : std::uint8_t {
    Absent, ///< of the memo: nothing there
    None,
    Boolean,
    Integer,
    Large, ///< an integer beyond 64 bits: only an error where it is needed
    Real,
    Text,
    Object,
    Frame, ///< of a list: the frame itself, whose object is not kept
    Event,
};

struct PickleValue
{
    PickleTag tag = PickleTag::None;
    std::uint64_t bits = 0;

    static PickleValue integer(std::int64_t value) { return {PickleTag::Integer, std::uint64_t(value)}; }
    static PickleValue real(double value) { return {PickleTag::Real, std::bit_cast<std::uint64_t>(value)}; }
    static PickleValue boolean(bool value) { return {PickleTag::Boolean, value}; }
    static PickleValue text(TextId id) { return {PickleTag::Text, id}; }
    static PickleValue object(std::size_t index) { return {PickleTag::Object, index}; }

    bool is(PickleTag wanted) const { return tag == wanted; }
    std::int64_t integer() const { return std::int64_t(bits); }
    double real() const { return std::bit_cast<double>(bits); }
    TextId text() const { return TextId(bits); }
    /// "a number", "a text", "a dictionary or list" …: for errors.
    std::string_view kindText() const;
};

} // namespace memscape
