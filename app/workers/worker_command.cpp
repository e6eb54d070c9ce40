// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workers/worker_command.h"

#include <QCoreApplication>
#include <QDir>
#include <QFileInfo>
#include <QProcess>
#include <QStandardPaths>

#include <csignal>

#include <sys/prctl.h>
#include <unistd.h>

namespace memscape {

namespace {

QString translated(const char* text)
{
    return QCoreApplication::translate("memscape::Worker", text);
}

} // namespace

QStringList defaultWorkerCommand()
{
    const QString name = QStringLiteral("memscape-cli");
    const QString word = QStringLiteral("worker");
    const QDir here(QCoreApplication::applicationDirPath());
    for (const QString& path :
         {here.filePath(name), QDir::cleanPath(here.filePath(QStringLiteral("../libexec/memscape/") + name))}) {
        if (QFileInfo(path).isExecutable())
            return {path, word};
    }
    const QStringList given = QProcess::splitCommand(qEnvironmentVariable("MEMSCAPE_WORKER"));
    if (!given.isEmpty())
        return given.contains(word) ? given : given + QStringList{word};
    const QString found = QStandardPaths::findExecutable(name);
    return found.isEmpty() ? QStringList() : QStringList{found, word};
}

QProcessEnvironment workerEnvironment(QProcessEnvironment ours)
{
    ours.insert(QStringLiteral("LC_ALL"), QStringLiteral("C.UTF-8"));
    const QString libraries = QStringLiteral("LD_LIBRARY_PATH");
    const QString image = ours.value(QStringLiteral("APPDIR"));
    if (image.isEmpty() || !ours.contains(libraries))
        return ours;
    QStringList kept;
    for (const QString& folder : ours.value(libraries).split(QLatin1Char(':'))) {
        if (!folder.startsWith(image))
            kept.append(folder);
    }
    if (kept.isEmpty())
        ours.remove(libraries);
    else
        ours.insert(libraries, kept.join(QLatin1Char(':')));
    return ours;
}

void tieToThisProcess(QProcess& process)
{
    const pid_t parent = ::getpid();
    process.setChildProcessModifier([parent] {
        // Between fork and exec: only calls that are safe there.
        ::setsid();
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != parent) // gone before prctl took effect
            ::_exit(1);
    });
}

QString commandText(const QStringList& command)
{
    QStringList words;
    for (const QString& word : command)
        words.append(word.contains(QLatin1Char(' ')) ? QStringLiteral("\"%1\"").arg(word) : word);
    return words.join(QLatin1Char(' '));
}

Error notStarted(const QStringList& command, const QString& reason)
{
    if (command.isEmpty()) {
        return {"worker.missing",
                translated("memscape-cli was not found").toStdString(),
                {},
                translated("install it beside the window, or set MEMSCAPE_WORKER to its path").toStdString()};
    }
    return {
        "worker.missing", translated("%1 cannot be started: %2").arg(command.first(), reason).toStdString(),
        commandText(command).toStdString(),
        translated("check that the program is installed and the command is spelled as in a terminal").toStdString()};
}

Error endedBeforeHello(const QStringList& command, int exitCode, bool crashed, const QString& lastWords)
{
    QString hint = translated("run the command in a terminal to see its output");
    if (exitCode == 127)
        hint = translated("memscape-cli is not installed there, or not in PATH for such commands");
    else if (exitCode == 255 && command.value(0).endsWith(QLatin1String("ssh")))
        hint = translated("check that ssh connects without asking anything (key, known host)");
    QString message = crashed ? translated("the worker crashed (signal %1) before it sent hello").arg(exitCode)
                              : translated("the worker ended with code %1 before it sent hello").arg(exitCode);
    if (!lastWords.isEmpty())
        message += QStringLiteral(": ") + lastWords;
    return {"worker.start", message.toStdString(), commandText(command).toStdString(), hint.toStdString()};
}

Error endedUnasked(int exitCode, bool crashed)
{
    if (crashed && exitCode == SIGKILL)
        return {"worker.crashed",
                translated("the worker was killed, as the system does when the memory runs out").toStdString(),
                {},
                translated("choose smaller sizes, or close other programs; a new worker is started").toStdString()};
    const QString message = crashed ? translated("the worker crashed (signal %1)").arg(exitCode)
                                    : translated("the worker ended unexpectedly (code %1)").arg(exitCode);
    return {"worker.crashed",
            message.toStdString(),
            {},
            translated("a new worker is started; Copy details has its last output").toStdString()};
}

Error endedTooOften(int times, const Error& last)
{
    return {
        "worker.gave-up",
        translated("the worker starts, but ended by itself %1 times in a row; the last time: %2")
            .arg(times)
            .arg(QString::fromStdString(last.message))
            .toStdString(),
        {},
        translated("it is not started again by itself: choose smaller sizes or another device, then Restart workers")
            .toStdString()};
}

} // namespace memscape
