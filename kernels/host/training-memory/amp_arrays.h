// SPDX-License-Identifier: Apache-2.0
// What a training step does to the elements of its arrays, on the host. Elements of short arrays are
// widened in chunks, computed in FP32 and rounded once, as kernels of a GPU do. Work is shared out among
// the threads of the team. What each pass means is said at AmpDevice.
#pragma once

#include "kernels/host/common/threads.h"
#include "kernels/programs/training-memory/amp_device.h"

#include <functional>
#include <span>

namespace memscape::host {

/// Every element once, in chunks, widened.
void eachChunk(const AmpArray& array, const std::function<void(std::span<const float>)>& body);

void uniformArray(ThreadTeam& team, const AmpArray& array, std::uint64_t seed, float scale);
void convertArray(ThreadTeam& team, const AmpArray& from, const AmpArray& to);
void addBias(ThreadTeam& team, const AmpArray& bias, const AmpArray& sums);
void biasRelu(ThreadTeam& team, const AmpArray& bias, const AmpArray& sums, const AmpArray& to);
void reluBackward(ThreadTeam& team, const AmpArray& activation, const AmpArray& gradient, const AmpArray& to);
void sumRows(const AmpArray& gradient, const AmpArray& bias);

void logSoftmax(const AmpArray& logits, const AmpArray& logProbabilities);
double meanLoss(const AmpArray& logProbabilities, const AmpArray& labels);
void lossBackward(const AmpArray& logProbabilities, const AmpArray& labels, const AmpArray& gradient, float factor);

/// FP32 × factor; whether all are finite.
bool scaleArray(ThreadTeam& team, const AmpArray& array, float factor);
void adamArray(ThreadTeam& team, const AmpAdamStep& step, const AmpParameter& parameter);

} // namespace memscape::host
