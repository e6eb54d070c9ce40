// SPDX-License-Identifier: Apache-2.0
#include "core/snapshot/pickle_input.h"

#include "core/base/file.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr std::size_t windowBytes = 1u << 20; // in a core's second cache

} // namespace

Result<PickleInput> PickleInput::open(const std::filesystem::path& path)
{
    MEMSCAPE_TRY(size, regularFileSize(path));
    PickleInput input{std::string_view()};
    input.m_file.reset(std::fopen(path.c_str(), "rb"));
    if (!input.m_file)
        return fail("file.read", fmt::format("{} cannot be opened: {}", path.string(), std::strerror(errno)));
    std::setvbuf(input.m_file.get(), nullptr, _IONBF, 0); // the window is the buffer
    input.m_total = size;
    return input;
}

PickleInput::PickleInput(std::string_view bytes)
    : m_window(reinterpret_cast<const unsigned char*>(bytes.data()))
    , m_cursor(m_window)
    , m_end(m_window)
    , m_total(bytes.size())
{ }

bool PickleInput::fill(std::size_t count)
{
    if (m_error || m_total - position() < count)
        return false;
    if (m_moved) {
        if (auto wanted = m_moved(position(), m_total); !wanted) {
            m_error = std::move(wanted).error();
            return false;
        }
    }
    if (m_file)
        return fillFromFile(count);
    const std::size_t left = std::size_t(m_total - position());
    m_end = m_cursor + std::min(left, std::max(count, windowBytes));
    return true;
}

bool PickleInput::fillFromFile(std::size_t count)
{
    const std::size_t kept = std::size_t(m_end - m_cursor);
    const std::uint64_t start = position();
    const std::size_t wanted = std::max(windowBytes, count);
    if (m_buffer.size() < wanted) { // rarely: of a long text
        std::vector<unsigned char> larger(wanted);
        std::copy(m_cursor, m_end, larger.begin());
        m_buffer = std::move(larger);
    } else {
        std::memmove(m_buffer.data(), m_cursor, kept);
    }
    const std::size_t got = std::fread(m_buffer.data() + kept, 1, m_buffer.size() - kept, m_file.get());
    m_window = m_cursor = m_buffer.data();
    m_end = m_window + kept + got;
    m_windowStart = start;
    if (kept + got >= count)
        return true;
    if (std::ferror(m_file.get()))
        m_error = Error{"file.read", fmt::format("the file cannot be read: {}", std::strerror(errno))};
    return false; // shorter than it was
}

} // namespace memscape
