// SPDX-License-Identifier: Apache-2.0
// Chains with known optima, tests/data/checkpoint_refs.json: integers, found by other programs and
// by exhaustive search (the file says how).
#pragma once

#include "core/checkpoint/chain.h"

#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>

namespace memscape::test {

inline QJsonObject checkpointReferences()
{
    QFile file(QStringLiteral(TEST_DATA "/checkpoint_refs.json"));
    return file.open(QIODevice::ReadOnly) ? QJsonDocument::fromJson(file.readAll()).object() : QJsonObject();
}

/// An entry with the arrays fw, bw, cw, cbw, ftmp and btmp, or a homogeneous one with numbers in
/// their place.
inline Chain referenceChain(const QJsonObject& entry)
{
    if (!entry["fw"].isArray())
        return uniformChain(entry["L"].toInt(), entry["cw"].toInt(), entry["cbw"].toInt(), entry["fw"].toDouble(),
                            entry["bw"].toDouble());
    const auto size = [&](const char* array, int i) { return entry[QLatin1String(array)][i].toInteger(); };
    const auto time = [&](const char* array, int i) { return entry[QLatin1String(array)][i].toDouble(); };
    Chain chain;
    chain.units = {false, false};
    const int length = int(entry["fw"].toArray().size());
    for (int i = 0; i <= length; ++i)
        chain.values.push_back(size("cw", i));
    for (int i = 0; i < length; ++i)
        chain.stages.push_back(
            {{},
             time("fw", i),
             size("ftmp", i),
             {SaveOption{"all", time("fw", i), time("bw", i), size("cbw", i + 1), size("ftmp", i), size("btmp", i)}}});
    chain.lossTime = time("bw", length);
    chain.lossOverhead = size("btmp", length);
    return chain;
}

} // namespace memscape::test
