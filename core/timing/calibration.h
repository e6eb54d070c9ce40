// SPDX-License-Identifier: Apache-2.0
// From probes of a host to a calibrated device: level latencies and bandwidths, where the knees lie,
// what translation misses cost, how fast lines come at each stride, how fast a core issues.
//
// Every value is a robust statistic of the probes that lie well inside a level's region, never a
// figure for one point that the model is later compared on at the same point; knees are a least
// squares fit in log latency. What the probes do not determine keeps the described value.
//
// Left out: contention of other tenants (the probes' grade says it), temperature, NUMA.
#pragma once

#include "core/device/device.h"
#include "core/timing/host_operations.h"
#include "core/timing/link_time.h"
#include "core/timing/page_cache.h"

#include <map>
#include <string>
#include <vector>

namespace memscape {

/// One probe: x (a working set in bytes, unless said otherwise), its value, and the measured band.
struct Probe
{
    double x = 0;
    double value = 0;
    double low = 0;
    double high = 0;
};

struct BandwidthProbes
{
    Operation operation = Operation::Read;
    int threads = 1;
    std::vector<Probe> points; ///< x = working set of all threads together; B/s, a copy counts both
};

struct HostProbes
{
    double clockHz = 0;               ///< core clock while measuring, by a chain of dependent multiplications
    int threads = 1;                  ///< hardware threads that "all threads" means
    std::vector<Probe> latency4k;     ///< s per dependent load, random over 4 KiB pages
    std::vector<Probe> latencyHuge;   ///< the same over huge pages
    std::vector<Probe> latencyWindow; ///< random inside windows that the first TLB covers
    std::vector<BandwidthProbes> bandwidths;
    std::vector<LineRate> lineRates;            ///< from DRAM; lines of the walked array per second
    std::vector<LineRate> randomRates;          ///< strideBytes = footprint; accesses per second
    std::vector<IssueRate> issueRates;          ///< from L1
    std::vector<WalkRate> walkRates;            ///< of one core; see walk_rates.h
    std::map<std::string, double> productRates; ///< FLOP/s of large products by format, all cores
    std::vector<LinkProbes> links;              ///< kinds of `transfer`, rings, files; their `cached` is the fit's
    PageCache pageCache;                        ///< its window and its largest pieces
    std::vector<OperationProbe> operations;     ///< of a training step; empty when they were not measured
    double tileRows = 4, tileColumns = 32;      ///< of the product that they ran
    std::string grade = "D";
    std::vector<std::string> notes;
};

/// `described` with measured values in place of described ones. Errors: calibration.probes when the probes do not
/// determine a single level (empty, not finite), run.impossible (calibration_check.h).
Result<Device> fitHostCalibration(const Device& described, const HostProbes& probes);

/// `device` with the links that these probes determine, and what their pieces cost, in place of those that it had; a
/// note for each of the others.
Device withFittedLinks(Device device, const std::vector<LinkProbes>& probes);

/// The knee that explains a latency curve between two plateaus best: begin and end as fractions of
/// `capacity`, exponent 2. `near` and `far` are the plateaus' latencies.
Knee fitKnee(const std::vector<Probe>& curve, double capacity, double near, double far);

Json probesToJson(const HostProbes& probes);

} // namespace memscape
