// SPDX-License-Identifier: GPL-3.0-or-later
// Everything that leaves the window as a file or through the clipboard. The data writers are those
// of the command line (core/report), so a number is the same wherever it is written.
#pragma once

#include "app/document/study_document.h"
#include "app/pages/snapshot/background_work.h"
#include "app/settings/settings.h"
#include "app/window/banner.h"

#include <QObject>

#include <functional>

namespace memscape {

class ExperimentPage;
class SnapshotPage;

class Exporter : public QObject
{
    Q_OBJECT

public:
    Exporter(StudyDocument& document, Settings& settings, Banner& banner, QWidget* window);

    /// Asks for a name: (what, suggested file name, filters). Empty: cancelled. Tests answer it.
    std::function<QString(const QString&, const QString&, const QString&)> askName;

    void plot(ExperimentPage& page);
    void page(ExperimentPage& page);
    void csv(ExperimentPage& page);
    void json(ExperimentPage& page);
    void record(int index); ///< one record of the study, as JSON
    /// The study as HTML; while it has no records, what the page shows.
    void report(const ExperimentPage* page = nullptr);
    void copyPlot(ExperimentPage& page);
    void copyData(ExperimentPage& page);
    /// The chosen setting as lines of "pytorch" or a configuration of "deepspeed", to the clipboard.
    void copySnippet(ExperimentPage& page, const std::string& key);

    // exporter_snapshot.cpp
    void plot(const SnapshotPage& page);
    void page(const SnapshotPage& page);
    void csv(const SnapshotPage& page);
    void json(const SnapshotPage& page);
    void report(const SnapshotPage& page);
    void memoryViz(const SnapshotPage& page);
    void copyPlot(const SnapshotPage& page);
    void copyData(const SnapshotPage& page);
    bool isBusy() const { return m_work.isBusy(); }

private:
    QString ask(const QString& what, const QString& base, const QString& suffix, const QString& filters);
    void write(const QString& path, const std::string& content);
    void tell(const QString& path, const Result<void>& written);
    QString baseName(const ExperimentPage& page) const;
    static QString pictureFilters();
    void writeBeside(const QString& path, std::function<Result<void>()> produce);

    StudyDocument& m_document;
    Settings& m_settings;
    Banner& m_banner;
    QWidget* m_window;
    BackgroundWork m_work;
};

} // namespace memscape
