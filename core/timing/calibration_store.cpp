// SPDX-License-Identifier: Apache-2.0
#include "core/timing/calibration_store.h"

#include "core/base/file.h"
#include "core/base/json_shape.h"
#include "core/device/catalogue.h"
#include "core/timing/calibration_check.h"

#include <fmt/format.h>

namespace memscape {

namespace {

/// What predictions use when the new one is not kept.
std::string staysInUse(const std::filesystem::path& path)
{
    const auto old = findDevice(path.string());
    if (!old || !old->calibration)
        return "predictions go on without a calibration";
    return fmt::format("the calibration of {} (grade {}) stays in use", old->calibration->time,
                       old->calibration->grade);
}

/// "grade D: bandwidth: a typical probe's middle half lies within 14 %", as the calibration noted it.
std::string gradeText(const Device& calibrated)
{
    const std::string grade = "grade " + calibrated.calibration->grade;
    for (const std::string& note : calibrated.notes) {
        if (const std::size_t at = note.find(grade + ": "); at != std::string::npos)
            return note.substr(at);
    }
    return grade;
}

} // namespace

Result<std::filesystem::path> keepCalibration(const std::string& id, const Device& calibrated, Keep keep)
{
    MEMSCAPE_CHECK(checkPossible(calibrated));
    const std::filesystem::path path = calibrationPath(id);
    if (keep == Keep::WhenGood && calibrated.calibration && calibrated.calibration->grade == "D")
        return fail("run.grade",
                    fmt::format("the new calibration is not used; {}: {}", staysInUse(path), gradeText(calibrated)),
                    "calibrate again when the machine is quieter, or use it anyway");
    std::error_code ignored; // writing says what is wrong
    std::filesystem::create_directories(path.parent_path(), ignored);
    const std::string text = jsonText(deviceToJson(calibrated));
    if (const auto readable = checkJsonShape(text, {.bytes = deviceFileLimit}); !readable)
        return fail("document.limit",
                    fmt::format("the calibration is not kept, because it could not be read again: {}",
                                readable.error().message),
                    staysInUse(path));
    MEMSCAPE_CHECK(writeFileAtomically(path, text));
    return path;
}

Result<bool> forgetCalibration(const std::string& id)
{
    const std::filesystem::path path = calibrationPath(id);
    std::error_code problem;
    const bool removed = std::filesystem::remove(path, problem);
    if (problem)
        return fail("file.permission", fmt::format("cannot remove {}: {}", path.string(), problem.message()));
    return removed;
}

} // namespace memscape
