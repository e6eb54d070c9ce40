// SPDX-License-Identifier: GPL-3.0-or-later
// How the records of one experiment are distinguished where there is little room: by what differs among
// them, else from the defaults ("read, 256 MiB"), by the device where it differs, and by the time. What
// a record sweeps is no difference; a record of one point is identified by it. A person's name goes first.
#pragma once

#include "core/experiment/record.h"

#include <QDateTime>
#include <QString>

namespace memscape {

struct RecordLabel
{
    QString what; ///< "H200, read, 256 MiB"; "predicted, …" without a measurement; may be empty
    QString time; ///< "17:38" of today, else "2 Jan 17:38"; empty when it is not known

    QString text() const; ///< "read, 256 MiB, 17:38"
};

/// Labels of the records at `indices`, which are of one experiment. `device`: id of the one that the
/// page shows; another one is named. Empty: only devices that differ among them are.
std::vector<RecordLabel> recordLabels(const std::vector<Record>& records, const std::vector<std::size_t>& indices,
                                      const std::string& device, ByteStyle bytes,
                                      const QDateTime& now = QDateTime::currentDateTimeUtc());

} // namespace memscape
