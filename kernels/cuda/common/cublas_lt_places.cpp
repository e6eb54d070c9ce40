// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/common/cublas_lt_places.h"

#include <filesystem>
#include <string_view>
#include <system_error>

#include <dlfcn.h>

#include <fmt/format.h>

namespace memscape::cuda {
namespace fs = std::filesystem;

namespace {

constexpr int firstDriverOf13 = 13000;
constexpr std::size_t oldestKnown = 110000; // its structures are those of 12 and 13

std::vector<std::string> fileNames(int driverCuda)
{
    if (driverCuda >= firstDriverOf13)
        return {"libcublasLt.so.13", "libcublasLt.so.12"};
    return {"libcublasLt.so.12"};
}

std::string loaderError()
{
    const char* const reason = dlerror();
    return reason != nullptr ? reason : "the loader gives no reason";
}

/// Of the library that a function is in: another than the one opened, when that only links it.
std::string fileOf(const void* function, const std::string& name)
{
    Dl_info found = {};
    if (dladdr(function, &found) == 0 || found.dli_fname == nullptr)
        return name;
    std::error_code error;
    const fs::path file = fs::canonical(found.dli_fname, error);
    return error ? std::string(found.dli_fname) : file.string();
}

/// Opens `name` into `library`; what is wrong with it, empty when nothing is.
std::string tryOpening(const std::string& name, CublasLtLibrary& library)
{
    void* const handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr)
        return "it cannot be loaded: " + loaderError();
    void* const asked = dlsym(handle, "cublasLtGetVersion");
    if (asked == nullptr || dlsym(handle, "cublasLtMatmul") == nullptr) {
        dlclose(handle);
        return "it is not cuBLASLt";
    }
    const std::size_t version = reinterpret_cast<std::size_t (*)()>(asked)();
    if (version < oldestKnown) {
        dlclose(handle);
        return "it is cuBLASLt " + cublasLtVersionText(version) + ", older than 11";
    }
    library.handle = handle;
    library.file = fileOf(asked, name);
    library.version = cublasLtVersionText(version);
    return {};
}

/// The library that was asked for; what is wrong with it, empty when nothing is.
std::string openChosen(const std::string& chosen, int driverCuda, CublasLtLibrary& library)
{
    std::error_code ignored;
    if (!fs::exists(chosen, ignored))
        return "it does not exist";
    const std::vector<std::string> files = cublasLtFiles(chosen, driverCuda);
    if (files.empty())
        return "no libcublasLt.so is in it, in its nvidia/cu13/lib or in its nvidia/cublas/lib";
    std::string first;
    for (const std::string& file : files) {
        const std::string wrong = tryOpening(file, library);
        if (wrong.empty())
            return {};
        if (first.empty())
            first = wrong;
    }
    return first;
}

} // namespace

std::vector<std::string> cublasLtFiles(const std::string& chosen, int driverCuda)
{
    std::error_code ignored;
    if (fs::is_regular_file(chosen, ignored))
        return {fs::absolute(chosen, ignored).string()}; // a name without a slash is the loader's to find
    std::vector<std::string> files;
    for (const std::string_view below : {"", "nvidia/cu13/lib", "nvidia/cublas/lib"}) {
        std::vector<std::string> names = fileNames(driverCuda);
        names.emplace_back("libcublasLt.so");
        for (const std::string& name : names) {
            const fs::path file = fs::absolute(fs::path(chosen) / below / name, ignored);
            if (fs::is_regular_file(file, ignored))
                files.push_back(file.string());
        }
    }
    return files;
}

std::vector<std::string> cublasLtNames(int driverCuda)
{
    std::vector<std::string> names = fileNames(driverCuda);
    const std::vector<std::string> files = cublasLtFiles("/usr/local/cuda/lib64", driverCuda);
    names.insert(names.end(), files.begin(), files.end());
    return names;
}

CublasLtLibrary openCublasLt(const std::string& chosen, int driverCuda, const std::vector<std::string>& names)
{
    CublasLtLibrary library;
    if (!chosen.empty()) {
        const std::string wrong = openChosen(chosen, driverCuda, library);
        if (wrong.empty())
            return library;
        library.trouble = fmt::format("{} names {}: {}", cublasLtVariable, chosen, wrong);
    }
    for (const std::string& name : names) {
        if (tryOpening(name, library).empty())
            break;
    }
    return library;
}

std::string cublasLtVersionText(std::size_t version)
{
    return fmt::format("{}.{}.{}", version / 10000, version % 10000 / 100, version % 100);
}

} // namespace memscape::cuda
