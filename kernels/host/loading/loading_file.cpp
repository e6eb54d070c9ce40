// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/loading/loading_file.h"

#include "core/base/file.h"
#include "core/base/rounding.h"
#include "kernels/host/transfer/transfer_kernels.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace memscape::host {

namespace {

constexpr std::uint64_t spaceMargin = std::uint64_t(1) << 29; ///< B that stay free
constexpr std::uint64_t pageOf = 4096;
constexpr unsigned writtenAndWaitedFor =
    SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
constexpr std::uint64_t countedWindow = std::uint64_t(1) << 30; ///< B of the file that are mapped to count pages

bool liesInMemoryThere(int file)
{
    struct statfs about = {};
    if (::fstatfs(file, &about) != 0)
        return false;
    const auto type = static_cast<unsigned long>(about.f_type);
    return type == 0x01021994UL || type == 0x858458f6UL; // tmpfs, ramfs
}

/// A file that has no name, or loses it at once.
FileDescriptor openNameless(const std::filesystem::path& folder)
{
    FileDescriptor file(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    if (file.get() >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
        return file;
    std::string name = (folder / "memscape-loading-XXXXXX").string();
    FileDescriptor named(::mkostemp(name.data(), O_CLOEXEC));
    if (named.get() >= 0)
        ::unlink(name.c_str());
    return named;
}

Error noRoomFor(const std::filesystem::path& folder, std::uint64_t bytes, std::uint64_t free)
{
    return {"run.space",
            fmt::format("the file would have {}, and {} are free in {}; {} stay free", bytesText(double(bytes)),
                        bytesText(double(free)), folder.string(), bytesText(double(spaceMargin))),
            folder.string(), "choose another folder=, a smaller model, or a smaller share touched="};
}

Result<void> checkRoom(int file, const std::filesystem::path& folder, std::uint64_t bytes)
{
    struct statvfs about = {};
    if (::fstatvfs(file, &about) != 0)
        return {};
    const auto free = std::uint64_t(about.f_bavail) * about.f_frsize;
    if (free < spaceMargin || bytes > free - spaceMargin)
        return fail(noRoomFor(folder, bytes, free));
    if (::fallocate(file, 0, 0, off_t(bytes)) != 0 && errno == ENOSPC)
        return fail(noRoomFor(folder, bytes, free));
    return {};
}

Result<void> writeLoadingSource(HostSession& session, int file, const std::filesystem::path& folder,
                                std::uint64_t bytes)
{
    std::vector<std::byte> block(std::size_t(std::min<std::uint64_t>(bytes, std::uint64_t(1) << 22)));
    for (std::uint64_t at = 0; at < bytes;) {
        MEMSCAPE_CHECK(session.checkStopped());
        const auto count = std::size_t(std::min<std::uint64_t>(block.size(), bytes - at));
        fillSource(block.data(), std::size_t(at), count);
        for (std::size_t done = 0; done < count;) {
            const ssize_t wrote = ::write(file, block.data() + done, count - done);
            if (wrote < 0 && errno == EINTR)
                continue;
            if (wrote <= 0)
                return fail(fileError(errno == ENOSPC ? "run.space" : "file.write", "the file cannot be written",
                                      folder.string(), errno));
            done += std::size_t(wrote);
        }
        at += count;
    }
    return {};
}

/// A file without a name is opened again through its descriptor.
FileDescriptor openedAgain(int descriptor, int flags)
{
    return FileDescriptor(::open(fmt::format("/proc/self/fd/{}", descriptor).c_str(), O_RDONLY | O_CLOEXEC | flags));
}

} // namespace

FileDescriptor::~FileDescriptor()
{
    if (m_file >= 0)
        ::close(m_file);
}

Error fileError(const std::string& code, const std::string& what, const std::string& path, int error)
{
    const std::string remedy = error == EACCES || error == EPERM || error == EROFS
        ? "choose another file or folder=, or change its permissions"
        : error == ENOSPC || error == EDQUOT  ? "make room, or choose another folder= or a smaller model"
        : error == ENOENT || error == ENOTDIR ? "check the path"
                                              : "try again, or choose another file or folder=";
    return {code, what + ": " + std::generic_category().message(error), path, remedy};
}

double deviceBytesRead()
{
    std::ifstream file("/proc/self/io");
    std::string key;
    for (double value = 0; file >> key >> value;) {
        if (key == "read_bytes:")
            return value;
    }
    return -1;
}

std::filesystem::path loadingFolder(const std::string& asked)
{
    if (!asked.empty())
        return asked;
    std::error_code error;
    std::filesystem::path folder = std::filesystem::temp_directory_path(error);
    if (error)
        folder = "/tmp";
    const FileDescriptor there(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    return there.get() >= 0 && !liesInMemoryThere(there.get()) ? folder : std::filesystem::path("/var/tmp");
}

Result<LoadingFile> LoadingFile::write(HostSession& session, const std::string& asked, std::uint64_t bytes,
                                       std::uint64_t limit)
{
    if (bytes > limit)
        return fail("run.skipped",
                    fmt::format("the file would have {}, and {} is the most that is written", bytesText(double(bytes)),
                                bytesText(double(limit))),
                    fmt::format("choose touched={:.2g} or a smaller model, or raise limit=",
                                0.95 * double(limit) / double(bytes)),
                    "limit");
    const std::filesystem::path folder = loadingFolder(asked);
    LoadingFile made;
    made.m_file = openNameless(folder);
    if (made.m_file.get() < 0)
        return fail(fileError(errno == ENOENT || errno == ENOTDIR ? "file.missing" : "file.permission",
                              "no file can be made there", folder.string(), errno));
    MEMSCAPE_CHECK(checkRoom(made.descriptor(), folder, bytes));
    MEMSCAPE_CHECK(writeLoadingSource(session, made.descriptor(), folder, bytes));
    made.m_bytes = bytes;
    made.m_liesInMemory = liesInMemoryThere(made.descriptor());
    return made;
}

Result<LoadingFile> LoadingFile::open(const std::string& path)
{
    MEMSCAPE_CHECK(regularFileSize(path));
    LoadingFile opened;
    opened.m_file = FileDescriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)); // not a pipe by now
    struct stat about = {};
    if (opened.m_file.get() < 0 || ::fstat(opened.m_file.get(), &about) != 0)
        return fail(
            fileError(errno == ENOENT ? "file.missing" : "file.permission", "the file cannot be opened", path, errno));
    if (!S_ISREG(about.st_mode))
        return fail("file.kind", "this is no regular file any more", "choose a safetensors or GGUF file", path);
    opened.m_bytes = std::uint64_t(about.st_size);
    opened.m_path = path;
    opened.m_liesInMemory = liesInMemoryThere(opened.m_file.get());
    return opened;
}

std::uint64_t LoadingFile::cachedBytes(std::uint64_t bytes) const
{
    std::uint64_t cached = 0;
    std::vector<unsigned char> pages;
    for (std::uint64_t at = 0; at < bytes; at += countedWindow) {
        const auto length = std::size_t(std::min(countedWindow, bytes - at));
        void* const mapping = ::mmap(nullptr, length, PROT_READ, MAP_SHARED, descriptor(), off_t(at));
        if (mapping == MAP_FAILED)
            return bytes; // not proved
        pages.resize(quotientUp(length, pageOf));
        const bool isKnown = ::mincore(mapping, length, pages.data()) == 0;
        ::munmap(mapping, length);
        if (!isKnown)
            return bytes;
        cached +=
            pageOf * std::uint64_t(std::ranges::count_if(pages, [](unsigned char one) { return (one & 1) != 0; }));
    }
    return std::min(cached, bytes);
}

Result<void> LoadingFile::makeCold(std::uint64_t bytes) const
{
    if (m_liesInMemory)
        return fail("run.skipped", "the file lies in memory (tmpfs) and cannot be cold",
                    "choose cache=warm, or folder= on a disk", "cache");
    // Pages that are not on the disk yet stay. The journal and other files can wait, where the system lets them.
    if (isOurs() && ::sync_file_range(descriptor(), 0, 0, writtenAndWaitedFor) != 0 && ::fsync(descriptor()) != 0)
        return fail(fileError("file.write", "the file cannot be brought to the disk", m_path, errno));
    std::uint64_t cached = bytes;
    for (int attempt = 0; attempt < 3 && cached > 0; ++attempt) { // pages on their way stay for a moment
        ::posix_fadvise(descriptor(), 0, 0, POSIX_FADV_DONTNEED);
        cached = cachedBytes(bytes);
    }
    if (cached == 0)
        return {};
    return fail(
        "run.skipped",
        isOurs() ? fmt::format("{} of {} stay in the page cache", bytesText(double(cached)), bytesText(double(bytes)))
                 : fmt::format("{} of {} are in the page cache still, or this user may not see that they are not",
                               bytesText(double(cached)), bytesText(double(bytes))),
        isOurs() ? "choose cache=warm, method=direct, or folder= on another disk"
                 : "close the programs that use the file, measure a copy of your own, or choose cache=warm",
        isOurs() ? "cache" : m_path);
}

Result<void> LoadingFile::makeWarm(std::uint64_t bytes) const
{
    std::vector<std::byte> block(std::size_t(1) << 22);
    for (std::uint64_t at = 0; at < bytes;) {
        const ssize_t count = ::pread(descriptor(), block.data(),
                                      std::size_t(std::min<std::uint64_t>(block.size(), bytes - at)), off_t(at));
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return fail("run.failed", fmt::format("the file ends after {}", bytesText(double(at))),
                        "leave the file as it is while it is measured", m_path);
        at += std::uint64_t(count);
    }
    return {};
}

double LoadingFile::readAhead() const
{
    constexpr double standard = 131072;
    struct stat about = {};
    if (::fstat(descriptor(), &about) != 0)
        return standard;
    // A filesystem's own, else the disk's, of which it may be a part.
    const std::string place = fmt::format("{}:{}", major(about.st_dev), minor(about.st_dev));
    for (const std::string& path :
         {"/sys/class/bdi/" + place + "/read_ahead_kb", "/sys/dev/block/" + place + "/queue/read_ahead_kb",
          "/sys/dev/block/" + place + "/../queue/read_ahead_kb"}) {
        std::ifstream file(path);
        if (double kibibytes = 0; file >> kibibytes && kibibytes >= 4)
            return kibibytes * 1024;
    }
    return standard;
}

FileDescriptor LoadingFile::openAgain() const
{
    return openedAgain(descriptor(), 0);
}

Result<FileDescriptor> LoadingFile::openDirect() const
{
    FileDescriptor direct = openedAgain(descriptor(), O_DIRECT);
    if (direct.get() < 0 || m_liesInMemory)
        return fail("run.skipped", "this filesystem has no direct I/O", "choose method=read, or folder= on a disk",
                    "method");
    return direct;
}

} // namespace memscape::host
