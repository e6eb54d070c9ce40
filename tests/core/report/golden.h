// SPDX-License-Identifier: Apache-2.0
// Exact texts kept as files. On a difference the actual text is written beside the test programs, so
// that `diff` shows it and, when it is right, it can be copied over.
#pragma once

#include <QCoreApplication>
#include <QDir>
#include <QFile>
#include <QTest>

#include <string>

namespace memscape::test {

inline QByteArray bytes(const std::string& text)
{
    return QByteArray::fromStdString(text);
}

inline bool sameAsGolden(const QString& name, const std::string& actual)
{
    const QString expectedPath = QStringLiteral(TEST_DATA "/report/") + name;
    QFile expected(expectedPath);
    if (expected.open(QIODevice::ReadOnly) && expected.readAll() == bytes(actual))
        return true;
    const QString actualPath = QDir::current().filePath(name);
    QFile file(actualPath);
    if (file.open(QIODevice::WriteOnly))
        file.write(bytes(actual));
    qWarning("differs: diff -u %s %s", qPrintable(expectedPath), qPrintable(actualPath));
    return false;
}

} // namespace memscape::test
