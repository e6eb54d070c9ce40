// SPDX-License-Identifier: Apache-2.0
#include "core/base/file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <memory>
#include <random>

#include <dirent.h>
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
    explicit Descriptor(int number)
        : m_number(number)
    { }
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
    case EROFS:
        return fail("file.permission", message,
                    doing == "read" ? "change its permissions, or choose another file"
                                    : "choose a place you may write to");
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

/// A descriptor of this process by name, such as a shell's <(…): a pipe that a writer already has open.
bool isOwnDescriptor(const fs::path& path)
{
    const std::string name = path.string();
    return name == "/dev/stdin" || name.starts_with("/dev/fd/") || name.starts_with("/proc/self/fd/");
}

tl::unexpected<Error> notPlain(const fs::path& path)
{
    return fail("file.kind", fmt::format("{} is not a plain file", path.string()),
                "name a file, not a pipe or a device");
}

constexpr std::string_view temporaryMark = ".saving-";

/// How the temporary files of a target begin: hidden, beside it, and short enough for the longest name.
std::string temporaryPrefix(const fs::path& target)
{
    return "." + target.filename().string().substr(0, 200) + std::string(temporaryMark);
}

fs::path folderOf(const fs::path& target)
{
    return target.has_parent_path() ? target.parent_path() : fs::path(".");
}

/// A new file beside the target. The kernel applies the umask, which a process cannot ask for without
/// changing it for all its threads.
int openTemporary(const fs::path& target, mode_t mode, std::string& name)
{
    std::random_device random;
    for (int attempt = 0; attempt < 100; ++attempt) {
        name = (folderOf(target) / (temporaryPrefix(target) + fmt::format("{:08x}", random()))).string();
        const int file = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (file >= 0 || errno != EEXIST)
            return file;
    }
    return -1;
}

/// What a killed program left of an earlier save. No save takes an hour.
void removeStale(const fs::path& target)
{
    const std::string prefix = temporaryPrefix(target);
    for (const fs::path& entry : entriesOf(folderOf(target))) {
        struct stat status
        { };
        if (entry.filename().string().starts_with(prefix) && ::lstat(entry.c_str(), &status) == 0
            && S_ISREG(status.st_mode) && status.st_uid == ::geteuid() && std::time(nullptr) - status.st_mtime > 3600)
            ::unlink(entry.c_str());
    }
}

} // namespace

// By the system's own calls: the iterator of libstdc++ 14 ends the process when the memory runs out in it.
std::vector<fs::path> entriesOf(const fs::path& folder, std::string_view extension)
{
    std::vector<fs::path> entries;
    const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(folder.c_str()), ::closedir);
    while (const dirent* entry = open ? ::readdir(open.get()) : nullptr) {
        const std::string_view name = entry->d_name;
        if (name != "." && name != ".." && (extension.empty() || fs::path(name).extension() == extension))
            entries.push_back(folder / name);
    }
    std::ranges::sort(entries);
    return entries;
}

Result<std::string> readFile(const fs::path& path, std::size_t limit)
{
    // Opening a pipe waits for its writer, unless O_NONBLOCK is set.
    const int waiting = isOwnDescriptor(path) ? 0 : O_NONBLOCK | O_NOCTTY;
    Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | waiting));
    if (!file.open())
        return fileError(path, "read", errno);
    struct stat status
    { };
    if (::fstat(file.number(), &status) == 0 && S_ISDIR(status.st_mode))
        return fileError(path, "read", EISDIR);
    if (!S_ISREG(status.st_mode) && waiting != 0)
        return notPlain(path);
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
    struct stat status
    { };
    if (::stat(path.c_str(), &status) != 0)
        return fileError(path, "read", errno);
    if (S_ISDIR(status.st_mode))
        return fileError(path, "read", EISDIR);
    if (!S_ISREG(status.st_mode))
        return notPlain(path);
    if (::access(path.c_str(), R_OK) != 0)
        return fileError(path, "read", errno);
    return static_cast<std::uint64_t>(status.st_size);
}

Result<void> writeFileAtomically(const fs::path& path, std::string_view content, FileMode access)
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

    removeStale(target);
    std::string temporary;
    const mode_t mode = access == FileMode::Private ? 0600 : 0666;
    Descriptor file(openTemporary(target, mode, temporary));
    if (!file.open())
        return fileError(path, "write", errno);
    if (access == FileMode::Shared && fs::exists(status))
        ::fchmod(file.number(), static_cast<mode_t>(status.permissions()) & 0777);

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
    syncFolder(folderOf(target));
    return {};
}

} // namespace memscape
