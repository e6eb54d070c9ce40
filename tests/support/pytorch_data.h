// SPDX-License-Identifier: Apache-2.0
// What other programs computed or recorded, tests/data/pytorch/NAME; an empty object when it is
// missing.
#pragma once

#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>

inline QJsonObject pytorchData(const char* name)
{
    QFile file(QStringLiteral(TEST_DATA "/pytorch/") + name);
    return file.open(QIODevice::ReadOnly) ? QJsonDocument::fromJson(file.readAll()).object() : QJsonObject();
}
