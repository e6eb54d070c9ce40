// SPDX-License-Identifier: Apache-2.0
// tests/data/pytorch/saved_bytes.json: what a real PyTorch packed for backward.
#pragma once

#include "core/network/graph.h"

#include <QtTest>

#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>

namespace memscape {

inline QJsonArray measuredSavedBytes()
{
    QFile file(QString(TEST_DATA) + "/pytorch/saved_bytes.json");
    if (!file.open(QIODevice::ReadOnly))
        qFatal("no %s", qPrintable(file.fileName()));
    return QJsonDocument::fromJson(file.readAll())["results"].toArray();
}

/// `activation 640 / buffer 16 …`, so that a failure shows the whole picture at once.
inline QString text(const SavedBytes& saved)
{
    return QString("activations %1 inputs %2 casts %3 buffers %4 parameters %5 scalars %6")
        .arg(saved.activations)
        .arg(saved.inputs)
        .arg(saved.weightCasts)
        .arg(saved.buffers)
        .arg(saved.parameters)
        .arg(saved.scalars);
}

} // namespace memscape
