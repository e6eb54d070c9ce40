// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/describe.h"

#include "kernels/cuda/common/errors.h"

#include "core/device/catalogue.h"

#include <charconv>

#include <fmt/format.h>

namespace memscape::cuda {

namespace {

/// CUDA 13 took the clocks out of cudaDeviceProp; attributes have everything.
int attribute(int ordinal, cudaDeviceAttr which)
{
    int value = 0;
    return succeeded(cudaDeviceGetAttribute(&value, which, ordinal)) ? value : 0;
}

GpuAttributes attributesOf(int ordinal, const cudaDeviceProp& properties)
{
    GpuAttributes found;
    found.name = properties.name;
    found.major = properties.major;
    found.minor = properties.minor;
    found.multiprocessors = properties.multiProcessorCount;
    found.clockHz = 1e3 * attribute(ordinal, cudaDevAttrClockRate);
    found.memoryClockHz = 1e3 * attribute(ordinal, cudaDevAttrMemoryClockRate);
    found.memoryBusBits = attribute(ordinal, cudaDevAttrGlobalMemoryBusWidth);
    found.memoryBytes = double(properties.totalGlobalMem);
    found.l2Bytes = attribute(ordinal, cudaDevAttrL2CacheSize);
    found.sharedBytesPerUnit = attribute(ordinal, cudaDevAttrMaxSharedMemoryPerMultiprocessor);
    found.registersPerUnit = attribute(ordinal, cudaDevAttrMaxRegistersPerMultiprocessor);
    found.maxThreadsPerUnit = attribute(ordinal, cudaDevAttrMaxThreadsPerMultiProcessor);
    found.maxBlocksPerUnit = attribute(ordinal, cudaDevAttrMaxBlocksPerMultiprocessor);
    return found;
}

BackendDevice describe(int ordinal)
{
    BackendDevice device;
    device.id = fmt::format("cuda:{}", ordinal);
    cudaDeviceProp properties = {};
    if (const cudaError_t error = cudaGetDeviceProperties(&properties, ordinal); error != cudaSuccess) {
        device.name = "NVIDIA GPU";
        device.missing = missingReason(error);
        return device;
    }
    device.name = properties.name;
    device.device = withCalibration(deviceFromAttributes(attributesOf(ordinal, properties), device.id));
    if (properties.major * 10 + properties.minor < MEMSCAPE_CUDA_OLDEST)
        device.missing =
            fmt::format("compute capability {}.{} is older than this module was built for "
                        "({}.{}); build with an older CUDA toolkit",
                        properties.major, properties.minor, MEMSCAPE_CUDA_OLDEST / 10, MEMSCAPE_CUDA_OLDEST % 10);
    if (attribute(ordinal, cudaDevAttrComputeMode) == cudaComputeModeProhibited)
        device.missing = "the GPU is set to prohibit computing (nvidia-smi -c 0 allows it)";
    return device;
}

} // namespace

std::vector<BackendDevice> listDevices()
{
    int count = 0;
    const cudaError_t error = cudaGetDeviceCount(&count);
    if (error != cudaSuccess || count == 0) {
        BackendDevice none;
        none.id = "cuda:0";
        none.name = "NVIDIA GPU";
        none.missing = missingReason(error != cudaSuccess ? error : cudaErrorNoDevice);
        return {none};
    }
    std::vector<BackendDevice> devices;
    for (int ordinal = 0; ordinal < count; ++ordinal)
        devices.push_back(describe(ordinal));
    return devices;
}

Result<int> ordinalOf(const BackendDevice& device)
{
    if (!device.missing.empty())
        return fail("device.missing", device.id + ": " + device.missing);
    constexpr std::string_view prefix = "cuda:";
    int ordinal = 0;
    const std::string_view id = device.id;
    if (id.starts_with(prefix)) {
        const auto [end, error] = std::from_chars(id.data() + prefix.size(), id.data() + id.size(), ordinal);
        if (error == std::errc() && end == id.data() + id.size())
            return ordinal;
    }
    return fail("device.missing", "\"" + device.id + "\" is not a CUDA device", "name it cuda:0, cuda:1 …");
}

} // namespace memscape::cuda
