// SPDX-License-Identifier: Apache-2.0
// What the checks of the kernel files share: buffers that free themselves, the first error of a row
// of CUDA calls, and the verdict. Integer words are compared exactly. A kernel that does not end is an
// error too (watchdog.h): what it works on is left alone.
#pragma once

#include "kernels/cuda/common/watchdog.h"
#include "kernels/cuda/kernels.h"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

namespace memscape::cuda {

inline const char* operationName(Operation operation)
{
    switch (operation) {
    case Operation::Read: return "read";
    case Operation::Write: return "write";
    case Operation::Copy: return "copy";
    case Operation::Triad: return "triad";
    }
    return "";
}

/// Device buffers of one check. After a first error every further call does nothing.
class Scratch
{
public:
    Scratch() = default;
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    ~Scratch()
    {
        wait();
        for (void* buffer : m_buffers) {
            if (!isHung())
                cudaFree(buffer);
        }
    }

    template <typename T> T* upload(const std::vector<T>& values)
    {
        void* buffer = nullptr;
        wait();
        if (ok())
            note(cudaMalloc(&buffer, values.size() * sizeof(T)));
        if (buffer != nullptr)
            m_buffers.push_back(buffer);
        if (ok())
            note(cudaMemcpy(buffer, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
        return static_cast<T*>(buffer);
    }

    template <typename T> void download(std::vector<T>& values, const T* buffer)
    {
        wait();
        if (ok())
            note(cudaMemcpy(values.data(), buffer, values.size() * sizeof(T), cudaMemcpyDeviceToHost));
    }

    void note(cudaError_t error)
    {
        if (ok())
            m_error = error;
    }
    bool ok() const { return m_error == cudaSuccess; }
    cudaError_t error() const { return m_error; }

private:
    /// For the kernels of the check, which run on the default stream.
    void wait() { note(waitFor(cudaStream_t(nullptr))); }

    std::vector<void*> m_buffers;
    cudaError_t m_error = cudaSuccess;
};

inline void verdict(KernelCheck& check, cudaError_t error, std::uint64_t wrong, std::uint64_t first,
                    std::uint64_t compared)
{
    if (error != cudaSuccess)
        cudaGetLastError(); // else CUDA reports it again at the next launch
    check.error = error;
    check.passed = error == cudaSuccess && wrong == 0;
    const auto n = static_cast<unsigned long long>(compared);
    if (error != cudaSuccess)
        std::snprintf(check.detail, sizeof check.detail, "%s", cudaGetErrorName(error));
    else if (wrong == 0)
        std::snprintf(check.detail, sizeof check.detail, "equal over %llu", n);
    else
        std::snprintf(check.detail, sizeof check.detail, "%llu of %llu differ, first at %llu",
                      static_cast<unsigned long long>(wrong), n, static_cast<unsigned long long>(first));
}

/// The number of elements that differ from the reference by more than rounding, and the first.
struct Mismatches
{
    std::uint64_t wrong = 0, first = 0, compared = 0;
    void compare(double found, double expected, double tolerance)
    {
        if (!(std::fabs(found - expected) <= tolerance) && wrong++ == 0)
            first = compared;
        ++compared;
    }
};

template <typename Word>
void compareWords(KernelCheck& check, cudaError_t error, const std::vector<Word>& found,
                  const std::vector<Word>& expected)
{
    std::uint64_t wrong = 0, first = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
        if (std::memcmp(&found[i], &expected[i], sizeof(Word)) != 0 && wrong++ == 0)
            first = i;
    }
    verdict(check, error, wrong, first, expected.size());
}

} // namespace memscape::cuda
