// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/common/nvml.h"

#include <algorithm>
#include <array>

#include <dlfcn.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace memscape::cuda {

namespace {

using Handle = void*;
constexpr int ok = 0;

struct ProcessInfo // nvmlProcessInfo_t of the _v3 call
{
    unsigned pid;
    unsigned long long usedMemory;
    unsigned gpuInstance, computeInstance;
};

/// The functions of NVML that are used, null where the library lacks them.
struct Library
{
    int (*init)() = nullptr;
    int (*driver)(char*, unsigned) = nullptr;
    int (*handle)(const char*, Handle*) = nullptr;
    int (*temperature)(Handle, int, unsigned*) = nullptr;
    int (*power)(Handle, unsigned*) = nullptr;
    int (*powerLimit)(Handle, unsigned*) = nullptr;
    int (*clock)(Handle, int, unsigned*) = nullptr;
    int (*maxClock)(Handle, int, unsigned*) = nullptr;
    int (*reasons)(Handle, unsigned long long*) = nullptr;
    int (*processes)(Handle, unsigned*, ProcessInfo*) = nullptr;
    int (*ecc)(Handle, int*, int*) = nullptr;
    int (*persistence)(Handle, int*) = nullptr;
    bool usable = false;
};

template <typename Function> void find(void* library, Function& function, std::initializer_list<const char*> names)
{
    for (const char* name : names) {
        if (function == nullptr)
            function = reinterpret_cast<Function>(dlsym(library, name));
    }
}

Library openLibrary()
{
    Library nvml;
    void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr)
        return nvml;
    find(library, nvml.init, {"nvmlInit_v2"});
    find(library, nvml.driver, {"nvmlSystemGetDriverVersion"});
    find(library, nvml.handle, {"nvmlDeviceGetHandleByPciBusId_v2"});
    find(library, nvml.temperature, {"nvmlDeviceGetTemperature"});
    find(library, nvml.power, {"nvmlDeviceGetPowerUsage"});
    find(library, nvml.powerLimit, {"nvmlDeviceGetEnforcedPowerLimit"});
    find(library, nvml.clock, {"nvmlDeviceGetClockInfo"});
    find(library, nvml.maxClock, {"nvmlDeviceGetMaxClockInfo"});
    find(library, nvml.reasons,
         {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"});
    find(library, nvml.processes, {"nvmlDeviceGetComputeRunningProcesses_v3"});
    find(library, nvml.ecc, {"nvmlDeviceGetEccMode"});
    find(library, nvml.persistence, {"nvmlDeviceGetPersistenceMode"});
    nvml.usable = nvml.init != nullptr && nvml.handle != nullptr && nvml.init() == ok;
    return nvml;
}

const Library& library()
{
    static const Library nvml = openLibrary();
    return nvml;
}

template <typename Function, typename... Arguments>
std::optional<double> scaled(double factor, Function function, Arguments... arguments)
{
    unsigned value = 0;
    if (function == nullptr || function(arguments..., &value) != ok)
        return std::nullopt;
    return factor * value;
}

/// Inside a container our own process may be listed under a number that is not ours; one process
/// that we do not know is then taken to be us.
std::optional<int> otherProcesses(const Library& nvml, Handle handle)
{
    std::array<ProcessInfo, 64> list{};
    auto count = static_cast<unsigned>(list.size());
    if (nvml.processes == nullptr || nvml.processes(handle, &count, list.data()) != ok)
        return std::nullopt;
    const auto end = list.begin() + std::min<std::size_t>(count, list.size());
    const auto self = static_cast<unsigned>(getpid());
    const bool listed = std::any_of(list.begin(), end, [&](const ProcessInfo& one) { return one.pid == self; });
    const int others = static_cast<int>(end - list.begin()) - (listed ? 1 : 0);
    return listed || others == 0 ? others : others - 1;
}

struct Reason
{
    unsigned long long bit;
    const char* text;
    bool slows;
};
constexpr Reason knownReasons[] = {
    {0x1, "the GPU is idle", false},
    {0x2, "application clocks are set", false},
    {0x4, "power limit", true},
    {0x8, "hardware slowdown", true},
    {0x10, "clocks are tied to another GPU", false},
    {0x20, "thermal slowdown by software", true},
    {0x40, "thermal slowdown by hardware", true},
    {0x80, "external power brake", true},
    {0x100, "display clocks", false},
};

} // namespace

GpuState readGpuState(const std::string& pciBusId)
{
    GpuState state;
    const Library& nvml = library();
    Handle handle = nullptr;
    if (!nvml.usable || nvml.handle(pciBusId.c_str(), &handle) != ok)
        return state;
    constexpr int sm = 1, core = 0;
    state.temperature = scaled(1, nvml.temperature, handle, core);
    state.power = scaled(1e-3, nvml.power, handle);
    state.powerLimit = scaled(1e-3, nvml.powerLimit, handle);
    state.smClock = scaled(1e6, nvml.clock, handle, sm);
    state.maxSmClock = scaled(1e6, nvml.maxClock, handle, sm);
    unsigned long long mask = 0;
    if (nvml.reasons != nullptr && nvml.reasons(handle, &mask) == ok)
        state.reasons = mask;
    state.otherProcesses = otherProcesses(nvml, handle);
    int now = 0, later = 0;
    if (nvml.ecc != nullptr && nvml.ecc(handle, &now, &later) == ok)
        state.ecc = now != 0;
    if (nvml.persistence != nullptr && nvml.persistence(handle, &now) == ok)
        state.persistence = now != 0;
    return state;
}

std::string driverVersion()
{
    char text[96] = {};
    const Library& nvml = library();
    if (!nvml.usable || nvml.driver == nullptr || nvml.driver(text, sizeof text) != ok)
        return {};
    return text;
}

std::vector<std::string> reasonTexts(unsigned long long reasons)
{
    std::vector<std::string> texts;
    for (const Reason& reason : knownReasons) {
        if ((reasons & reason.bit) != 0)
            texts.emplace_back(reason.text);
    }
    return texts;
}

bool throttles(unsigned long long reasons)
{
    return std::any_of(std::begin(knownReasons), std::end(knownReasons),
                       [&](const Reason& reason) { return reason.slows && (reasons & reason.bit) != 0; });
}

Json stateToJson(const GpuState& state)
{
    Json json = Json::object();
    const auto put = [&](const char* key, const auto& value) { json[key] = value ? Json(*value) : Json(); };
    put("temperature", state.temperature);
    put("power", state.power);
    put("power_limit", state.powerLimit);
    put("sm_clock", state.smClock);
    put("max_sm_clock", state.maxSmClock);
    put("other_processes", state.otherProcesses);
    put("ecc", state.ecc);
    put("persistence", state.persistence);
    json["clock_reasons"] = state.reasons ? Json(reasonTexts(*state.reasons)) : Json();
    return json;
}

} // namespace memscape::cuda
