// SPDX-License-Identifier: GPL-3.0-or-later
// What can change in a study, as small values: one signal with one of these instead of forty
// signals. Views visit the variant and react to what concerns them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>

namespace memscape {

/// Everything may be different: another study was opened, made or reloaded.
struct StudyReset
{ };
/// The page that is shown. Saved with the study; a step of the history only where a page led to another at a setting.
struct PageChanged
{ };
/// Parameters of an experiment's page.
struct ParametersChanged
{
    std::string experiment;
};
/// The device chosen on an experiment's page; experiment is empty for the one chosen last on any.
struct DeviceChanged
{
    std::string experiment;

    /// Whether a page may show another device now.
    bool concerns(std::string_view page) const { return experiment.empty() || experiment == page; }
};
/// A saved view setting (log axis, overlay…) of a page; experiment is empty for the whole study.
struct ViewChanged
{
    std::string experiment, key;
};
/// `isBack`: it was here before, and undo or redo brought it.
struct RecordAdded
{
    std::size_t index;
    bool isBack = false;
};
struct RecordRemoved
{
    std::size_t index;
};
struct RecordRenamed
{
    std::size_t index;
};
/// Note, pin or baseline.
struct RecordChanged
{
    std::size_t index;
};
/// File name, read-only state, or what is on disk.
struct FileChanged
{ };
struct ModifiedChanged
{ };

using ChangeEvent = std::variant<StudyReset, PageChanged, ParametersChanged, DeviceChanged, ViewChanged, RecordAdded,
                                 RecordRemoved, RecordRenamed, RecordChanged, FileChanged, ModifiedChanged>;

} // namespace memscape
