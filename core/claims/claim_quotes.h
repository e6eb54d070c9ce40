// SPDX-License-Identifier: Apache-2.0
// The words of the course notes, which stand once: in resources/claims/, a file for each note. An experiment that
// judges one of them at its own parameters takes the words from here by the claim's id.
#pragma once

#include "core/experiment/experiment.h"

#include <filesystem>

namespace memscape {

/// resources/claims of what the program ships.
std::filesystem::path claimsFolder();

/// The files of a folder of claims, sorted. Errors: file.missing where there is none.
Result<std::vector<std::filesystem::path>> claimFiles(const std::filesystem::path& folder);

/// One file as JSON: {"format": "memscape-claims", "version": 1, "source", "title", "claims": […]}, or one of another
/// format. Errors: file.*, json.*, json.format, json.version, each with the file as place.
Result<Json> readClaimFile(const std::filesystem::path& path, std::string_view format = "memscape-claims");

/// A claim of that id with the note's words and place, and a verdict of the caller. Reads the files once; where the
/// table cannot be read, the quote says so.
Claim quotedClaim(std::string_view id, std::string verdict, std::string ours);

} // namespace memscape
