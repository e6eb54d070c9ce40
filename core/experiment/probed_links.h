// SPDX-License-Identifier: Apache-2.0
// Links as a run found them. A machine has several states: a hypervisor moves two cores near to each other and apart,
// others load it, and a calibration knows the state of its own minute. So a run that moves bytes within a host probes
// its links again, in turn with its points and at sizes of the calibration's: the model is asked with what these probes
// say, and drawn beside the prediction, which stays what it was. No sample of a point is among the probes.
//
//     line   α, β (and γ) fitted to the median of each size (core/timing/link_time.h)
//     pace   of work beside the links, products on one core: the median of (sample / what is predicted); all operations
//            and the ways of their operands from far take so many times as long
//     band   the model with links and work as much quicker or slower as the quantiles 0.1 and 0.9 of (sample / line),
//            to which every size contributes alike: 8 of 10 samples lie in it
//
// Left out: links of GPUs, which do not move; changes that last shorter than a visit.
#pragma once

#include "core/experiment/experiment.h"
#include "core/timing/link_time.h"

#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace memscape {

/// Samples of one link by size.
struct LinkSamples
{
    LinkProbes link;                               ///< whose points are not used
    std::map<double, std::vector<double>> seconds; ///< by B
    int disturbed = 0;                             ///< probes that are not among them: others used the machine
};

/// Samples of work that the model has a time for.
struct WorkSamples
{
    std::string id, label;
    double predicted = nan; ///< s, by the device as it was calibrated
    std::vector<double> seconds;
};

/// What a run probed in turn with its points.
struct RunProbes
{
    std::vector<LinkSamples> links;
    std::vector<WorkSamples> work;
};

/// A link or a kind of work as it was fitted.
struct ProbedLink
{
    std::string id, label;
    double latency = nan;     ///< s, α
    double bandwidth = nan;   ///< B/s, β of data in the last cache
    double low = 1, high = 1; ///< the band over the line
    int sizes = 0;
    double pace = nan; ///< of work: its time over the predicted one; it has no α and β

    bool isWork() const { return !std::isnan(pace); }
    /// "pipe, α 30 µs, β 2 GB/s", "products at 110 % of their time".
    std::string text() const;
};

/// What is said with them.
struct ProbedRun
{
    std::vector<ProbedLink> links;
    Outcome predicted; ///< the measured curves that depend on these links, with their band
};

/// How far the measured points are from it, on its first curve.
struct ProbedError
{
    double median = nan; ///< of |predicted / measured − 1|
    int points = 0;
    int within = 0; ///< the band
};

/// Adds "probed" to the detail of `measured`: {"links": [{"id", "label", "pace", "latency", "bandwidth", "low", "high",
/// "sizes"}…], "predicted": outcome}; or {"none": reason} where the sizes determine no link, others used the machine
/// (they were seen, or the samples of most sizes differ fourfold), or no measured curve depends on them. Nothing
/// without samples.
void addProbed(Measurement& measured, const Experiment& experiment, const Device& device, const Parameters& parameters,
               const RunProbes& probes);
/// Reads it again; none where there is none, or where it is not what addProbed() writes.
std::optional<ProbedRun> probedRun(const Measurement& measured);

ProbedError probedError(const ProbedRun& run, const Measurement& measured);
/// The links, or the processor (probed_host.h), and how far the model with them is from what was measured, or why they
/// say nothing: sentences. Empty where none were probed.
std::string probedText(const std::optional<Measurement>& measured);

} // namespace memscape
