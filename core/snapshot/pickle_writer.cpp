// SPDX-License-Identifier: Apache-2.0
#include "core/snapshot/pickle_writer.h"

#include <bit>

namespace memscape {

PickleWriter::PickleWriter(Write write)
    : m_write(std::move(write))
    , m_buffer("\x80\x04", 2)
{ }

void PickleWriter::little(std::uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; ++i)
        m_buffer += char(value >> (8 * i) & 0xff);
}

void PickleWriter::beginDictionary()
{
    m_buffer += '}';
    remember();
    m_buffer += '(';
}

void PickleWriter::beginList()
{
    m_buffer += ']';
    remember();
    m_buffer += '(';
}

void PickleWriter::text(std::string_view text)
{
    const auto [known, isNew] = m_texts.try_emplace(std::string(text), m_slots);
    if (!isNew)
        return recall(known->second);
    if (text.size() < 256) {
        m_buffer += '\x8c';
        little(text.size(), 1);
    } else {
        m_buffer += 'X';
        little(text.size(), 4);
    }
    m_buffer += text;
    remember();
}

void PickleWriter::integer(std::int64_t value)
{
    if (value >= 0 && value < 256) {
        m_buffer += 'K';
        little(std::uint64_t(value), 1);
    } else if (value >= 0 && value < 65536) {
        m_buffer += 'M';
        little(std::uint64_t(value), 2);
    } else if (value >= INT32_MIN && value <= INT32_MAX) {
        m_buffer += 'J';
        little(std::uint64_t(value), 4);
    } else {
        m_buffer += '\x8a';
        little(8, 1);
        little(std::uint64_t(value), 8);
    }
}

void PickleWriter::pair(std::int64_t first, std::int64_t second)
{
    integer(first);
    integer(second);
    m_buffer += '\x86';
    remember();
}

void PickleWriter::json(const Json& value)
{
    if (value.is_object()) {
        beginDictionary();
        for (const auto& [key, item] : value.items()) {
            text(key);
            json(item);
        }
        endDictionary();
    } else if (value.is_array()) {
        beginList();
        for (const Json& item : value)
            json(item);
        endList();
    } else if (value.is_string()) {
        text(value.get_ref<const std::string&>());
    } else if (value.is_boolean()) {
        boolean(value.get<bool>());
    } else if (value.is_number_integer()) {
        integer(value.get<std::int64_t>());
    } else if (value.is_number()) {
        m_buffer += 'G';
        const auto bits = std::bit_cast<std::uint64_t>(value.get<double>());
        for (int i = 7; i >= 0; --i)
            m_buffer += char(bits >> (8 * i) & 0xff);
    } else {
        m_buffer += 'N';
    }
}

void PickleWriter::recall(std::uint32_t slot)
{
    m_buffer += slot < 256 ? 'h' : 'j';
    little(slot, slot < 256 ? 1 : 4);
}

bool PickleWriter::flush()
{
    m_isWanted = m_isWanted && m_write(m_buffer);
    m_buffer.clear();
    return m_isWanted;
}

bool PickleWriter::finish()
{
    m_buffer += '.';
    return flush();
}

} // namespace memscape
