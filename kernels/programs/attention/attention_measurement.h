// SPDX-License-Identifier: Apache-2.0
// `attention` from its parameters to measured figures, whatever machine runs it: the tasks are
// those that the prediction shows, and the figures carry its keys.
#pragma once

#include "core/experiments/attention/attention.h"
#include "kernels/measure/sweep_run.h"
#include "kernels/programs/attention/attention_device.h"

#include <map>
#include <string>
#include <vector>

namespace memscape {

/// What to run at a point: one task per implementation. Errors: those of the prediction.
Result<std::vector<AttentionTask>> attentionTasks(const Device& device, const Parameters& parameters);

/// The key of a task's samples: "standard_time", "flash_time".
std::string attentionTimeKey(const AttentionTask& task);

/// time (with its band), extra_peak, saved_for_backward, flops and rate of one implementation.
Figures attentionTaskFigures(const AttentionTask& task, const Summary& seconds, const AttentionBytes& bytes);
/// speedup, when both implementations ran.
Figures attentionComparison(const Summary& standard, const Summary& flash);

/// The shortest sequence from which flash was faster at every longer one that was measured; 0: at
/// none.
Figure attentionCrossoverFigure(const std::map<std::int64_t, double>& speedups);

/// The figures of a point, from the samples and bytes of each task that ran, by attentionTimeKey(). `speedups`, by
/// sequence, of all points so far: this one's is put in.
Figures attentionPointFigures(const std::vector<AttentionTask>& tasks, const MergedSamples& samples,
                              const std::map<std::string, AttentionBytes>& bytes,
                              std::map<std::int64_t, double>& speedups);

/// Forward (and backward) once, counted: the peak of the pass and what was saved. For the first run
/// of a device, which also meets its pages.
Result<AttentionBytes> countAttention(AttentionDevice& device, const AttentionTask& task);

} // namespace memscape
