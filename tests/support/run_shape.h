// SPDX-License-Identifier: Apache-2.0
// What a plot, a table and a report read of a measured run, so that runs of two machines can be compared: curves with
// their axes and units, the columns of samples, and what every run must say.
#pragma once

#include "kernels/measure/backend.h"

#include <QString>
#include <QStringList>

#include <set>

#include <nlohmann/json.hpp>

namespace memscape::test {

inline QStringList keysOfObject(const Json& object)
{
    QStringList keys;
    for (const auto& [key, value] : object.items())
        keys << QString::fromStdString(key);
    keys.sort();
    return keys;
}

inline QStringList curvesOf(const MeasuredRun& run)
{
    QStringList curves;
    for (const Series& series : run.measurement.series)
        curves << QStringLiteral("curve %1 over %2 in %3")
                      .arg(QString::fromStdString(series.key), QString::fromStdString(series.x.key))
                      .arg(int(series.yUnit));
    curves.sort();
    return curves;
}

inline QStringList sampleColumnsOf(const MeasuredRun& run)
{
    std::set<QString> keys;
    for (const Json& one : run.provenance.samples)
        keys.insert(keysOfObject(one).join(u' '));
    return {keys.begin(), keys.end()};
}

/// The first thing that a run must say and this one does not; empty when it says all.
inline QString lacking(const MeasuredRun& run)
{
    const Json written = provenanceToJson(run.provenance, run.complete);
    for (const char* key :
         {"backend", "time", "forced", "passes", "grade", "reason", "method", "samples", "complete"}) {
        if (!written.contains(key))
            return QStringLiteral("provenance.%1").arg(QLatin1String(key));
    }
    if (written.contains("grade_reason"))
        return QStringLiteral("grade_reason is of version 0.1.0");
    if (!run.provenance.method.is_object() || run.provenance.samples.empty() || run.provenance.quality->reason.empty())
        return QStringLiteral("a method, samples, or the reason of the grade");
    if (!run.measurement.detail.contains("points"))
        return QStringLiteral("detail.points");
    for (const Json& point : run.measurement.detail["points"]) {
        for (const char* key : {"x", "grade", "reason", "samples"}) {
            if (!point.contains(key))
                return QStringLiteral("%1 of %2").arg(QLatin1String(key), QString::fromStdString(point.dump()));
        }
    }
    return {};
}

} // namespace memscape::test
