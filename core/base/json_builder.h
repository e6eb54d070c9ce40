// SPDX-License-Identifier: Apache-2.0
// Builds a document from the parser's events in time linear in its size (a sort of the keys per object
// apart). The library's own builder looks for every new key among all earlier ones of its object, and
// its objects copy what they hold whenever they grow: a hundred thousand keys take it a minute.
//
// A key that comes again replaces the value and keeps its place, as in the library.
#pragma once

#include "core/base/json.h"

#include <optional>
#include <string>
#include <vector>

namespace memscape {

class JsonBuilder final : public nlohmann::json_sax<Json>
{
public:
    bool null() override { return add(nullptr); }
    bool boolean(bool value) override { return add(value); }
    bool number_integer(number_integer_t value) override { return add(value); }
    bool number_unsigned(number_unsigned_t value) override { return add(value); }
    bool number_float(number_float_t value, const string_t&) override { return add(value); }
    bool string(string_t& value) override { return add(std::move(value)); }
    bool binary(binary_t&) override { return false; } // not in JSON text
    bool start_object(std::size_t) override { return start(); }
    bool start_array(std::size_t) override { return start(); }
    bool key(string_t& key) override;
    bool end_object() override;
    bool end_array() override;
    bool parse_error(std::size_t position, const std::string& token,
                     const nlohmann::detail::exception& problem) override;

    /// What stopped the parser.
    struct Fault
    {
        std::size_t byte = 0;  ///< of the text, from 1: the last one that was read
        std::string token;     ///< what was read last
        bool tooLarge = false; ///< a number beyond what a double holds
    };
    const std::optional<Fault>& fault() const { return m_fault; }
    /// The document, after a parse without a fault.
    Json take() { return m_values.empty() ? Json() : std::move(m_values.front()); }
    /// Keys that were compared with another so far: the effort that grows with the keys of an object.
    std::size_t comparisons() const { return m_comparisons; }

private:
    struct Frame
    {
        std::size_t values, keys; ///< where its own begin
    };

    bool add(Json value);
    bool start();
    std::vector<std::size_t> lastOfEachKey(std::size_t begin);

    std::vector<Json> m_values;      ///< of all that is open, innermost last
    std::vector<std::string> m_keys; ///< the same for the members of objects
    std::vector<Frame> m_open;
    std::optional<Fault> m_fault;
    std::size_t m_comparisons = 0;
};

} // namespace memscape
