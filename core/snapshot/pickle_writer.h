// SPDX-License-Identifier: Apache-2.0
// Writes data as a pickle of protocol 4: the subset that pickle_machine.h reads. Texts are written once and recalled.
#pragma once

#include "core/base/json.h"
#include "core/snapshot/large_array.h"

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace memscape {

class PickleWriter
{
public:
    /// Pieces of some hundred KiB, in order; false stops.
    using Write = std::function<bool(std::string_view)>;
    explicit PickleWriter(Write write);

    void beginDictionary();
    void endDictionary() { m_buffer += 'u'; }
    void beginList();
    void endList() { m_buffer += 'e'; }
    /// Between some thousand items of a list, so that a reader need not hold all of them.
    void endBatch() { m_buffer += "e("; }
    void key(std::string_view text) { this->text(text); }
    void text(std::string_view text);
    void integer(std::int64_t value);
    void boolean(bool value) { m_buffer += value ? '\x88' : '\x89'; }
    void pair(std::int64_t first, std::int64_t second);
    void json(const Json& value);

    /// The slot of the container that was begun last: recall() names it again.
    std::uint32_t slot() const { return m_slots - 1; }
    void recall(std::uint32_t slot);

    /// Whether `write` still wants more.
    bool flushIfLarge() { return m_buffer.size() < 1 << 18 || flush(); }
    bool finish();

private:
    bool flush();
    void remember()
    {
        m_buffer += '\x94';
        ++m_slots;
    }
    void little(std::uint64_t value, int bytes);

    Write m_write;
    std::string m_buffer;
    std::unordered_map<std::string, std::uint32_t> m_texts;
    std::uint32_t m_slots = 0;
    bool m_isWanted = true;
};

} // namespace memscape
