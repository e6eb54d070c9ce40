// SPDX-License-Identifier: GPL-3.0-or-later
// What every page works with; the window owns them and they outlive it.
#pragma once

#include "app/document/study_document.h"
#include "app/workers/devices.h"

#include <string>

namespace memscape {

class RunController;
class Settings;

struct PageServices
{
    StudyDocument& document;
    DeviceDirectory& devices;
    Settings& settings;
    RunController& runs;

    /// Id of the device that a page shows.
    std::string deviceOf(const std::string& page) const
    {
        return devices.idFor(document.device(page), document.lastDevice());
    }
};

} // namespace memscape
