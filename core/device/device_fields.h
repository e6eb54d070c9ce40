// SPDX-License-Identifier: Apache-2.0
// Reading one object of a device document. The first thing that is wrong is kept with its place and
// ends the reading, so that the functions that list the fields stay a list of fields. Every number
// has a range: a device file can come from anywhere, and 10^300 bytes of L1 must be a message, not
// an infinite loop in a model.
#pragma once

#include "core/device/device.h"

#include <functional>
#include <memory>
#include <string_view>

namespace memscape {

/// Allowed values: (low, high], or [0, high] when zero is meaningful.
struct Range
{
    double high;
    bool zeroAllowed = false;
    bool whole = false;
};

/// A view of one JSON object. Copies share the first error.
class Fields
{
public:
    explicit Fields(JsonReader node)
        : m_node(std::move(node))
        , m_error(std::make_shared<std::optional<Error>>())
    { }

    bool has(std::string_view key) const;
    bool failed() const { return m_error->has_value(); }
    const Error& error() const { return **m_error; }
    const JsonReader& node() const { return m_node; }

    double number(std::string_view key, Range range, double fallback) const;
    int integer(std::string_view key, Range range, int fallback) const;
    bool boolean(std::string_view key, bool fallback) const;
    std::string text(std::string_view key, std::string fallback = {}) const;
    std::string requiredText(std::string_view key) const;
    /// Missing or null is unknown; {"value": null, …} is unknown with a source.
    Sourced sourced(std::string_view key, Range range) const;
    /// As sourced(), but nothing when the key is missing.
    std::optional<Sourced> optionalSourced(std::string_view key, Range range) const;
    /// The index of the word at `key` in `words`.
    std::size_t choice(std::string_view key, const std::vector<std::string_view>& words, std::size_t fallback) const;

    /// `read` for each object of the array at `key`; nothing when it is missing.
    void each(std::string_view key, std::size_t limit, const std::function<void(const Fields&)>& read) const;
    void eachMember(std::string_view key, std::size_t limit,
                    const std::function<void(const std::string&, const Fields&)>& read) const;
    std::vector<std::string> texts(std::string_view key, std::size_t limit) const;
    /// `read` for the object at `key`, when it is there.
    void inside(std::string_view key, const std::function<void(const Fields&)>& read) const;

    /// Keep this as the first error.
    void refuse(Error error) const;
    void refuse(std::string_view key, const std::string& message) const;

private:
    Fields(JsonReader node, std::shared_ptr<std::optional<Error>> error)
        : m_node(std::move(node))
        , m_error(std::move(error))
    { }
    double inRange(double value, const JsonReader& at, Range range) const;

    JsonReader m_node;
    std::shared_ptr<std::optional<Error>> m_error;
};

} // namespace memscape
