// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/common/blas.h"

#include "kernels/host/common/library_symbol.h"
#include "kernels/host/common/threads.h"
#include "kernels/measure/memory.h"

#include <algorithm>
#include <cassert>
#include <limits>

#include <dlfcn.h>

namespace memscape::host {

namespace {

constexpr int rowMajor = 101, plain = 111, transposed = 112; // of the C interface to the BLAS
constexpr int withThreads = 1;                               // openblas_get_parallel(): built for pthreads

struct BlasLibrary
{
    void (*sgemm)(int order, int transA, int transB, int m, int n, int k, float alpha, const float* a, int lda,
                  const float* b, int ldb, float beta, float* c, int ldc) = nullptr;
    std::string name; ///< empty when it cannot be used
};

/// "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH NO_AFFINITY SkylakeX MAX_THREADS=128" without its
/// switches.
std::string nameOf(const std::string& config, const std::string& core)
{
    const std::size_t first = config.find(' ');
    const std::size_t second = config.find(' ', first == std::string::npos ? first : first + 1);
    return config.substr(0, second) + " " + core;
}

/// OpenBLAS takes a buffer for every thread that calls it, and retries forever where none can be had.
bool hasRoomForBuffers()
{
    constexpr std::int64_t buffer = std::int64_t{256} << 20; // 128 MiB and some, in 0.3
    const auto left = availableAddresses();
    return !left || *left > buffer * std::int64_t(physicalCores().size() + 1);
}

BlasLibrary openLibrary()
{
    BlasLibrary blas;
    if (!hasRoomForBuffers())
        return blas;
    void* library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr)
        return blas;
    void (*setThreads)(int) = nullptr;
    int (*parallel)() = nullptr;
    char* (*config)() = nullptr;
    char* (*core)() = nullptr;
    if (!findSymbol(library, blas.sgemm, "cblas_sgemm") || !findSymbol(library, setThreads, "openblas_set_num_threads")
        || !findSymbol(library, parallel, "openblas_get_parallel")
        || !findSymbol(library, config, "openblas_get_config") || !findSymbol(library, core, "openblas_get_corename")
        || parallel() != withThreads)
        return blas;
    setThreads(1);
    blas.name = nameOf(config(), core());
    return blas;
}

/// Sizes of the interface are ints.
[[maybe_unused]] bool fits(const ProductWork& work)
{
    constexpr auto most = static_cast<std::size_t>(std::numeric_limits<int>::max());
    return std::max({work.rows, work.columns, work.inner, work.aStride, work.bStride, work.cStride}) <= most;
}

} // namespace

std::optional<ProductKernel> openBlas()
{
    static const BlasLibrary blas = openLibrary();
    if (blas.name.empty())
        return std::nullopt;
    return ProductKernel{"product " + blas.name, [](const ProductWork& work, ProductScratch&) {
                             assert(fits(work)); // mlpWidthLimit and mlpBatchLimit are far below
                             blas.sgemm(rowMajor, work.aTransposed ? transposed : plain,
                                        work.bTransposed ? transposed : plain, int(work.rows), int(work.columns),
                                        int(work.inner), 1.0F, work.a, int(work.aStride), work.b, int(work.bStride),
                                        work.adds ? 1.0F : 0.0F, work.c, int(work.cStride));
                         }};
}

} // namespace memscape::host
