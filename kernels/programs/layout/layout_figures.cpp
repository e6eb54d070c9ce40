// SPDX-License-Identifier: Apache-2.0
#include "kernels/programs/layout/layout_figures.h"

#include "kernels/measure/timed_figures.h"

namespace memscape {

Figures sampledLayoutFigures(const LayoutCase& asked, const MergedSamples& samples)
{
    Figures figures;
    const auto summaryOf = [&samples](const char* key, double share = 1) {
        const auto found = samples.find(key);
        std::vector<double> values = found == samples.end() ? std::vector<double>() : found->second.merged();
        for (double& value : values)
            value *= share;
        return summarize(values);
    };
    const Summary view = summaryOf("view_total", 1 / double(asked.reads));
    const Summary dense = summaryOf("contiguous_time"), copy = summaryOf("copy_time");
    figures.push_back(timeFigure("view_time", "read through the view", view, false));
    figures.push_back(timeFigure("contiguous_time", "read after contiguous()", dense, false));
    if (asked.needsCopy()) {
        figures.push_back(timeFigure("copy_time", "contiguous()", copy, false));
        const double bytes = 2 * double(asked.view.elements()) * double(asked.itemBytes());
        figures.push_back(rateFigure("copy_bandwidth", "copy bandwidth", bytes, copy));
    } else {
        figures.push_back({"copy_time", "contiguous()", Unit::Second, 0.0});
    }
    figures.push_back({"pays_after", "copy pays off after (reads)", Unit::One,
                       paysAfter(view.median, dense.median, asked.needsCopy() ? copy.median : 0)});
    figures.push_back(timeFigure("view_total", "all reads, through the view", summaryOf("view_total"), false));
    figures.push_back(timeFigure("contiguous_total", "all reads, copied first", summaryOf("contiguous_total"), false));
    return figures;
}

} // namespace memscape
