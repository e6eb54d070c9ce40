// SPDX-License-Identifier: Apache-2.0
// A library as small as can be that a search takes for cuBLASLt, and one (version 0) that it must not.
#include <cstddef>

extern "C" {
#if ANSWERED_VERSION > 0
std::size_t cublasLtGetVersion();
std::size_t cublasLtGetVersion()
{
    return ANSWERED_VERSION;
}
int cublasLtMatmul();
int cublasLtMatmul()
{
    return 1;
}
#else
int somethingElse();
int somethingElse()
{
    return 0;
}
#endif
}
