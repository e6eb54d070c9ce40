// SPDX-License-Identifier: Apache-2.0
#include "core/device/recorded_kernels.h"

#include "core/device/device_unknown.h"

#include <nlohmann/json.hpp>

namespace memscape {

namespace {

constexpr double mostVersions = 99, mostKernels = 64;
constexpr const char* kernelsMember = "kernels";

} // namespace

void checkKernels(const Fields& fields)
{
    fields.eachMember(kernelsMember, std::size_t(mostKernels), [](const std::string&, const Fields& inner) {
        inner.integer("version", {mostVersions}, 0);
        inner.requiredText("source");
    });
}

int recordedVersion(const Device& device, const std::string& kernel)
{
    const Json all = unknownMember(device.extra, kernelsMember);
    return all.contains(kernel) ? all.at(kernel).value("version", 0) : 0;
}

} // namespace memscape
