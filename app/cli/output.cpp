// SPDX-License-Identifier: Apache-2.0
#include "app/cli/output.h"

#include "core/base/text.h"

#include "core/base/file.h"
#include "core/report/text_table.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace memscape::cli {

namespace {

int outputErrno = 0; // why standard output stopped working; 0 while it works

/// A copy of what could not be written to `path`, with its suffix; no file when it does not fit either.
std::string kept(const std::string& path, const std::string& text)
{
    std::error_code problem;
    const std::string suffix = std::filesystem::path(path).extension().string();
    std::string name = (std::filesystem::temp_directory_path(problem) / "memscape-XXXXXX").string() + suffix;
    const int file = ::mkostemps(name.data(), static_cast<int>(suffix.size()), O_CLOEXEC);
    if (file < 0)
        return {};
    ::close(file);
    if (writeFileAtomically(name, text))
        return name;
    ::unlink(name.c_str());
    return {};
}

} // namespace

void printOut(std::string_view text)
{
    if (outputErrno != 0)
        return;
    errno = 0;
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
        outputErrno = errno != 0 ? errno : EIO;
}

bool outputGone()
{
    return outputErrno != 0;
}

int finishedOutput(int code)
{
    if (outputErrno == 0 && std::fflush(stdout) != 0)
        outputErrno = errno;
    if (outputErrno == 0 || outputErrno == EPIPE)
        return code;
    complain({"file.write",
              fmt::format("cannot write to standard output: {}", std::strerror(outputErrno)),
              {},
              "free some space, or send the output somewhere else"});
    return static_cast<int>(ExitCode::BadInput);
}

void note(std::string_view text)
{
    const std::string line = printable(text) + "\n";
    std::fwrite(line.data(), 1, line.size(), stderr);
}

void complain(const Error& error)
{
    note("memscape-cli: " + (error.place.empty() ? "" : error.place + ": ") + error.message);
    if (!error.hint.empty())
        note("  " + error.hint);
}

int refused(const Error& error)
{
    complain(error);
    return static_cast<int>(exitCodeFor(error));
}

Result<std::string> readText(const std::string& path)
{
    if (path != "-")
        return readFile(path);
    constexpr std::size_t limit = 256u << 20; // as for a file
    std::string text;
    std::string block(1 << 16, '\0');
    for (;;) {
        const ssize_t count = ::read(STDIN_FILENO, block.data(), block.size());
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return fail("file.read", fmt::format("cannot read standard input: {}", std::strerror(errno)));
        if (count == 0)
            return text;
        text.append(block, 0, static_cast<std::size_t>(count));
        if (text.size() > limit)
            return fail("file.limit", "standard input is larger than 256 MiB",
                        "this is not a document that Memscape writes");
    }
}

Result<void> writable(const std::string& path)
{
    namespace fs = std::filesystem;
    if (path.empty() || path == "-")
        return {};
    std::error_code problem;
    if (fs::is_directory(path, problem))
        return fail("file.kind", fmt::format("{} is a folder", path), "name a file in it");
    const fs::path folder = fs::path(path).has_parent_path() ? fs::path(path).parent_path() : ".";
    if (!fs::is_directory(folder, problem))
        return fail("file.missing", fmt::format("cannot write {}: there is no folder {}", path, folder.string()),
                    "make the folder first, or choose another place");
    const bool special = fs::exists(path, problem) && !fs::is_regular_file(path, problem);
    const std::string asked = special || fs::exists(path, problem) ? path : folder.string();
    if (::access(asked.c_str(), W_OK) != 0)
        return fail("file.permission", fmt::format("cannot write {}: {}", path, std::strerror(errno)),
                    "choose a place you may write to");
    return {};
}

int deliver(const std::string& path, const std::string& text, bool printed, int code)
{
    if (printed || path == "-")
        printOut(text);
    if (path.empty() || path == "-")
        return code;
    const auto written = writeFileAtomically(path, text);
    if (written) {
        note("written to " + path);
        return code;
    }
    complain(written.error());
    if (printed && !outputGone()) {
        note("  nothing is lost: the record is on standard output");
    } else if (const std::string name = kept(path, text); !name.empty()) {
        note("  nothing is lost: kept in " + name);
    } else {
        printOut(text);
        note("  there is no room for a temporary file either: the record is on standard output");
    }
    return static_cast<int>(ExitCode::BadInput);
}

} // namespace memscape::cli
