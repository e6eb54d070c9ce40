// SPDX-License-Identifier: Apache-2.0
// What a report begins with: of every record what was asked, what came out, how far the prediction is
// from the measurement and how good the measurement is. The terminal, Markdown and HTML print it.
#pragma once

#include "core/experiment/record.h"

#include <string>

namespace memscape {

struct RecordOverview
{
    std::string title;       ///< "Access patterns · NVIDIA H200 SXM"
    std::string question;    ///< empty for an experiment this program does not know
    std::string verdict;     ///< "latency: predicted 12.8 ns, measured 13.1 ns"
    std::string medianError; ///< of the curve that the page is about; "not measured"
    std::string grade;       ///< "grade B: the clock moved"; "–"
    std::string claims;      ///< "3 of 7 textbook claims hold here"; empty without any
};

RecordOverview overviewOf(const Record& record);

/// The curve that the page is about, its predicted and measured side; null where there is none.
struct HeadlineCurve
{
    const Series* predicted = nullptr;
    const Series* measured = nullptr;
};
HeadlineCurve headlineCurve(const Record& record);

} // namespace memscape
