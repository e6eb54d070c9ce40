// SPDX-License-Identifier: Apache-2.0
// Published figures beside predictions of their settings: the error of each row, and of each family the mean and median
// error, its sign, and the worst row. Steps are told apart by device, since a device's rates are what they test.
//
// Left out: the spread of the published figures; most tables print one run of each setting.
#pragma once

#include "core/published/published_table.h"

namespace memscape {

struct PublishedOutcome
{
    PublishedRow row;
    double predicted = nan;       ///< in the figure's unit
    double low = nan, high = nan; ///< the prediction's band; NaN without one
    std::string why;              ///< why there is no prediction; empty: there is
    std::string deviceName;

    bool isPredicted() const { return why.empty(); }
    double error() const { return predicted / row.value - 1; } ///< signed, relative
    bool hasBand() const { return high >= low; }
    bool isInBand() const { return row.value >= low && row.value <= high; }
    std::string group() const; ///< "LoRA", "step time, NVIDIA H100 SXM"
};

/// Each row predicted, on all cores, in the rows' order. Errors: published.figure where a row names no figure of its
/// experiment, device.* where it names no device; what the model refuses is said in `why`.
Result<std::vector<PublishedOutcome>> predictPublished(std::vector<PublishedRow> rows);

struct FamilyError
{
    std::string group;
    std::size_t rows = 0;            ///< predicted ones
    std::size_t refused = 0;         ///< those that the program cannot express
    double mean = nan, median = nan; ///< of |error|
    double bias = nan;               ///< median of the signed error
    std::size_t banded = 0;          ///< rows whose prediction has a band; bytes of weights are a count
    std::size_t inBand = 0;          ///< published figures within it
    const PublishedOutcome* worst = nullptr;
};

/// In the order of publishedFamilies(), devices by name; `outcomes` must outlive it.
std::vector<FamilyError> familyErrors(const std::vector<PublishedOutcome>& outcomes);

} // namespace memscape
