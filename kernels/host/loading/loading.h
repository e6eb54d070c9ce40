// SPDX-License-Identifier: Apache-2.0
// `loading` for its calibration and for a GPU's measurement; see loading.cpp.
#pragma once

#include "kernels/host/link_prober.h"
#include "kernels/host/loading/loading_run.h"
#include "kernels/measure/statistics.h"

#include <map>

namespace memscape::host {

/// What this machine can be asked. Errors: run.skipped for a medium that is not its own, or an index of several files.
Result<void> checkMeasurable(const LoadingCase& asked);

/// The file of a run: the user's own, or one that is written and grows with what is asked of it.
class LoadingFiles
{
public:
    Result<const LoadingFile*> fileFor(HostSession& session, const LoadingCase& asked);

private:
    std::optional<LoadingFile> m_file;
    std::string m_path;
};

/// A sample costs more than its seconds (the file is made cold, memory is mapped): few of them, and no least time.
/// `once`: s of the first.
StoppingOptions loadingOptions(StoppingOptions options, double once);
/// Seconds of the lanes alone and of all: "read_time", "convert_time", "copy_time", "time".
Result<std::map<std::string, std::vector<double>>> sampleLoading(HostSession& session, LoadingRun& run,
                                                                 const StoppingOptions& options);
/// The numbers of samples and of what was seen beside them; `hostMemory` in B.
LoadingNumbers measuredLoading(const std::map<std::string, Summary>& samples, const LoadingSeen& seen,
                               double hostMemory);

/// Seconds of reading the first `bytes` of a file, nothing else; `seen` is set to what was seen beside them. Errors:
/// those of LoadingRun.
Result<std::vector<double>> measureReading(HostSession& session, const LoadingFile& file, LoadingMethod method,
                                           bool isWarm, std::uint64_t bytes, const StoppingOptions& options,
                                           LoadingSeen* seen = nullptr);
inline constexpr double calibratedFile = 0x1p27; ///< B
/// How reading by that method is probed, of files as large as `file` gives them.
LinkPlan readingPlan(HostSession& session, LoadingMethod method, bool isWarm,
                     std::function<Result<const LoadingFile*>()> file);

/// Seconds of converting so many stored bytes in chunks, from buffers that they share.
Result<std::vector<double>> measureConverting(HostSession& session, LoadingForm form, LoadingTarget target,
                                              std::uint64_t bytes, const StoppingOptions& options);

} // namespace memscape::host
