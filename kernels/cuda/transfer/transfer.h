// SPDX-License-Identifier: Apache-2.0
// The kernel of `transfer` as a plain call; see transfer.cu. C++17: nvcc reads this file too.
#pragma once

#include "kernels/cuda/kernels.h"

namespace memscape::cuda {

constexpr int transferVersions = 2;

/// x ← x/2 + 1/4, `rounds` times for each of `count` floats; both pointers at a multiple of 16 bytes.
struct TransferWorkLaunch
{
    int version = transferVersions;
    const float* from = nullptr;
    float* to = nullptr; ///< where results go; null: nowhere
    std::uint64_t count = 0;
    unsigned rounds = 0;
    float* sum = nullptr; ///< results are added to it
};
/// cudaErrorInvalidValue for a version that does not exist.
cudaError_t launchTransferWork(const TransferWorkLaunch& launch, int multiprocessors, cudaStream_t stream);
KernelCheck checkTransferWork(int version, bool isStored, int multiprocessors);

} // namespace memscape::cuda
