// SPDX-License-Identifier: GPL-3.0-or-later
// What leaves a page that is no experiment, which says itself what it has; and files that are made beside the window's
// thread, since that takes seconds for some.
#include "app/pages/experiment_page.h"
#include "app/pages/tool_page.h"
#include "app/window/exporter.h"
#include "core/base/file.h"
#include "core/experiments/training-memory/memory_history.h"

#include <QApplication>
#include <QClipboard>
#include <QFileInfo>

#include <algorithm>

namespace memscape {

void Exporter::file(const QString& what, const PageExports& page, const QString& suffix, const QString& filters,
                    const PageExports::Write& write)
{
    if (!write)
        return m_banner.showNotice(tr("There is nothing to export here yet."));
    const QString path = ask(what, page.name, suffix, filters);
    if (path.isEmpty())
        return;
    m_banner.showNotice(tr("Writing %1…").arg(QFileInfo(path).fileName()));
    m_work.start([this, path, write]() -> BackgroundWork::Finish {
        return [this, path, written = write(path)] { tell(path, written); };
    });
}

void Exporter::plot(const ToolPage& page)
{
    const PageExports what = page.exports();
    if (!what.hasPicture)
        return m_banner.showNotice(tr("There is no picture here: export the data, or copy them."));
    const ExportDefaults defaults = m_settings.exportDefaults();
    const QString path = ask(tr("Export plot"), what.name, defaults.format, pictureFilters());
    if (path.isEmpty())
        return;
    Sheet alone = what.sheet();
    alone.isBare = true;
    tell(path, writeSheet(path, alone, defaults.size / 2, 2, defaults.followTheme ? currentTheme() : lightTheme()));
}

void Exporter::page(const ToolPage& page)
{
    const PageExports what = page.exports();
    if (!what.sheet)
        return m_banner.showNotice(tr("There is nothing to export here yet."));
    const ExportDefaults defaults = m_settings.exportDefaults();
    const QString path = ask(tr("Export page"), what.name + QStringLiteral("-page"), defaults.format, pictureFilters());
    if (path.isEmpty())
        return;
    const QSize size(std::max(800, defaults.size.width() / 2), std::max(1000, defaults.size.height() / 2));
    tell(path, writeSheet(path, what.sheet(), size, 2, defaults.followTheme ? currentTheme() : lightTheme()));
}

void Exporter::csv(const ToolPage& page)
{
    const PageExports what = page.exports();
    file(tr("Export data as CSV"), what, QStringLiteral("csv"),
         what.csvFilters.isEmpty() ? tr("CSV table (*.csv)") : what.csvFilters, what.csv);
}

void Exporter::json(const ToolPage& page)
{
    const PageExports what = page.exports();
    file(tr("Export data as JSON"), what, QStringLiteral("json"), tr("JSON (*.json)"), what.json);
}

void Exporter::report(const ToolPage& page)
{
    const PageExports what = page.exports();
    file(tr("Export page as report"), what, QStringLiteral("html"), tr("HTML page (*.html)"), what.report);
}

void Exporter::memoryViz(ExperimentPage& page)
{
    if (!page.prediction())
        return m_banner.showNotice(tr("There is no step here yet."));
    PageExports what;
    what.name = baseName(page) + QStringLiteral("-step");
    what.memoryViz = [device = page.prediction()->device,
                      parameters = page.prediction()->parameters](const QString& path) -> Result<void> {
        MEMSCAPE_TRY(history, memoryHistory(device, parameters));
        return writeFileAtomically(path.toStdString(), history);
    };
    file(tr("Export for memory_viz"), what, QStringLiteral("pickle"), tr("Memory snapshot (*.pickle)"), what.memoryViz);
}

void Exporter::memoryViz(const ToolPage& page)
{
    PageExports what = page.exports();
    what.name += QStringLiteral("-range");
    file(tr("Export for memory_viz"), what, QStringLiteral("pickle"), tr("Memory snapshot (*.pickle)"), what.memoryViz);
}

void Exporter::copyPlot(const ToolPage& page)
{
    const PageExports what = page.exports();
    if (!what.hasPicture)
        return copyData(page);
    Sheet alone = what.sheet();
    alone.isBare = true;
    QApplication::clipboard()->setImage(sheetImage(alone, what.pictureSize, 2, currentTheme()));
    m_banner.showNotice(tr("The plot is in the clipboard."));
}

void Exporter::copyData(const ToolPage& page)
{
    const PageExports what = page.exports();
    if (!what.data)
        return m_banner.showNotice(tr("There is nothing to copy here yet."));
    QApplication::clipboard()->setText(what.data());
    m_banner.showNotice(tr("The data are in the clipboard, as a table."));
}

} // namespace memscape
