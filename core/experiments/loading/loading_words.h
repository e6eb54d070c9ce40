// SPDX-License-Identifier: Apache-2.0
// The words of the choices of `loading`, each table once.
#pragma once

#include "core/experiment/schema.h"
#include "core/experiments/loading/loading.h"

namespace memscape {

const ChoiceTable<LoadingMedium>& loadingMedia();
const ChoiceTable<LoadingMethod>& loadingMethods();
const ChoiceTable<LoadingTarget>& loadingTargets();
const ChoiceTable<LoadingCopies>& loadingCopies();
Schema loadingSchema();

} // namespace memscape
