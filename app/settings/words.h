// SPDX-License-Identifier: GPL-3.0-or-later
// Words of the core as Qt's text, and words of code that is in no class of Qt's, for a translator.
#pragma once

#include <QCoreApplication>
#include <QString>

#include <filesystem>
#include <string>

namespace memscape {

inline QString toQString(const std::string& words)
{
    return QString::fromStdString(words);
}

/// "Latency by working set": words that were made to stand within a sentence, or to follow a place, at its beginning.
inline QString capitalized(QString words)
{
    if (!words.isEmpty())
        words[0] = words[0].toUpper();
    return words;
}

inline std::filesystem::path pathOf(const QString& path)
{
    return std::filesystem::path(path.toStdString());
}

/// `n` replaces %n, as in QObject::tr.
inline QString tr(const char* text, int n = -1)
{
    return QCoreApplication::translate("memscape", text, nullptr, n);
}

} // namespace memscape
