// SPDX-License-Identifier: Apache-2.0
// Stand-ins for a CUDA module: one that is something else, one of another version, one whose shared
// types have another size.
#include "kernels/cuda/module.h"

#ifdef FOREIGN

extern "C" int somethingElse()
{
    return 0;
}

#else

namespace {
#ifdef OLDER
constexpr memscape::cuda::Module stale{"memscape-cuda 0", memscape::cuda::moduleLayout, nullptr};
#else
constexpr memscape::cuda::Module stale{memscape::cuda::moduleAbi, 1, nullptr};
#endif
} // namespace

extern "C" const memscape::cuda::Module* memscape_cuda_module()
{
    return &stale;
}

#endif
