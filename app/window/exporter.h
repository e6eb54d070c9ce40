// SPDX-License-Identifier: GPL-3.0-or-later
// Everything that leaves the window as a file or through the clipboard. The data writers are those
// of the command line (core/report), so a number is the same wherever it is written.
#pragma once

#include "app/document/study_document.h"
#include "app/pages/background_work.h"
#include "app/pages/tool_page.h"
#include "app/settings/settings.h"
#include "app/window/banner.h"

#include <QObject>

#include <functional>

namespace memscape {

class ExperimentPage;

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
    /// The predicted step as a snapshot of PyTorch, for pytorch.org/memory_viz.
    void memoryViz(ExperimentPage& page);
    void record(int index); ///< one record of the study, as JSON
    /// The study as HTML; while it has no records, what the page shows.
    void report(const ExperimentPage* page = nullptr);
    void copyPlot(ExperimentPage& page);
    void copyData(ExperimentPage& page);
    /// The chosen setting as lines of "pytorch" or a configuration of "deepspeed", to the clipboard.
    void copySnippet(ExperimentPage& page, const std::string& key);

    // exporter_tool.cpp
    void plot(const ToolPage& page);
    void page(const ToolPage& page);
    void csv(const ToolPage& page);
    void json(const ToolPage& page);
    void report(const ToolPage& page);
    void memoryViz(const ToolPage& page);
    void copyPlot(const ToolPage& page);
    void copyData(const ToolPage& page);
    bool isBusy() const { return m_work.isBusy(); }

private:
    QString ask(const QString& what, const QString& base, const QString& suffix, const QString& filters);
    void write(const QString& path, const std::string& content);
    void tell(const QString& path, const Result<void>& written);
    QString baseName(const ExperimentPage& page) const;
    static QString pictureFilters();
    void file(const QString& what, const PageExports& page, const QString& suffix, const QString& filters,
              const PageExports::Write& write);

    StudyDocument& m_document;
    Settings& m_settings;
    Banner& m_banner;
    QWidget* m_window;
    BackgroundWork m_work;
};

} // namespace memscape
