// SPDX-License-Identifier: Apache-2.0
#include "kernels/pytorch/python_torch.h"

#include "core/base/json.h"
#include "core/base/text.h"
#include "core/device/catalogue.h"
#include "core/experiment/record.h"

#include <cstdlib>

#include <fmt/format.h>

namespace memscape {

namespace {

namespace fs = std::filesystem;

std::string environment(const char* name)
{
    const char* const value = std::getenv(name);
    return value ? value : "";
}

constexpr std::string_view chooseAnother =
    "choose a Python: Settings, Workers in the window, or --python or MEMSCAPE_PYTHON";

tl::unexpected<Error> noTorch(const std::string& python)
{
    return fail("run.skipped", fmt::format("{} has no PyTorch", python),
                "packaging/run --with-pytorch, apt install python3-torch, or python3 -m pip install torch; or "
                    + std::string(chooseAnother));
}

/// Whether "1.13.1" or "2.9" is new enough.
bool isNewEnough(const std::string& version)
{
    const auto parts = split(version, '.');
    if (parts.size() < 2)
        return true; // what cannot be read is tried
    const auto major = parseNumber(parts[0]), minor = parseNumber(parts[1]);
    return !major || *major > 1 || (*major == 1 && minor && *minor >= 13);
}

/// The last line that is an object: sitecustomize and the like may print before it.
Result<Json> factsOf(const std::string& output)
{
    const auto lines = split(output, '\n');
    for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
        auto json = line->starts_with('{') ? parseJson(*line) : Result<Json>(fail("", ""));
        if (json && json->contains("memscape_probe"))
            return json;
    }
    return fail("run.skipped", "it is no Python that can run memscape_probe", std::string(chooseAnother));
}

} // namespace

std::string chosenPython()
{
    const std::string chosen = environment("MEMSCAPE_PYTHON");
    return chosen.empty() ? "python3" : chosen;
}

fs::path probeFolder()
{
    const fs::path resources = resourcesFolder();
    std::error_code error;
    const fs::path installed = resources / "pytorch";
    return fs::exists(installed / "memscape_probe", error) ? installed : resources.parent_path() / "kernels/pytorch";
}

ChildCommand probeCommand(const std::string& python, const std::string& command)
{
    const std::string others = environment("PYTHONPATH");
    return {{python, "-m", "memscape_probe", command},
            {{"PYTHONPATH", probeFolder().string() + (others.empty() ? "" : ":" + others)},
             {"PYTHONDONTWRITEBYTECODE", "1"}, // the package may lie where this user must not write
             {"PYTHONUNBUFFERED", "1"},
             {"MEMSCAPE_RESOURCES", resourcesFolder().string()}}};
}

Result<PythonTorch> findTorch(const std::string& python, double seconds)
{
    std::error_code error;
    if (!fs::exists(probeFolder() / "memscape_probe", error))
        return fail("run.skipped", fmt::format("the package memscape_probe is not in {}", probeFolder().string()),
                    "install Memscape again");
    ChildCommand command = probeCommand(python, "facts");
    command.isQuiet = true;
    auto output = outputOf(command, seconds);
    if (!output)
        return fail("run.skipped", fmt::format("{} is no Python that can be used: {}", python, output.error().message),
                    std::string(chooseAnother));
    MEMSCAPE_TRY(facts, factsOf(*output));
    const JsonReader reader(facts);
    MEMSCAPE_TRY(probe, reader.string("memscape_probe", ""));
    if (probe != programVersion())
        return fail("run.skipped",
                    fmt::format("{} runs memscape_probe {}, and this is Memscape {}", python, probe, programVersion()),
                    "remove the other one: python3 -m pip uninstall memscape-probe");
    PythonTorch found{python, reader.string("python", "").value_or(""), {}, false};
    if (!reader.has("torch") || !facts["torch"].is_object())
        return noTorch(python);
    MEMSCAPE_TRY(torch, reader.at("torch"));
    found.torch = torch.string("version", "").value_or("");
    found.hasCuda = facts["torch"].value("cuda", false);
    if (!isNewEnough(found.torch))
        return fail("run.skipped", fmt::format("{} has PyTorch {}, which is too old", python, found.torch),
                    "PyTorch 1.13 or newer is needed");
    return found;
}

} // namespace memscape
