// SPDX-License-Identifier: Apache-2.0
// What was loaded, compared with the file: every byte before anything is timed.
#include "kernels/host/loading/bus_guard.h"
#include "kernels/host/loading/loading_kernels.h"
#include "kernels/host/loading/loading_run.h"
#include "kernels/host/transfer/transfer_kernels.h"

#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <unistd.h>

namespace memscape::host {

Result<void> LoadingRun::compareChunk(std::uint64_t chunk, std::vector<std::byte>& expected)
{
    const auto bytes = std::size_t(m_asked.chunkBytes(chunk));
    expected.resize(bytes);
    for (std::size_t at = 0; at < bytes;) {
        const ssize_t count =
            ::pread(m_file.descriptor(), expected.data() + at, bytes - at, off_t(chunk * m_asked.chunk + at));
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return fail("run.failed", "the file became shorter while it was read",
                        "leave the file as it is while it is measured", m_file.path());
        at += std::size_t(count);
    }
    const Error wrong{"check.failed",
                      fmt::format("loading by {}: a byte of chunk {} is not what the file holds",
                                  loadingMethodKey(m_asked.method), chunk + 1),
                      m_file.path(), "measure again; a disk that does this twice is broken"};
    if (m_file.isOurs() && !holdsSource(expected.data(), std::size_t(chunk * m_asked.chunk), bytes))
        return fail(wrong);
    bool isSame = false;
    const std::byte* const found = readBytes(chunk);
    if (!survivesShrinking([&] { isSame = byteSum(found, bytes) == byteSum(expected.data(), bytes); }) || !isSame)
        return fail(wrong);
    if (!m_asked.hasConversion())
        return {};
    const std::size_t elements = elementsOf(chunk);
    std::vector<std::byte> again(static_cast<std::size_t>(convertedStride()));
    convertLoaded(m_asked.form, m_asked.target, expected.data(), again.data(), elements);
    if (std::memcmp(again.data(), convertedBuffer(chunk), std::size_t(convertedSize(chunk))) != 0)
        return fail(wrong);
    return {};
}

Result<void> LoadingRun::check()
{
    std::vector<std::byte> expected, arrived;
    MEMSCAPE_CHECK(prepare({}));
    for (std::uint64_t chunk = 0; chunk < m_asked.chunks(); ++chunk) {
        MEMSCAPE_CHECK(m_session.checkStopped());
        for (int thread = 0; thread < m_asked.threads; ++thread)
            readPart(thread, chunk);
        if (m_asked.hasConversion() && !m_error)
            convertChunk(chunk);
        if (m_sink && !m_error)
            copyChunk(chunk);
        if (m_error)
            return fail(*m_error);
        MEMSCAPE_CHECK(compareChunk(chunk, expected));
        if (m_sink && (chunk == 0 || chunk + 1 == m_asked.chunks())) {
            const std::uint64_t size = convertedSize(chunk);
            arrived.resize(std::size_t(size));
            MEMSCAPE_CHECK(m_sink->fetch(
                arrived.data(), m_asked.hasConversion() ? chunk * convertedSize(0) : chunk * m_asked.chunk, size));
            const std::byte* const sent = m_asked.hasConversion() ? convertedBuffer(chunk) : expected.data();
            if (std::memcmp(arrived.data(), sent, std::size_t(size)) != 0)
                return fail("check.failed", "bytes that arrived on the GPU are not those that were sent",
                            "measure again; a GPU that does this twice is broken");
        }
    }
    m_checked =
        fmt::format("{} in {} chunks: every byte is the file's", bytesText(double(m_asked.bytes)), m_asked.chunks());
    return {};
}

} // namespace memscape::host
