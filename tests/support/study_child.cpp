// SPDX-License-Identifier: GPL-3.0-or-later
// A window without a window: opens the study FILE ("-" for a new one), edits it with an autosave
// into FOLDER, says "saved" when the recovery file is there, and goes on editing until it is killed.
#include "app/document/autosave.h"
#include "app/document/study_document.h"
#include "tests/support/sample_study.h"

#include <QCoreApplication>
#include <QFile>

#include <cstdio>

using namespace memscape;
using namespace std::chrono_literals;

int main(int count, char** arguments)
{
    QCoreApplication application(count, arguments);
    const QStringList words = QCoreApplication::arguments();
    StudyDocument document;
    Autosave autosave(&document, words.at(1), {20ms, 100ms});
    if (words.at(2) != QLatin1String("-") && !document.open(words.at(2)))
        return 1;
    document.addRecord(sample::record("not saved"));
    QTimer poll;
    QObject::connect(&poll, &QTimer::timeout, &document, [&] {
        document.setParameter("stride", "offset", document.parameters("stride").integer("offset") == 1 ? 2.0 : 1.0);
        if (QFile::exists(autosave.path())) {
            std::puts("saved");
            std::fflush(stdout);
        }
    });
    poll.start(5ms);
    return QCoreApplication::exec();
}
