// SPDX-License-Identifier: Apache-2.0
// `roofline` as its callers see it: the kernels that stand under a device's ceilings, how a point is
// read from another experiment's figures, and the ceilings.
#pragma once

#include "core/experiment/experiment.h"
#include "core/timing/product_rates.h"

#include <optional>

namespace memscape {

/// A kernel of another experiment at one set of parameters.
struct RooflineKernel
{
    std::string id;                       ///< "triad_l2": its rate is the figure "triad_l2_rate"
    std::string label;                    ///< "triad in L2"
    std::string experiment;               ///< "hierarchy"
    std::vector<std::string> assignments; ///< "operation=triad", …
    std::string sweepKey;                 ///< swept over its one value, so that a measurement takes one point
    std::string prefix;                   ///< of its figures: "flash_"
    Format format = Format::Fp32;         ///< whose roof it stands under
    std::string level;                    ///< the memory it reads: "L2"; empty: DRAM
    std::string counts;                   ///< what an operation is
};

struct RooflinePoint
{
    double flops = 0, bytes = 0, seconds = 0;
    double intensity() const { return flops / bytes; }
    double rate() const { return flops / seconds; }
};

/// Those that this device can be predicted for: streams in every level, strides, products, a
/// checkpointed chain, attention where the program has it.
std::vector<RooflineKernel> rooflineKernels(const Device& device);
/// The kernel's own experiment's parameters, its sweep being its one value.
Result<Parameters> rooflineParameters(const RooflineKernel& kernel);
/// From predicted or measured figures of that experiment; nothing where they lack time or bytes.
std::optional<RooflinePoint> rooflinePoint(const RooflineKernel& kernel, const Figures& figures);

/// One sloping roof: a level of memory.
struct RooflineLevel
{
    std::string id, label;
    double bandwidth = 0; ///< B/s: of reads; of copies from a GPU's DRAM
};
std::vector<RooflineLevel> rooflineLevels(const Device& device);

/// "compute-bound", or "memory-bound (L2)": on which side of the ridge the intensity lies.
std::string rooflineBound(const Device& device, Format format, const std::string& level, double intensity);
/// min(dense rate, intensity × bandwidth of the level); NaN where one is not known.
double rooflineRoof(const Device& device, Format format, const std::string& level, double intensity);

/// The figure "…_rate" of a kernel's point, which says what bounds it.
void addRooflineFigures(Figures& figures, const Device& device, const RooflineKernel& kernel,
                        const RooflinePoint& point);
/// One entry of `detail.points`.
Json rooflineJson(const Device& device, const RooflineKernel& kernel, const RooflinePoint& point);

} // namespace memscape
