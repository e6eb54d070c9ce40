// SPDX-License-Identifier: Apache-2.0
// The words of the choices of `loading`, each table once.
#pragma once

#include "core/experiment/schema.h"
#include "core/experiments/loading/loading.h"

namespace memscape {

inline constexpr const char *hostMedium = "host", *pageCacheMedium = "page-cache";
/// This machine's disk, its page cache, and those of shippedMedia().
std::vector<ChoiceValue> loadingMedia();
const ChoiceTable<LoadingMethod>& loadingMethods();
const ChoiceTable<LoadingTarget>& loadingTargets();
const ChoiceTable<LoadingCopies>& loadingCopies();
Schema loadingSchema();

} // namespace memscape
