// SPDX-License-Identifier: Apache-2.0
// Which kernels stand under the roof, and what their operations and bytes are:
//   triad       2 per 24 B of doubles (a = b + s c), in half of each cache and in 8 × the last
//   stride      one per element that is read, over the bytes that move
//   products    2 m n k, every matrix once
//   chain       the MLP chain of `checkpoint`, everything kept: its products, and every array at each
//               use
//   attention   as its own experiment counts them
#include "core/experiments/roofline/roofline.h"

#include "core/base/text.h"
#include "core/checkpoint/mlp_chain.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr MlpShape chainShape{8, 1024, 512};

std::string whole(double value)
{
    return fmt::format("{:.0f}", value);
}

void addStreams(const Device& device, std::vector<RooflineKernel>& kernels)
{
    double last = 0;
    for (const MemoryLevel& level : device.levels) {
        const bool isCache = level.kind == LevelKind::Cache && level.capacity.valueOr(0) > 0;
        if (isCache)
            last = std::max(last, level.capacity.value);
        if (!isCache && level.kind != LevelKind::Dram)
            continue;
        const double bytes =
            isCache ? level.capacity.value * level.instances / 2 : std::clamp(8 * last, 0x1p26, 0x1p30);
        std::string id = lowered(level.id);
        std::replace(id.begin(), id.end(), ' ', '_');
        kernels.push_back({"triad_" + id,
                           "triad in " + level.id,
                           "hierarchy",
                           {"operation=triad", "working_set=" + whole(std::max(bytes, 4096.0))},
                           "working_set",
                           {},
                           Format::Fp32,
                           level.id,
                           "2 per 24 B of doubles"});
    }
}

void addProducts(const Device& device, std::vector<RooflineKernel>& kernels)
{
    const std::vector<std::string> sizes =
        device.isGpu() ? std::vector<std::string>{"8192", "1024"} : std::vector<std::string>{"1024"};
    for (const Format format : {Format::Fp32, Format::Bf16, Format::Fp16, Format::Int8}) {
        if (!productRate(device, format))
            continue;
        const NumberFormat& numbers = numberFormat(format);
        std::string id(numbers.key);
        for (const std::string& size : sizes)
            kernels.push_back({"gemm_" + id + "_" + size,
                               fmt::format("{} product {}³", numbers.label, size),
                               "precision",
                               {"format=" + id, "m=" + size},
                               "m",
                               {},
                               format,
                               {},
                               "2 m n k"});
        if (format == Format::Fp32 || format == Format::Bf16)
            kernels.push_back({"gemm_" + id + "_16",
                               fmt::format("{} product of 16 rows", numbers.label),
                               "precision",
                               {"format=" + id, "m=16", "n=4096", "k=4096"},
                               "m",
                               {},
                               format,
                               {},
                               "2 m n k"});
    }
}

double figureOr(const Figures& figures, const std::string& key, double otherwise)
{
    const Figure* figure = findFigure(figures, key);
    return figure && figure->isNumber() ? figure->number() : otherwise;
}

RooflinePoint chainPoint(const Figures& figures)
{
    const MlpWork forward = mlpForwardWork(chainShape, true);
    const MlpWork backward = mlpBackwardWork(chainShape, MlpSave::All);
    const double length = double(chainShape.length);
    return {length * (forward.flops + backward.flops),
            length * (forward.bytes + backward.bytes) + mlpLossWork(chainShape).bytes,
            figureOr(figures, "makespan", 0)};
}

} // namespace

std::vector<RooflineKernel> rooflineKernels(const Device& device)
{
    std::vector<RooflineKernel> kernels;
    addStreams(device, kernels);
    for (const std::string stride : {"1", "16"})
        kernels.push_back({"stride_" + stride,
                           "reading with stride " + stride,
                           "stride",
                           {"pattern=strided", "stride=" + stride, "element=float32"},
                           "stride",
                           {},
                           Format::Fp32,
                           {},
                           "one per element"});
    addProducts(device, kernels);
    kernels.push_back({"chain",
                       "MLP chain, a step",
                       "checkpoint",
                       {"chain=" + mlpText(chainShape), "batch=" + std::to_string(chainShape.batch), "strategy=none"},
                       "slots",
                       {},
                       Format::Fp32,
                       {},
                       "2 per multiply-add of its products"});
    if (findExperiment("attention")) {
        for (const char* kind : {"standard", "flash"}) {
            // A host reads and multiplies floats; tensor cores take halves.
            const char* dtype = device.isGpu() ? "bfloat16" : "float32";
            kernels.push_back({std::string("attention_") + kind,
                               std::string(kind) + " attention",
                               "attention",
                               {std::string("dtype=") + dtype, std::string("implementation=") + kind,
                                device.isGpu() ? "sequence=8192" : "sequence=1024", "pass=forward"},
                               "sequence",
                               std::string(kind) + "_",
                               device.isGpu() ? Format::Bf16 : Format::Fp32,
                               {},
                               "4 B H N² d of its products"});
        }
    }
    return kernels;
}

Result<Parameters> rooflineParameters(const RooflineKernel& kernel)
{
    MEMSCAPE_TRY(experiment, findExperiment(kernel.experiment));
    MEMSCAPE_TRY(parameters, resolve(experiment->schema(), kernel.assignments));
    for (const auto& [key, value] : parameters.values()) {
        if (key == kernel.sweepKey) {
            parameters.setSweep(Sweep{key, {value}});
            break;
        }
    }
    return parameters;
}

std::optional<RooflinePoint> rooflinePoint(const RooflineKernel& kernel, const Figures& figures)
{
    RooflinePoint point;
    if (kernel.experiment == "hierarchy") {
        // A second of it.
        point = {figureOr(figures, "bandwidth", 0) * 2 / 24, figureOr(figures, "bandwidth", 0), 1};
    } else if (kernel.experiment == "stride") {
        const double seconds = figureOr(figures, "time", 0);
        point = {figureOr(figures, "useful_bandwidth", 0) * seconds / 4,
                 figureOr(figures, "moved_bandwidth", 0) * seconds, seconds};
    } else if (kernel.experiment == "checkpoint") {
        point = chainPoint(figures);
    } else if (kernel.experiment == "attention") {
        point = {figureOr(figures, kernel.prefix + "flops", 0), figureOr(figures, kernel.prefix + "hbm_bytes", 0),
                 figureOr(figures, kernel.prefix + "time", 0)};
    } else {
        point = {figureOr(figures, "flops", 0), figureOr(figures, "bytes", 0), figureOr(figures, "time", 0)};
    }
    const bool isWhole = point.flops > 0 && point.bytes > 0 && point.seconds > 0;
    return isWhole && std::isfinite(point.flops * point.bytes * point.seconds) ? std::optional(point) : std::nullopt;
}

} // namespace memscape
