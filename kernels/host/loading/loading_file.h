// SPDX-License-Identifier: Apache-2.0
// The file that a loading is measured with: written here without a name, so that the system frees it also after
// kill -9, or the user's own, opened to be read only. It can be made cold and warm, and says which it is: mincore()
// counts its pages in the page cache.
#pragma once

#include "core/base/result.h"
#include "kernels/host/session.h"

#include <cstdint>
#include <filesystem>
#include <string>

namespace memscape::host {

/// Closes itself. Move only.
class FileDescriptor
{
public:
    explicit FileDescriptor(int file = -1)
        : m_file(file)
    { }
    FileDescriptor(FileDescriptor&& other) noexcept
        : m_file(other.m_file)
    {
        other.m_file = -1;
    }
    FileDescriptor& operator=(FileDescriptor&& other) noexcept
    {
        std::swap(m_file, other.m_file);
        return *this;
    }
    ~FileDescriptor();
    int get() const { return m_file; }

private:
    int m_file;
};

/// Where files are written; without a folder that is asked for: TMPDIR or /tmp, or /var/tmp where those lie in memory.
std::filesystem::path loadingFolder(const std::string& asked);

class LoadingFile
{
public:
    /// `bytes` of what fillSource() says. Errors: run.space (not so many bytes and a
    /// margin are free), run.skipped (more than `limit`), file.missing, file.permission, file.write, run.cancelled.
    static Result<LoadingFile> write(HostSession& session, const std::string& folder, std::uint64_t bytes,
                                     std::uint64_t limit);
    /// Errors: file.missing, file.permission, file.kind.
    static Result<LoadingFile> open(const std::string& path);

    int descriptor() const { return m_file.get(); }
    std::uint64_t bytes() const { return m_bytes; }
    bool isOurs() const { return m_path.empty(); }
    const std::string& path() const { return m_path; }
    bool liesInMemory() const { return m_liesInMemory; }

    /// No page of the first `bytes` in the page cache; what was written is on the disk. Errors: run.skipped where that
    /// cannot be (tmpfs, pages that another program holds, a file whose pages this user may not count).
    Result<void> makeCold(std::uint64_t bytes) const;
    /// All of them in it. Errors: run.failed where the file is shorter.
    Result<void> makeWarm(std::uint64_t bytes) const;
    /// Of the first `bytes`, those in the page cache, B.
    std::uint64_t cachedBytes(std::uint64_t bytes) const;
    /// B that the system reads ahead of it at a time; Linux's standard where it does not say.
    double readAhead() const;
    /// The same file past the page cache. Errors: run.skipped where its filesystem cannot.
    Result<FileDescriptor> openDirect() const;
    /// For one more thread that reads: the kernel reads ahead for each descriptor. Closed where that is refused.
    FileDescriptor openAgain() const;

private:
    FileDescriptor m_file;
    std::uint64_t m_bytes = 0;
    std::string m_path; ///< of the user's own
    bool m_liesInMemory = false;
};

/// What failed, the file and the system's reason.
Error fileError(const std::string& code, const std::string& what, const std::string& path, int error);
/// read_bytes of /proc/self/io: what this process had from devices so far; below 0 where the system does not say.
double deviceBytesRead();

} // namespace memscape::host
