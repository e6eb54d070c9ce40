// SPDX-License-Identifier: Apache-2.0
// Files whole: read with a size limit, written atomically (temporary file beside it, fsync, rename),
// so that a full disk or a kill leaves the old file as it was.
#pragma once

#include "core/base/result.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace memscape {

/// Errors: file.missing, file.permission, file.kind, file.read, file.limit; pipes and devices are refused
/// before they could block, but the process's own descriptors (/dev/stdin, /dev/fd/N) are read to their
/// end. The message names the path.
Result<std::string> readFile(const std::filesystem::path& path, std::size_t limit = 256u << 20);

/// Size of a file that can be read from its beginning to its end: not a folder, a pipe or a device,
/// which would block or never end. Errors: file.missing, file.permission, file.kind; nothing is opened.
Result<std::uint64_t> regularFileSize(const std::filesystem::path& path);

/// What a folder holds, by name; with an extension (".json"), what ends so. Empty where the folder is not there or
/// cannot be read.
std::vector<std::filesystem::path> entriesOf(const std::filesystem::path& folder, std::string_view extension = {});

/// Read permission of a file: by the umask or the file that is replaced, or its owner alone (0600).
enum class FileMode { Shared, Private };

/// Errors: file.permission, file.space, file.write; nothing is left behind on failure. A symbolic
/// link is followed, so that the link stays and its target is replaced. "/dev/stdout" style special
/// files are written directly. Temporary files that a killed program left beside it more than an hour
/// ago are removed.
Result<void> writeFileAtomically(const std::filesystem::path& path, std::string_view content,
                                 FileMode mode = FileMode::Shared);

} // namespace memscape
