// SPDX-License-Identifier: Apache-2.0
// oneDNN's matrix products, opened at run time: 40 MB that need not be installed. It multiplies in
// what the processor really has for a format: AVX512-BF16 or AMX for BF16, AVX512-VNNI or AMX for
// INT8. Versions 2 (Debian 12) and 3 differ in how a product is described; its few functions are
// declared here, their arguments as oneDNN's public header has them.
//
// We use one of its threads per call, as with OpenBLAS (blas.h): the team of pinned threads cuts a
// product into slabs.
#pragma once

#include "kernels/host/precision/gemm.h"

#include <string>

namespace memscape::host {

/// "oneDNN 2.6.3" when it can be used, else empty.
const std::string& oneDnnName();

/// Whether 8-bit products add up exactly. Without VNNI x86 adds pairs of them in 16 bits, which saturate: oneDNN
/// requires numbers of 7 bits there (its documentation, Nuances of int8 computations), and ours have 8.
bool hasExactInt8();

/// A product on the calling thread, or on so many of the library's own (for comparing with it). Errors: run.skipped
/// when there is no oneDNN or it has no product for these formats on this processor.
Result<std::unique_ptr<GemmPlan>> oneDnnPlan(const GemmTask& task, int threads = 1);

} // namespace memscape::host
