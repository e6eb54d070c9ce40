// SPDX-License-Identifier: Apache-2.0
// The raw samples that a record keeps. What is said about a point is computed from all of its samples;
// kept is a random part of them, each as likely as any other and in the order in which they were taken
// (selection sampling: Fan, Muller and Rezucha 1962, algorithm S of Knuth 3.4.2), so that the
// distribution can be looked at again and a record stays of a size that is sent, saved and opened.
//
// The seed is fixed: the same samples give the same record.
#pragma once

#include "core/base/json.h"

#include <cstddef>
#include <string>
#include <vector>

namespace memscape {

/// How many values of one set are kept when a run has so many sets: 1,000, and fewer when the sets are
/// so many that together they would pass 400,000; 32 at least.
std::size_t keptPerSet(std::size_t sets);

/// At most `limit` of the values, in their order.
std::vector<double> thinned(const std::vector<double>& values, std::size_t limit);

/// {"key", "unit": "s", "count", "values"}: `count` is of all samples, `values` are the kept ones.
Json keptSamples(const std::string& key, const std::vector<double>& seconds, std::size_t limit);

} // namespace memscape
