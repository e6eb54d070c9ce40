// SPDX-License-Identifier: Apache-2.0
// The bytes of a pickle, seen through a window: of a file a MiB at a time (a map of the file would end the process
// when another one shortens it), of memory all of it. Counts, reports and asks whether the reading is still wanted
// whenever the window moves.
#pragma once

#include "core/base/result.h"

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace memscape {

class PickleInput
{
public:
    /// Called whenever the window moves, about every MiB; an error ends the reading.
    using Moved = std::function<Result<void>(std::uint64_t done, std::uint64_t total)>;

    static Result<PickleInput> open(const std::filesystem::path& path);
    explicit PickleInput(std::string_view bytes);

    void onMove(Moved moved) { m_moved = std::move(moved); }

    /// Whether `count` bytes are there; false at the end of the input, after a failed read, and when `Moved` answered
    /// with an error: see error().
    bool has(std::size_t count) { return std::size_t(m_end - m_cursor) >= count || fill(count); }
    const std::optional<Error>& error() const { return m_error; }

    // Of bytes that are there.
    const unsigned char* cursor() const { return m_cursor; }
    unsigned char byte() { return *m_cursor++; }
    std::size_t available() const { return std::size_t(m_end - m_cursor); } ///< without moving the window
    void skip(std::size_t count) { m_cursor += count; }
    /// Little-endian, at most 8 bytes.
    std::uint64_t number(std::size_t bytes)
    {
        std::uint64_t value = 0;
        for (std::size_t i = 0; i < bytes; ++i)
            value |= std::uint64_t(m_cursor[i]) << (8 * i);
        m_cursor += bytes;
        return value;
    }

    std::uint64_t position() const { return m_windowStart + std::uint64_t(m_cursor - m_window); }
    std::uint64_t total() const { return m_total; }

private:
    bool fill(std::size_t count);
    bool fillFromFile(std::size_t count);

    struct Close
    {
        void operator()(std::FILE* file) const { std::fclose(file); }
    };
    std::unique_ptr<std::FILE, Close> m_file; ///< null: of memory
    std::vector<unsigned char> m_buffer;
    const unsigned char *m_window = nullptr, *m_cursor = nullptr, *m_end = nullptr;
    std::uint64_t m_windowStart = 0, m_total = 0;
    Moved m_moved;
    std::optional<Error> m_error;
};

} // namespace memscape
