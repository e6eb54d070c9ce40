// SPDX-License-Identifier: Apache-2.0
// Where NVIDIA's libcublasLt lies. It is opened at run time, the first that answers:
//
//   $MEMSCAPE_CUBLASLT   a file, or a folder: the library in it, or below it where pip puts it beside PyTorch
//                        (nvidia/cu13/lib, nvidia/cublas/lib), so that site-packages itself can be named
//   the loader's         libcublasLt.so.13 and .12: LD_LIBRARY_PATH, ld.so.conf
//   the toolkit's        /usr/local/cuda/lib64
//
// A library of CUDA 13 starts on drivers from 580 alone (13.0), so an older driver is asked for 12 only. What the
// variable names and cannot be used is passed over, and said: a comparison must not take one library for another
// unseen. The library needs no other of NVIDIA's to be loaded (seen of 12.9 and 13.1 of pip and of the toolkit).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace memscape::cuda {

inline constexpr const char* cublasLtVariable = "MEMSCAPE_CUBLASLT";

/// A library that is open for good.
struct CublasLtLibrary
{
    void* handle = nullptr; ///< null: none was found
    std::string file;       ///< where it lies
    std::string version;    ///< "13.0.2"
    std::string trouble;    ///< what is wrong with the one that was asked for; empty when nothing is
};

/// Files below `chosen`, which is a file itself or a folder, in the order in which they are tried. None when there is
/// none.
std::vector<std::string> cublasLtFiles(const std::string& chosen, int driverCuda);

/// What is tried when none was chosen; `driverCuda` as cudaDriverGetVersion() says it, 13000.
std::vector<std::string> cublasLtNames(int driverCuda);

/// `chosen` may be empty: none was. Then `names`, of files or for the loader.
CublasLtLibrary openCublasLt(const std::string& chosen, int driverCuda, const std::vector<std::string>& names);

/// "13.0.2" of 130002.
std::string cublasLtVersionText(std::size_t version);

} // namespace memscape::cuda
