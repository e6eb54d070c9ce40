// SPDX-License-Identifier: Apache-2.0
// What the tests of tests/gpu share: running a program, files in folders of the test's own, archives as tests/gpu/run
// makes them.
#pragma once

#include <QCryptographicHash>
#include <QDir>
#include <QDirIterator>
#include <QFile>
#include <QMap>
#include <QProcess>
#include <QTemporaryDir>

inline const QString source = QStringLiteral(SOURCE_FOLDER);
inline const QString program = QStringLiteral(BINARY_FOLDER "/memscape-cli");

struct Ran
{
    int status = -1;
    QString out, error;
};

inline Ran run(const QString& command, const QStringList& arguments, const QMap<QString, QString>& environment = {},
               int seconds = 250)
{
    QProcess process;
    auto all = QProcessEnvironment::systemEnvironment();
    for (auto one = environment.begin(); one != environment.end(); ++one)
        all.insert(one.key(), one.value());
    process.setProcessEnvironment(all);
    process.setStandardInputFile(QProcess::nullDevice());
    process.start(command, arguments);
    if (!process.waitForFinished(1000 * seconds)) {
        process.kill();
        process.waitForFinished();
        return {-1, {}, command + ": " + process.errorString()};
    }
    return {process.exitStatus() == QProcess::NormalExit ? process.exitCode() : -1,
            QString::fromUtf8(process.readAllStandardOutput()), QString::fromUtf8(process.readAllStandardError())};
}

inline QByteArray read(const QString& path)
{
    QFile file(path);
    return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
}

inline void write(const QString& path, const QByteArray& content)
{
    QDir().mkpath(QFileInfo(path).path());
    QFile file(path);
    if (file.open(QIODevice::WriteOnly))
        file.write(content);
}

inline void writeProgram(const QString& path, const QByteArray& script)
{
    write(path, "#!/bin/sh\n" + script);
    QFile::setPermissions(path, QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
}

/// Bytes by path within the folder.
inline QMap<QString, QByteArray> filesOf(const QString& folder)
{
    QMap<QString, QByteArray> files;
    for (QDirIterator at(folder, QDir::Files | QDir::Hidden, QDirIterator::Subdirectories); at.hasNext();) {
        const QString path = at.next();
        files[QDir(folder).relativeFilePath(path)] = read(path);
    }
    return files;
}

/// What an archive holds; empty when it cannot be read.
inline QMap<QString, QByteArray> filesOfArchive(const QString& archive)
{
    const QTemporaryDir folder;
    return run("tar", {"-xzf", archive, "-C", folder.path()}).status == 0 ? filesOf(folder.path())
                                                                          : QMap<QString, QByteArray>();
}

/// The steps of a stage, as --dry-run says them: (name, seconds, command), the sum last.
inline QList<QStringList> plannedSteps(const QString& stage, const QStringList& more = {})
{
    QList<QStringList> steps;
    const Ran ran = run(source + "/tests/gpu/run", QStringList{"--stage", stage, "--dry-run"} + more);
    for (const QString& line : ran.out.split('\n', Qt::SkipEmptyParts)) {
        const QStringList words = line.split(' ', Qt::SkipEmptyParts);
        const bool isSum = words.value(0) == "stage" && words.value(3) == "s";
        steps << (isSum ? QStringList{"the sum", words.value(2), {}}
                        : QStringList{words.value(0), words.value(1), words.mid(3).join(' ')});
    }
    return steps;
}
