// SPDX-License-Identifier: GPL-3.0-or-later
// How a record is called in lists: name, age, grade, on what, and whether it answers the page's
// present question.
#pragma once

#include "core/experiment/record.h"

#include <QDateTime>
#include <QString>

namespace memscape {

/// "stride sweep · H200": the person's name for it, else experiment and device.
QString recordName(const Record& record);
/// When it was made; invalid when the record does not say.
QDateTime recordTime(const Record& record);
/// "now", "3 min ago", "yesterday", "2 Nov 2026".
QString ageText(const QDateTime& time, const QDateTime& now = QDateTime::currentDateTimeUtc());
/// "22 Nov 2026 17:38"; empty for no time.
QString dateText(const QDateTime& time);
/// "A" to "D", empty when it has none.
QString recordGrade(const Record& record);
/// "stopped", "interrupted" or "failed" of a run that was not measured to its end; empty of a whole one.
QString incompleteText(const Record& record);
/// Grade in words with its reason and where it ran, for tooltips.
QString recordToolTip(const Record& record);
/// Same experiment, device and parameters, apart from the value of the swept one.
bool answers(const Record& record, const std::string& experiment, const std::string& device,
             const Parameters& parameters);
/// The parameters in which a record differs from these: "element float64, offset 4 B".
QString differenceText(const Schema& schema, const Parameters& of, const Parameters& from, const std::string& except,
                       ByteStyle bytes = ByteStyle::Binary);

/// The key of the x axis of a record's series; empty without series.
std::string sweptKey(const Record& record);

/// How a device is called where there is little room: "H200", "This CPU".
QString shortDeviceName(const Device& device);
/// How a record of somewhere else calls its device: a PyTorch says "on this CPU" where it ran.
QString nameElsewhere(const Device& device);
/// On what a prediction for this device stands: "calibrated 3 min ago", "catalogue values". What is
/// kept says the date instead of the age.
enum class TimeText { Age, Date };
QString basisText(const Device& device, TimeText when = TimeText::Age);

/// A hint may list all there is (a hundred models); where it stands beside what went wrong it is
/// cut to a few lines.
Error withBriefHint(Error error);

} // namespace memscape
