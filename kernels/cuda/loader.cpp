// SPDX-License-Identifier: Apache-2.0
// The CUDA backend as the rest of the program sees it: a stand-in that opens the module when
// devices are first asked for, and answers with one device and the reason when it cannot.
#include "kernels/cuda/loader.h"

#include "kernels/cuda/module.h"

#include <cstdlib>
#include <optional>
#include <system_error>

#include <dlfcn.h>

namespace memscape {
namespace fs = std::filesystem;

namespace {

constexpr const char* moduleFile = "libmemscape-cuda.so";

Error missing(std::string message, std::string hint)
{
    return Error{"device.missing", std::move(message), {}, std::move(hint)};
}

Result<const cuda::Module*> openModule(const fs::path& path)
{
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        const char* reason = dlerror();
        return fail(
            missing("the CUDA module cannot be loaded: " + std::string(reason != nullptr ? reason : path.string()),
                    "reinstall or rebuild Memscape"));
    }
    auto entry = reinterpret_cast<cuda::ModuleFunction>(dlsym(library, cuda::moduleSymbol));
    if (entry == nullptr)
        return fail(missing(path.string() + " is not a Memscape CUDA module",
                            "point MEMSCAPE_CUDA_MODULE at " + std::string(moduleFile)));
    const cuda::Module* module = entry();
    if (module == nullptr || std::string(module->abi) != cuda::moduleAbi || module->layout != cuda::moduleLayout)
        return fail(missing("the CUDA module " + path.string() + " belongs to another build of Memscape"
                                + (module == nullptr ? "" : " (" + std::string(module->abi) + ")"),
                            "rebuild it, or install program and module of the same version"));
    return module;
}

Error noModule()
{
    std::error_code ignored;
    if (fs::exists("/proc/driver/nvidia/version", ignored))
        return missing("this build of Memscape has no CUDA module, although there is an NVIDIA driver",
                       "install nvcc and build again: packaging/run --with-cuda");
    return missing("no NVIDIA driver on this machine, and this build has no CUDA module",
                   "on a machine with an NVIDIA GPU run packaging/run --with-cuda; here use the "
                   "device cpu or a GPU of the catalogue");
}

/// Opens on first use, then hands everything on.
class CudaLoader : public Backend
{
public:
    std::string id() const override { return "cuda"; }

    std::vector<BackendDevice> devices() override
    {
        if (Backend* backend = module())
            return backend->devices();
        BackendDevice device;
        device.id = "cuda:0";
        device.name = "NVIDIA GPU";
        device.missing = m_error.text();
        return {device};
    }

    Result<MeasuredRun> measure(const Experiment& experiment, const BackendDevice& device, const Parameters& parameters,
                                RunSink& sink) override
    {
        if (Backend* backend = module())
            return backend->measure(experiment, device, parameters, sink);
        return fail(m_error);
    }

    Result<Device> calibrate(const BackendDevice& device, RunSink& sink) override
    {
        if (Backend* backend = module())
            return backend->calibrate(device, sink);
        return fail(m_error);
    }

    std::vector<SelftestLine> selftest(const BackendDevice& device, RunSink& sink) override
    {
        if (Backend* backend = module())
            return backend->selftest(device, sink);
        return {SelftestLine{"cuda", false, true, m_error.text()}};
    }

    bool isSpent() const override { return m_backend && m_backend->isSpent(); }

private:
    Backend* module()
    {
        if (m_opened)
            return m_backend.get();
        m_opened = true;
        auto loaded = loadCudaModule(cudaModulePaths());
        if (loaded)
            m_backend = std::move(*loaded);
        else
            m_error = std::move(loaded).error();
        return m_backend.get();
    }

    bool m_opened = false;
    Error m_error;
    std::unique_ptr<Backend> m_backend;
};

} // namespace

std::vector<fs::path> cudaModulePaths()
{
    if (const char* chosen = std::getenv("MEMSCAPE_CUDA_MODULE"); chosen != nullptr && *chosen != '\0')
        return {chosen};
    std::error_code error;
    const fs::path program = fs::read_symlink("/proc/self/exe", error);
    if (error)
        return {};
    const fs::path folder = program.parent_path();
    return {folder / moduleFile, folder / ".." / "lib" / "memscape" / moduleFile};
}

Result<std::unique_ptr<Backend>> loadCudaModule(const std::vector<fs::path>& paths)
{
    std::error_code ignored;
    const bool chosen = std::getenv("MEMSCAPE_CUDA_MODULE") != nullptr && paths.size() == 1;
    for (const fs::path& path : paths) {
        if (!fs::exists(path, ignored)) {
            if (chosen)
                return fail(missing("MEMSCAPE_CUDA_MODULE names " + path.string() + ", which does not exist",
                                    "unset it, or point it at " + std::string(moduleFile)));
            continue;
        }
        MEMSCAPE_TRY(module, openModule(path));
        return std::unique_ptr<Backend>(module->makeBackend());
    }
    return fail(noModule());
}

std::unique_ptr<Backend> makeCudaBackend()
{
    return std::make_unique<CudaLoader>();
}

} // namespace memscape
