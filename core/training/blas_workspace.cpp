// SPDX-License-Identifier: Apache-2.0
#include "core/training/blas_workspace.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace memscape {

std::int64_t blasWorkspaceBytes(const Device& device)
{
    constexpr std::int64_t kibibyte = 1024;
    constexpr std::int64_t large = 8 * 4096 * kibibyte;
    if (device.kind == DeviceKind::Host || device.vendor == "Apple")
        return 0;
    if (device.vendor == "AMD") {
        const bool isLatest = device.architecture == "CDNA 3" || device.architecture == "CDNA 4";
        return isLatest ? 4 * large : large;
    }
    static constexpr std::array<std::string_view, 3> withLarge{"9.0", "10.0", "12.0"};
    const bool isLarge = std::find(withLarge.begin(), withLarge.end(), device.computeCapability) != withLarge.end();
    return isLarge ? large : (2 * 4096 + 8 * 16) * kibibyte;
}

} // namespace memscape
