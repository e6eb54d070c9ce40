// SPDX-License-Identifier: Apache-2.0
// Reads a Hugging Face config.json key by key. The same quantity has many names (hidden_size,
// n_embd, d_model, dim): a reader gives them all, and the first that is there counts; null counts
// as missing. The first thing that is wrong is kept with the key as its place and ends the reading.
#pragma once

#include "core/base/json.h"

#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

namespace memscape {

class ConfigFields
{
public:
    using Keys = std::initializer_list<const char*>;

    /// `outer` is the object around a nested text_config: some keys are only there.
    ConfigFields(JsonReader node, std::optional<JsonReader> outer = std::nullopt)
        : m_node(std::move(node))
        , m_outer(std::move(outer))
    { }

    const JsonReader& node() const { return m_node; }
    bool failed() const { return m_error.has_value(); }
    const Error& error() const { return *m_error; }
    void refuse(Error error);
    /// Refuses what the field `key` says: code model.contradiction.
    void contradict(std::string_view key, std::string message);

    /// The place of `key`, there or not: "text_config.hidden_size".
    std::string within(std::string_view key) const;
    /// The first of `keys` that is there and not null.
    std::optional<JsonReader> find(Keys keys) const;
    bool has(Keys keys) const { return find(keys).has_value(); }

    /// A whole number of at least `low`; nothing when no key is there.
    std::optional<std::int64_t> count(Keys keys, std::int64_t low = 1);
    /// The same; refuses (config.missing) when no key is there.
    std::int64_t required(Keys keys);
    /// The same; takes `standard` when no key is there, and says so when `standard` is above 0;
    /// refuses when it is 0.
    std::int64_t countOr(Keys keys, std::int64_t standard, std::int64_t low = 1);
    double number(Keys keys, double standard);
    bool flag(Keys keys, bool standard);
    std::string word(Keys keys, std::string standard = {});
    std::vector<std::int64_t> counts(Keys keys);
    std::vector<std::string> words(Keys keys);

    void assume(std::string sentence) { m_assumptions.push_back(std::move(sentence)); }
    /// An assumption that everything hangs on.
    void caution(std::string sentence) { m_caution = std::move(sentence); }
    std::string takeCaution() { return std::move(m_caution); }
    std::vector<std::string> takeAssumptions() { return std::move(m_assumptions); }

private:
    template <typename Value> Value one(Keys keys, Value standard, Result<Value> (JsonReader::*read)() const);
    template <typename Value> std::vector<Value> list(Keys keys, Result<Value> (JsonReader::*read)() const);

    JsonReader m_node;
    std::optional<JsonReader> m_outer;
    std::optional<Error> m_error;
    std::vector<std::string> m_assumptions;
    std::string m_caution;
};

} // namespace memscape
