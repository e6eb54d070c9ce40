// SPDX-License-Identifier: Apache-2.0
// The real program, run as a script would run it.
#pragma once

#include <QJsonDocument>
#include <QJsonObject>
#include <QProcess>
#include <QTest>

namespace memscape::test {

inline const QString cliPath = QStringLiteral(BINARY_FOLDER "/memscape-cli");

struct Ran
{
    int code = -1; ///< −1: it crashed or never ended
    QByteArray out, err;

    /// The one JSON document on standard output; null when there is anything else.
    QJsonObject json() const
    {
        QJsonParseError error;
        const auto document = QJsonDocument::fromJson(out, &error);
        return error.error == QJsonParseError::NoError ? document.object() : QJsonObject();
    }
    bool says(const char* words) const { return err.contains(words); }
};

inline Ran runProgram(const QString& program, const QStringList& words, const QByteArray& input = {},
                      const QStringList& environment = {})
{
    QProcess process;
    auto variables = QProcessEnvironment::systemEnvironment();
    for (const QString& pair : environment)
        variables.insert(pair.section('=', 0, 0), pair.section('=', 1));
    process.setProcessEnvironment(variables);
    process.start(program, words);
    process.write(input);
    process.closeWriteChannel();
    Ran ran;
    if (process.waitForFinished(240'000) && process.exitStatus() == QProcess::NormalExit)
        ran.code = process.exitCode();
    ran.out = process.readAllStandardOutput();
    ran.err = process.readAllStandardError();
    return ran;
}

inline Ran cli(const QStringList& words, const QByteArray& input = {}, const QStringList& environment = {})
{
    return runProgram(cliPath, words, input, environment);
}

/// Through the shell, with $CLI as the program: pipes, limits, redirections.
inline Ran shell(const QString& script)
{
    return runProgram("/bin/sh", {"-c", script}, {}, {"CLI=" + cliPath});
}

} // namespace memscape::test
