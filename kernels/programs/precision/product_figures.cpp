// SPDX-License-Identifier: Apache-2.0
#include "kernels/programs/precision/product_figures.h"

#include "kernels/measure/timed_figures.h"

#include <limits>

namespace memscape {

Figures productFigures(const PrecisionCase& asked, const MergedSamples& samples, const std::optional<Figure>& stored)
{
    const Summary seconds = summarize(samples.at("time").merged());
    const Summary single = summarize(samples.at("fp32_time").merged());
    const double flops = asked.shape.flops();
    const double bytes = gemmBytes(numberFormat(asked.format), asked.shape);
    Figure rate = rateFigure("flop_rate", "rate", flops, seconds);
    rate.unit = Unit::FlopPerSecond;
    Figures figures{timeFigure("time", "time", seconds, false), std::move(rate)};
    Figure speedup{"speedup", "speedup", Unit::One,
                   seconds.median > 0 ? single.median / seconds.median : std::numeric_limits<double>::quiet_NaN()};
    figures.push_back(std::move(speedup));
    figures.push_back({"flops", "operations", Unit::One, flops});
    figures.push_back({"bytes", "bytes", Unit::Byte, bytes});
    figures.push_back({"intensity", "intensity (FLOP/B)", Unit::One, flops / bytes});
    if (stored)
        figures.push_back(*stored);
    return figures;
}

} // namespace memscape
