// SPDX-License-Identifier: Apache-2.0
// The same operations as a line of PyTorch and as a line of NumPy. NumPy counts strides in bytes and
// allows negative ones, so its flip is a view where PyTorch's is a copy.
#pragma once

#include "core/access/views/view_step.h"

namespace memscape {

/// "x.transpose(0, 1).narrow(2, 1, 2)"; refused operations are left away.
std::string pytorchCode(const std::vector<ViewStep>& steps);
/// "x.swapaxes(0, 1)[:, :, 1:3]"; `base` is the tensor before the first step. as_strided refers to `x` itself, as it
/// does in PyTorch.
std::string numpyCode(const TensorView& base, const std::vector<ViewStep>& steps, std::int64_t itemBytes);
/// "(16, 48, 4)": what `.strides` says in NumPy.
std::string byteStridesText(const TensorView& view, std::int64_t itemBytes);

} // namespace memscape
