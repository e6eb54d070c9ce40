// SPDX-License-Identifier: Apache-2.0
// A tensor map: the 128 bytes in which the copy engine finds where a tensor lies and how large a box it
// is to bring. Only the driver knows their layout, so its cuTensorMapEncodeTiled is asked for at run
// time, by name: this program links no libcuda, and starts where there is none.
#pragma once

#include "kernels/cuda/attention/flash_hopper_tiles.h"

#include <cuda.h>
#include <cuda_runtime_api.h>

namespace memscape::cuda {

/// Boxes of 64 columns × boxRows rows of one plane, swizzled within 128 bytes; zeros beyond the last row.
/// cudaErrorNotSupported from a driver before 12.0; cudaErrorInvalidValue where the driver refuses.
cudaError_t encodeTileMap(const TileMap& map, CUtensorMap* encoded);

} // namespace memscape::cuda
