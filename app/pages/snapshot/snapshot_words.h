// SPDX-License-Identifier: GPL-3.0-or-later
// A snapshot in words, as the views, the hints and the screen reader say them.
#pragma once

#include "core/snapshot/snapshot_device.h"

#include <QString>

namespace memscape {

/// "14.3 MB", as files are counted.
QString fileSizeText(std::uint64_t bytes);
/// "2,184,331".
QString eventsText(std::size_t count);
/// "predicted" of a step that never ran; "PyTorch 2.11" of a run file; "PyTorch 2.1 or newer" where the keys of a
/// snapshot tell no more.
QString torchText(const Snapshot& snapshot);
/// "activations", as the legend of Memory budget says it.
QString categoryName(Category category);

/// A line: what, how large, how long it lives: "layers.3.mlp, aten::mm: 24 MiB of activations, …".
QString lifetimeText(const SnapshotDevice& device, LifetimeId lifetime, ByteStyle bytes);
/// A name of few words for a label in a band: module or operator or line; empty where nothing is known.
QString lifetimeName(const SnapshotDevice& device, LifetimeId lifetime);
/// The lines of a stack that name a file outside of the interpreter, innermost first; at most so many.
QString stackText(const Snapshot& snapshot, StackId stack, int most);
/// "event 1,204 of 5,000, step 3, backward".
QString momentText(const SnapshotDevice& device, std::size_t moment);
/// Moments [first, last] as people say them: "the whole trace", "step 3", "events 1,204 to 2,408".
QString rangeText(const SnapshotDevice& device, const EventRange& range);

} // namespace memscape
