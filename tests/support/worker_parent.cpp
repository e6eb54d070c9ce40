// SPDX-License-Identifier: GPL-3.0-or-later
// A window without a window: starts the worker given as arguments, measures on it, prints the
// worker's process id, and goes on until it is killed.
#include "app/workers/worker_client.h"
#include "tests/support/sample_study.h"

#include <QCoreApplication>

#include <cstdio>

using namespace memscape;

int main(int count, char** arguments)
{
    QCoreApplication application(count, arguments);
    WorkerOptions options;
    options.command = QCoreApplication::arguments().mid(1);
    WorkerClient client(options);
    QObject::connect(&client, &WorkerClient::pointsArrived, &client, [&client] {
        std::printf("%lld\n", static_cast<long long>(client.processId()));
        std::fflush(stdout);
    });
    client.run({"stride", sample::device(), "cpu", sample::parameters()});
    return QCoreApplication::exec();
}
