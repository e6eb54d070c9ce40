// SPDX-License-Identifier: Apache-2.0
// A snapshot's file, opened for the command line.
#pragma once

#include "core/snapshot/snapshot_device.h"

#include <string>

namespace memscape::cli {

/// Whether a file begins like a pickle. False of standard input ("-") and of what cannot be opened.
bool isPickleFile(const std::string& path);

/// Reads and analyses; "-" is standard input. `device` is "cuda:1" or "1", empty: the one with most events. Progress is
/// shown on a terminal.
Result<std::shared_ptr<const SnapshotDevice>> openSnapshot(const std::string& path, const std::string& device);

/// The file's name without its folder.
std::string nameOfFile(const std::string& path);

} // namespace memscape::cli
