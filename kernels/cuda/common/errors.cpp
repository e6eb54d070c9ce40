// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/common/errors.h"

#include "kernels/cuda/common/watchdog.h"

#include <fmt/format.h>

namespace memscape::cuda {

namespace {

// Numbers of errors that the headers of CUDA 12.0 do not all name.
constexpr int contained = 226, tensorMemoryLeak = 721, mpsClientTerminated = 810;

std::string versionText(int version)
{
    return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

bool isGone(cudaError_t error)
{
    switch (error) {
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice:
    case cudaErrorDevicesUnavailable:
    case cudaErrorInsufficientDriver:
    case cudaErrorInitializationError:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorCompatNotSupportedOnDevice:
    case cudaErrorSystemNotReady: return true;
    default: return false;
    }
}

} // namespace

bool isSticky(cudaError_t error)
{
    const int number = error;
    if (number == contained || number == tensorMemoryLeak || number == mpsClientTerminated)
        return true;
    switch (error) {
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorAssert:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorExternalDevice:
    case cudaErrorUnknown: return true;
    default: return false;
    }
}

namespace {

Error hungFailure(const std::string& doing)
{
    return {"run.hung",
            fmt::format("the GPU had not finished after {} s while {}", waitingDeadline(), hungWhile(doing)),
            {},
            "the kernel does not end, or is only slow: MEMSCAPE_GPU_DEADLINE=120 waits for 120 s; "
            "this process cannot use the GPU any more, the worker is started again for the next run"};
}

} // namespace

void forgetCudaError()
{
    cudaGetLastError();
}

bool succeeded(cudaError_t error)
{
    if (error != cudaSuccess)
        forgetCudaError();
    return error == cudaSuccess;
}

Error cudaFailure(cudaError_t error, const std::string& doing)
{
    if (isHung())
        return hungFailure(doing);
    forgetCudaError();
    const std::string what = fmt::format("{} while {} ({})", cudaGetErrorName(error), doing, cudaGetErrorString(error));
    if (error == cudaErrorMemoryAllocation)
        return {"run.memory", what, {}, "choose a smaller array, or end what else uses the GPU's memory"};
    if (isGone(error))
        return {"device.missing",
                what,
                {},
                "the GPU is not available any more: see nvidia-smi, end what holds it exclusively, "
                "or start Memscape again"};
    if (isSticky(error))
        return {"run.sticky",
                what,
                {},
                "the GPU context of this process is lost; the worker is started again for the next "
                "run"};
    if (error == cudaErrorNoKernelImageForDevice)
        return {"run.failed",
                what,
                {},
                "this GPU is older or newer than the module was built for: build with "
                "-DMEMSCAPE_CUDA_ARCHITECTURES=native"};
    return {"run.failed", what, {}, "run memscape-cli selftest on this device"};
}

Result<void> passedCheck(const KernelCheck& check)
{
    MEMSCAPE_CHECK(cudaResult(check.error, "checking " + std::string(check.kernel)));
    if (!check.passed)
        return fail("check.failed", std::string(check.kernel) + ": " + check.detail,
                    "a kernel that is wrong is not timed; run memscape-cli selftest");
    return {};
}

std::string missingReason(cudaError_t error)
{
    forgetCudaError();
    int driver = 0, runtime = 0;
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    switch (error) {
    case cudaErrorInsufficientDriver:
        if (driver == 0)
            return "no NVIDIA driver on this machine (libcuda.so.1 was not found); install the "
                   "driver, "
                   "or use the device cpu";
        return fmt::format("the NVIDIA driver supports CUDA {}, the module needs {}: update the driver, "
                           "or build Memscape with an older toolkit",
                           versionText(driver), versionText(runtime));
    case cudaErrorNoDevice:
        return "the NVIDIA driver sees no GPU: check nvidia-smi and CUDA_VISIBLE_DEVICES, or use "
               "the "
               "device cpu";
    case cudaErrorDevicesUnavailable:
        return "all GPUs are busy or prohibited (exclusive mode): see nvidia-smi, end what holds "
               "them";
    case cudaErrorSystemDriverMismatch:
        return "the NVIDIA driver and its libraries have different versions: reboot after the "
               "update";
    default:
        return fmt::format("CUDA cannot start: {} ({}); see nvidia-smi", cudaGetErrorName(error),
                           cudaGetErrorString(error));
    }
}

} // namespace memscape::cuda
