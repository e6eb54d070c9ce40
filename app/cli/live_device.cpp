// SPDX-License-Identifier: Apache-2.0
#include "app/cli/live_device.h"

#include "core/base/text.h"
#include "core/device/catalogue.h"
#include "core/device/host_load.h"
#include "kernels/pytorch/pytorch_backend.h"
#include "kernels/worker/worker.h"

#include <fmt/format.h>

namespace memscape::cli {

namespace {

bool isGpuId(const std::string& id)
{
    return id == "cuda" || id.starts_with("cuda:");
}

constexpr double patientSeconds = 30; ///< for the Python that was asked for

bool isReplay(const std::string& id)
{
    return id.starts_with("replay:");
}

tl::unexpected<Error> notHere(const std::string& id, const std::vector<BackendDevice>& devices)
{
    std::vector<std::string> there;
    std::string reason;
    for (const BackendDevice& device : devices) {
        if (device.missing.empty())
            there.push_back(device.id);
        else if (reason.empty() || device.id == id)
            reason = device.missing;
    }
    const std::string message = fmt::format("there is no device {} on this machine", quotedForMessage(id));
    if (there.empty())
        return fail("device.missing", reason.empty() ? message : message + ": " + reason,
                    "memscape-cli devices lists the devices here; predict needs none");
    return fail("device.missing", reason.empty() ? message : message + ": " + reason, "here: " + join(there, ", "));
}

Result<LiveDevice> pick(std::unique_ptr<Backend> backend, const std::string& id)
{
    const auto devices = backend->devices();
    for (const BackendDevice& device : devices) {
        if (device.id == id && device.missing.empty()) {
            LiveDevice live{std::move(backend), device};
            if (live.device.device.basis != "calibrated")
                live.device.device = withCalibration(std::move(live.device.device));
            return live;
        }
    }
    return notHere(id, devices);
}

Result<LiveDevice> replayed(const std::string& path)
{
    MEMSCAPE_TRY(backend, makeReplayBackend(path));
    const auto devices = backend->devices();
    if (devices.empty() || !devices.front().missing.empty())
        return fail("device.missing", fmt::format("{} holds no measurement to replay", path),
                    "give a record with a measured side: memscape-cli measure … -o FILE");
    return LiveDevice{std::move(backend), devices.front()};
}

} // namespace

Result<void> requireDevice(const std::string& id)
{
    if (!id.empty())
        return {};
    return fail("usage", "which device? --device ID is required",
                "--device cpu measures this machine's CPU; memscape-cli devices lists the others");
}

void noteBusyMachine(const LiveDevice& live, RunSink& sink)
{
    if (live.backend->id() != "host")
        return;
    if (const HostLoad load = readHostLoad(); load.isBusy())
        sink.note("warning", "machine.busy", busyText(load) + ": measuring anyway; the times include this load");
}

Result<LiveDevice> findLiveDevice(const std::string& id)
{
    if (isReplay(id))
        return replayed(id.substr(7));
    if (isGpuId(id))
        return pick(makeCudaBackend(), id == "cuda" ? "cuda:0" : id);
    if (isPytorchId(id))
        return pick(makePytorchBackend({}, patientSeconds), id);
    if (id == "cpu")
        return pick(makeHostBackend(), id);
    // A name that can be predicted but not measured deserves more than "unknown".
    MEMSCAPE_TRY(device, findDevice(id));
    return fail("device.missing", fmt::format("{} is described, but it is not a device of this machine", device.name),
                fmt::format("predict works here: memscape-cli predict … --device {}; to measure, run on "
                            "a machine that has it with --device {}",
                            id, device.isGpu() ? "cuda:0" : "cpu"));
}

std::vector<BackendDevice> liveDevices()
{
    std::vector<BackendDevice> all;
    for (const auto& backend : makeBackends({}))
        for (BackendDevice& device : backend->devices())
            all.push_back(std::move(device));
    return all;
}

Result<Device> findDeviceToPredict(const std::string& id)
{
    if (isGpuId(id) || isPytorchId(id) || isReplay(id)) {
        MEMSCAPE_TRY(live, findLiveDevice(id));
        return live.device.device;
    }
    return findDevice(id.empty() ? "cpu" : id);
}

} // namespace memscape::cli
