// SPDX-License-Identifier: Apache-2.0
// What a trace of memory looks like in a record's `detail`: parts of the capacity bar, the timeline by
// category with its phases, who is live at a moment, the tree of modules, where memory runs out. Pages,
// reports and scripts read these; all bytes are in B.
#pragma once

#include "core/base/json.h"
#include "core/device/device.h"
#include "core/experiment/outcome.h"
#include "core/network/model.h"
#include "core/trace/allocator_replay.h"
#include "core/trace/peak.h"

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <vector>

namespace memscape {

/// An empty object with room for `members`. One that grows copies all that it holds, down to the last leaf
/// (keys are const, so its pairs cannot be moved): for objects that are large or many.
Json objectWithRoom(std::size_t members);

/// "optimizer_state": a category's key in documents; its label is categoryText().
std::string categoryKey(Category category);

/// What the terms of a peak mean that are its parts: those that together are the peak.
inline constexpr const char* aliveAtThePeak = "alive at the peak";

/// The memory that a program can have on this device, B; nothing when the device does not say.
std::optional<std::int64_t> capacityOf(const Device& device);

/// {"bytes","available","label"}: all of it, and without the device's context; and "shared": true where the CPU's
/// programs and the system use these bytes too; null when unknown.
Json capacityJson(const Device& device, std::int64_t context);

/// Predicted peaks of whole steps differ by up to 3 % from what PyTorch reserves (resources/help/accuracy.md):
/// with less room than that left, what is predicted to fit may not.
inline constexpr double fitMargin = 0.03;

/// `fit` of the detail: "fits", "tight" when less than fitMargin × needed is left, "does not fit".
/// `needed`: B of the device total.
std::string_view fitText(bool fits, std::int64_t needed, std::optional<std::int64_t> capacity);

/// {"name","title","family","architecture","layers","source","assumptions","caution"} of a model.
Json modelJson(const ModelDescription& model);

/// [{"key","label","bytes"}…] at the moment, then what the allocator holds beyond it and the context:
/// they add up to the device total.
Json partsJson(const Moment& moment, std::int64_t reserved, std::int64_t context);

/// {"event","phase","module","name","allocated","live":[…]}: who is alive, largest groups first, at
/// most 60 of them and one for the rest.
Json momentJson(const Trace& trace, const Moment& moment);

/// Adds to a record's detail:
///   "peak"         the step's highest moment, as momentJson() says it
///   "phase_peaks"  the highest moment of each phase that allocates, in the order of the phases
///   "tree"         bytes alive at the peak by module path, for a treemap: {"name","bytes","children":[…]}; leaves are
///                  tensors of the same name. Of numbered modules inside numbered ones, the experts of a layer, 16
///                  stand for themselves and the others are summed as "16 and on".
void addPeaks(Json& detail, const Trace& trace, const Moment& peak);

inline constexpr std::size_t timelinePoints = 600; ///< moments of a record's timeline, at most

/// {"event":[…],"categories":[…],"phases":[…],"peak","capacity","out_of_memory"} at the moments of `line`, which is
/// timelineOf(trace, timelinePoints).
Json timelineJson(const Trace& trace, const std::vector<Moment>& line, const Moment& peak,
                  std::optional<std::int64_t> available, const std::optional<OutOfMemory>& outOfMemory);

/// The same curve as a series: bytes allocated over the events of the step.
Series timelineSeries(const std::vector<Moment>& line);

/// {"event","phase","module","name","bytes","explanation"}.
Json outOfMemoryJson(const Trace& trace, const OutOfMemory& refused);

} // namespace memscape
