// SPDX-License-Identifier: GPL-3.0-or-later
// What a snapshot tells of the training plan that made it, as parameters of Memory budget: the optimizer and its
// implementation by the frames of its step, autocast and checkpointing by theirs, the model by the bytes of its
// weights, among those of the family whose code the stacks name. What the snapshot does not tell stays as it is: batch
// and sequence leave no trace of their own.
#pragma once

#include "core/snapshot/snapshot_device.h"

#include <string>
#include <vector>

namespace memscape {

struct PlanGuess
{
    std::string key, value; ///< of the experiment training-memory
    std::string why;        ///< "weights of 474.7 MiB at 4 B each: 124.4 M parameters, as gpt2 has"
};

/// Looks into catalogue models: some tenths of a second.
std::vector<PlanGuess> guessPlan(const SnapshotDevice& device);

/// The same from what was looked up: for tests. `weights` in bytes; `counts`: parameters of known models by name.
struct PlanClues
{
    std::vector<std::string> frames; ///< "file:function" of all frames
    std::int64_t weights = 0;
    std::vector<std::pair<std::string, double>> counts;
};
std::vector<PlanGuess> guessFrom(const PlanClues& clues);

} // namespace memscape
