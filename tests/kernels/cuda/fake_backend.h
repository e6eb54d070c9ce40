// SPDX-License-Identifier: Apache-2.0
// The CUDA backend on a GPU of the test's own making (fake_gpu.h): runs in this process, and a worker in a process of
// its own.
#pragma once

#include "core/protocol/message.h"
#include "kernels/cuda/experiments.h"
#include "kernels/worker/worker.h"
#include "tests/kernels/cuda/fake_gpu.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

namespace memscape {

/// Keeps points and codes of notes; says stop after `stopAfter` points.
class PointsSink : public RunSink
{
public:
    void progress(int done, int, const std::string&) override { visits = std::max(visits, done); }
    void point(const std::string&, const Point& point) override { points.push_back(point); }
    void note(const std::string&, const std::string& code, const std::string&) override { notes.push_back(code); }
    bool cancelled() const override { return stopAfter >= 0 && int(points.size()) >= stopAfter; }

    int visits = 0;
    int stopAfter = -1;
    std::vector<Point> points;
    std::vector<std::string> notes;
};

inline std::unique_ptr<Backend> backend()
{
    return cuda::makeCudaBackend(std::make_shared<FakeHostClock>());
}

/// `given`: KEY=VALUE. What is wrong with them is the run's error.
inline Result<MeasuredRun> measure(Backend& backend, const char* id, const std::vector<std::string>& given,
                                   RunSink& sink)
{
    const auto experiment = findExperiment(id);
    const auto parameters = resolve((*experiment)->schema(), given);
    if (!parameters)
        return fail(parameters.error());
    return backend.measure(**experiment, backend.devices().front(), *parameters, sink);
}

struct EndedWorker
{
    std::string said;
    int exitCode = -1; ///< −1: a signal ended it
};

/// A worker in a process of its own, on a GPU with what `fault` sets, asked for one run; its input stays open until it
/// has ended by itself.
inline EndedWorker workerOnFake(const std::function<void(FakeGpu&)>& fault, protocol::Run run)
{
    EndedWorker ended;
    int in[2], out[2];
    if (pipe(in) != 0 || pipe(out) != 0)
        return ended;
    const pid_t child = fork();
    if (child == 0) {
        close(in[1]);
        close(out[0]);
        fault(fakeGpu());
        std::vector<std::unique_ptr<Backend>> backends;
        backends.push_back(backend());
        runWorker(in[0], out[1], std::move(backends), {});
        std::_Exit(7); // it ended because its input did
    }
    close(in[0]);
    close(out[1]);
    const std::string asked = protocol::encode(protocol::Command(std::move(run)));
    const bool isAsked = write(in[1], asked.data(), asked.size()) == ssize_t(asked.size());
    char chunk[65536];
    for (ssize_t count; (count = read(out[0], chunk, sizeof chunk)) > 0;)
        ended.said.append(chunk, std::size_t(count));
    int status = 0;
    if (waitpid(child, &status, 0) == child && isAsked && WIFEXITED(status))
        ended.exitCode = WEXITSTATUS(status);
    close(in[1]);
    close(out[0]);
    return ended;
}

} // namespace memscape
