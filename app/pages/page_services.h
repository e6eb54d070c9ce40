// SPDX-License-Identifier: GPL-3.0-or-later
// What every page works with; the window owns them and they outlive it.
#pragma once

namespace memscape {

class DeviceDirectory;
class RunController;
class Settings;
class StudyDocument;

struct PageServices
{
    StudyDocument& document;
    DeviceDirectory& devices;
    Settings& settings;
    RunController& runs;
};

} // namespace memscape
