// SPDX-License-Identifier: GPL-3.0-or-later
// How a worker is started: which command, in which environment, and so that it can never outlive
// us.
#pragma once

#include "core/base/result.h"

#include <QProcessEnvironment>
#include <QString>
#include <QStringList>

class QProcess;

namespace memscape {

/// memscape-cli beside this program, in ../libexec/memscape, $MEMSCAPE_WORKER (a command line), or
/// in PATH, each with "worker". Empty when there is none.
QStringList defaultWorkerCommand();

/// Ours with the C.UTF-8 locale, and without the libraries of an AppImage that we may run from
/// (they are ours, not the worker's); other entries of LD_LIBRARY_PATH stay.
QProcessEnvironment workerEnvironment(QProcessEnvironment ours);

/// Makes the process die with this one and lead a session of its own: without a terminal, ssh asks
/// for a passphrase in a window or fails at once instead of waiting for an answer that cannot be given.
/// The tie is to the thread that starts the process, so start it from the main thread.
void tieToThisProcess(QProcess& process);

/// "ssh lab-gpu memscape-cli worker", for messages.
QString commandText(const QStringList& command);

/// Why a command did not become a worker, with the remedy. `exitCode` of the process, `lastWords`
/// of its stderr.
Error endedBeforeHello(const QStringList& command, int exitCode, bool crashed, const QString& lastWords);
/// It had said hello and was not asked to end: worker.crashed; killed is said to be of
/// memory, most likely.
Error endedUnasked(int exitCode, bool crashed);
/// It began well `times` times in a row and each time ended unasked, at last for `last`: it is not started again.
Error endedTooOften(int times, const Error& last);
Error notStarted(const QStringList& command, const QString& reason);

} // namespace memscape
