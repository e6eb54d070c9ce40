// SPDX-License-Identifier: Apache-2.0
// Reads a PyTorch memory snapshot, or a *.memscape-run file: a restricted pickle machine (protocols 2 to 5) that knows
// dictionaries, lists, tuples, texts, numbers, booleans, None and the memo, and nothing that runs code. Every other
// opcode is an error that names it and its byte. The file is read through a window of a MiB, never as a tree: a
// dictionary that is an event, a frame or a block becomes a row of its table as soon as it is complete, so the reader
// takes about as much memory as the tables (snapshot.h) and the memo (8 bytes for each container).
//
// Order of keys and place in the file do not matter: what a dictionary is follows from its keys ("action", "filename",
// "state", "blocks").
//
// Left out: JSON twins of snapshots, compressed files, protocols 0 and 1 (pickle.dump(…, protocol=4) writes another).
#pragma once

#include "core/base/result.h"
#include "core/snapshot/snapshot_preview.h"

#include <filesystem>
#include <functional>

namespace memscape {

struct SnapshotReadOptions
{
    /// Bytes read, bytes of the file; called about every MiB, on the reading thread.
    std::function<void(std::uint64_t done, std::uint64_t total)> progress = {};
    /// What is known so far, right after `progress`.
    std::function<void(const SnapshotPreview& preview)> preview = {};
    /// Memory that the reader may take before it refuses the file as a bomb: `memoryFactor` times the file's size and
    /// `memoryBase` bytes more. A file of PyTorch takes less than half of it.
    double memoryFactor = 3;
    std::size_t memoryBase = 64u << 20;
};

/// Cancelled as every long computation is: a CancelScope of the reading thread (core/base/cancellation.h) ends it with
/// predict.cancelled. Errors name the path and the byte: those of readFile() without its limit, pickle.truncated,
/// pickle.opcode (code, bytes objects, persistent ids …), pickle.protocol, pickle.memo, pickle.stack,
/// pickle.limit (memory, depth, a text of more than 16 MiB), snapshot.format (a pickle, but not a
/// snapshot), snapshot.type and snapshot.value with the place ("segments[3].blocks[7].size").
Result<Snapshot> readSnapshot(const std::filesystem::path& path, const SnapshotReadOptions& options = {});
Result<Snapshot> readSnapshotBytes(std::string_view bytes, const SnapshotReadOptions& options = {});

/// Whether a file begins like a pickle of protocol 2 to 5: 0x80 and the protocol. Two bytes are enough.
bool looksLikePickle(std::string_view beginning);

} // namespace memscape
