// SPDX-License-Identifier: Apache-2.0
// OpenBLAS, opened at run time. A run without products never loads its 40 MB, and a machine
// that has none still measures, with our own product. We use one of its threads per call: the team
// of pinned threads cuts a product into slabs, as it does for every other measurement, so that the
// processors are the ones that the record names and Stop is heard between slabs.
#pragma once

#include "kernels/host/common/product.h"

#include <optional>

namespace memscape::host {

/// The system's OpenBLAS when there is one that can be called from several threads at once
/// (Debian's libopenblas0-pthread).
std::optional<ProductKernel> openBlas();

} // namespace memscape::host
