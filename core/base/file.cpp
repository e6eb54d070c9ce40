// SPDX-License-Identifier: Apache-2.0
#include "core/base/file.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace memscape {

namespace {

namespace fs = std::filesystem;

/// A file descriptor that closes itself.
class Descriptor
{
public:
    explicit Descriptor(int number) : m_number(number) { }
    ~Descriptor() { close(); }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    int number() const { return m_number; }
    bool open() const { return m_number >= 0; }
    int close()
    {
        const int result = m_number >= 0 ? ::close(m_number) : 0;
        m_number = -1;
        return result;
    }

private:
    int m_number;
};

tl::unexpected<Error> fileError(const fs::path& path, std::string_view doing, int number)
{
    const std::string reason = std::strerror(number);
    const std::string message = fmt::format("cannot {} {}: {}", doing, path.string(), reason);
    switch (number) {
    case ENOENT: return fail("file.missing", message, "check the path");
    case EACCES:
    case EPERM:
    case EROFS: return fail("file.permission", message, "choose a place you may write to");
    case ENOSPC:
    case EDQUOT:
    case EFBIG: return fail("file.space", message, "free some space or choose another disk");
    case EISDIR: return fail("file.kind", message, "name a file, not a folder");
    default: return fail(doing == "read" ? "file.read" : "file.write", message);
    }
}

Result<void> writeAll(const Descriptor& file, const fs::path& path, std::string_view content)
{
    while (!content.empty()) {
        const ssize_t count = ::write(file.number(), content.data(), content.size());
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return fileError(path, "write", count == 0 ? ENOSPC : errno);
        content.remove_prefix(static_cast<std::size_t>(count));
    }
    return {};
}

Result<void> writeInPlace(const fs::path& path, std::string_view content)
{
    Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (!file.open())
        return fileError(path, "write", errno);
    return writeAll(file, path, content);
}

/// The rename itself must reach the disk too, or a power cut can bring the old name back empty.
void syncFolder(const fs::path& folder)
{
    Descriptor directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (directory.open())
        ::fsync(directory.number());
}

} // namespace

Result<std::string> readFile(const fs::path& path, std::size_t limit)
{
    Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file.open())
        return fileError(path, "read", errno);
    struct stat status { };
    if (::fstat(file.number(), &status) == 0 && S_ISDIR(status.st_mode))
        return fileError(path, "read", EISDIR);
    std::string content;
    std::string block(1 << 16, '\0');
    for (;;) {
        const ssize_t count = ::read(file.number(), block.data(), block.size());
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return fileError(path, "read", errno);
        if (count == 0)
            return content;
        content.append(block, 0, static_cast<std::size_t>(count));
        if (content.size() > limit) {
            return fail("file.limit", fmt::format("{} is larger than {} MiB", path.string(), limit >> 20),
                        "this is not a document that Memscape writes");
        }
    }
}

Result<std::uint64_t> regularFileSize(const fs::path& path)
{
    struct stat status { };
    if (::stat(path.c_str(), &status) != 0)
        return fileError(path, "read", errno);
    if (S_ISDIR(status.st_mode))
        return fileError(path, "read", EISDIR);
    if (!S_ISREG(status.st_mode))
        return fail("file.kind", fmt::format("{} is not a plain file", path.string()),
                    "name a file, not a pipe or a device");
    if (::access(path.c_str(), R_OK) != 0)
        return fileError(path, "read", errno);
    return static_cast<std::uint64_t>(status.st_size);
}

Result<void> writeFileAtomically(const fs::path& path, std::string_view content)
{
    std::error_code problem;
    fs::path target = path;
    if (fs::is_symlink(fs::symlink_status(path, problem)))
        target = fs::weakly_canonical(path, problem);
    if (problem)
        target = path;
    const auto status = fs::status(target, problem);
    if (fs::is_directory(status))
        return fileError(path, "write", EISDIR);
    if (fs::exists(status) && !fs::is_regular_file(status))
        return writeInPlace(target, content);
    // Renaming over a file that may not be written would be a surprise.
    if (fs::exists(status) && ::access(target.c_str(), W_OK) != 0)
        return fileError(path, "write", errno);

    std::string temporary = target.string() + ".XXXXXX";
    Descriptor file(::mkostemp(temporary.data(), O_CLOEXEC));
    if (!file.open())
        return fileError(path, "write", errno);
    const mode_t mask = ::umask(0);
    ::umask(mask);
    const mode_t mode = fs::exists(status) ? static_cast<mode_t>(status.permissions()) & 0777
                                           : 0666 & ~mask;
    ::fchmod(file.number(), mode);

    Result<void> written = writeAll(file, path, content);
    if (written && ::fsync(file.number()) != 0)
        written = fileError(path, "write", errno);
    if (file.close() != 0 && written)
        written = fileError(path, "write", errno);
    if (written && ::rename(temporary.c_str(), target.c_str()) != 0)
        written = fileError(path, "write", errno);
    if (!written) {
        ::unlink(temporary.c_str());
        return written;
    }
    syncFolder(target.parent_path().empty() ? fs::path(".") : target.parent_path());
    return {};
}

} // namespace memscape
