// SPDX-License-Identifier: Apache-2.0
// The CUDA backend on the GPU of the tests (fake_gpu.h), as a module that memscape-cli opens: what
// tests/gpu/run does with a GPU can then be tried where there is none. Everything that it measures
// carries the word "fake" in its provenance and in the name of its device, so that no figure of it
// passes for a measurement. Two variables make it fail: MEMSCAPE_FAKE_WRONG (the self-test finds a
// wrong kernel), MEMSCAPE_FAKE_HANGS (the experiment of that name never ends).
#define memscape_cuda_module memscape_cuda_backend_module
#include "kernels/cuda/cuda_backend.cpp" // its one exported function, under another name
#undef memscape_cuda_module

#include "tests/kernels/cuda/fake_gpu.h"

#include <chrono>
#include <cstdlib>
#include <thread>

namespace memscape::cuda {

namespace {

constexpr const char* fakeName = "Fake GPU of Memscape's tests";

/// Ends a self-test where whole products, steps and attention begin: they are emulated thread by thread, for half a
/// minute, and have tests of their own.
class Shortened : public RunSink
{
public:
    explicit Shortened(RunSink& sink)
        : m_sink(sink)
    { }
    void progress(int done, int total, const std::string& label) override
    {
        m_over = m_over || total == 0;
        m_sink.progress(done, total, label);
    }
    void point(const std::string& key, const Point& point) override { m_sink.point(key, point); }
    void note(const std::string& level, const std::string& code, const std::string& text) override
    {
        m_sink.note(level, code, text);
    }
    bool cancelled() const override { return m_over || m_sink.cancelled(); }

private:
    RunSink& m_sink;
    bool m_over = false;
};

class FakeBackend : public Backend
{
public:
    FakeBackend()
        : m_cuda(makeCudaBackend(std::make_shared<FakeHostClock>()))
    {
        fakeGpu().launchSeconds = 200e-6; // long ones: few samples fill the time that a measurement takes
        fakeGpu().wrongKernel = std::getenv("MEMSCAPE_FAKE_WRONG") != nullptr;
    }

    std::string id() const override { return m_cuda->id(); }

    std::vector<BackendDevice> devices() override
    {
        std::vector<BackendDevice> devices = m_cuda->devices();
        for (BackendDevice& device : devices)
            device.name = device.device.name = fakeName;
        return devices;
    }

    Result<MeasuredRun> measure(const Experiment& experiment, const BackendDevice& device, const Parameters& parameters,
                                RunSink& sink) override
    {
        const char* const hangs = std::getenv("MEMSCAPE_FAKE_HANGS");
        while (hangs != nullptr && experiment.id() == hangs)
            std::this_thread::sleep_for(std::chrono::seconds(1));
        auto run = m_cuda->measure(experiment, device, parameters, sink);
        if (run)
            run->provenance.machine["fake"] = "host memory and a model of time: tests/kernels/cuda/fake_gpu.h";
        return run;
    }

    Result<Device> calibrate(const BackendDevice& device, RunSink& sink) override
    {
        return m_cuda->calibrate(device, sink);
    }

    std::vector<SelftestLine> selftest(const BackendDevice& device, RunSink& sink) override
    {
        Shortened shorter(sink);
        return m_cuda->selftest(device, shorter);
    }

    bool isSpent() const override { return m_cuda->isSpent(); }

private:
    std::unique_ptr<Backend> m_cuda;
};

Backend* makeFakeBackend()
{
    return new FakeBackend;
}

constexpr Module theFakeModule{moduleAbi, moduleLayout, &makeFakeBackend};

} // namespace
} // namespace memscape::cuda

extern "C" __attribute__((visibility("default"))) const memscape::cuda::Module* memscape_cuda_module()
{
    return &memscape::cuda::theFakeModule;
}
