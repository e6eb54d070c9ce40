// SPDX-License-Identifier: GPL-3.0-or-later
// What leaves the page Snapshot. The selected range alone is written; of a large one that takes seconds, so files are
// made beside the window's thread.
#include "app/pages/sheet.h"
#include "app/pages/snapshot/snapshot_page.h"
#include "app/window/exporter.h"
#include "core/report/report.h"
#include "core/report/snapshot_record.h"
#include "core/snapshot/snapshot_export.h"

#include <QApplication>
#include <QClipboard>
#include <QFileInfo>
#include <QSaveFile>

namespace memscape {

namespace {

using Write = std::function<bool(std::string_view)>;

/// Piece by piece, and at its place only when all of it is written.
Result<void> writeInPieces(const QString& path, const std::function<Result<void>(const Write&)>& produce)
{
    QSaveFile file(path);
    const auto failed = [&] {
        return fail("file.write", QObject::tr("cannot write %1: %2").arg(path, file.errorString()).toStdString(),
                    "choose another folder, or free some space");
    };
    if (!file.open(QIODevice::WriteOnly))
        return failed();
    bool isWritten = true;
    MEMSCAPE_CHECK(produce([&](std::string_view piece) {
        isWritten = file.write(piece.data(), qint64(piece.size())) == qint64(piece.size());
        return isWritten;
    }));
    if (!isWritten || !file.commit())
        return failed();
    return {};
}

/// What a file is made of, on any thread.
struct Source
{
    std::shared_ptr<const SnapshotDevice> device;
    EventRange range;
    std::string name;
};

Source sourceOf(const SnapshotPage& page)
{
    return {page.shown().device, page.shown().range, page.title().toStdString()};
}

QString baseOf(const SnapshotPage& page)
{
    return QFileInfo(page.file()).completeBaseName();
}

} // namespace

void Exporter::writeBeside(const QString& path, std::function<Result<void>()> produce)
{
    m_banner.showNotice(tr("Writing %1…").arg(QFileInfo(path).fileName()));
    m_work.start([this, path, produce = std::move(produce)]() -> BackgroundWork::Finish {
        return [this, path, written = produce()] { tell(path, written); };
    });
}

void Exporter::plot(const SnapshotPage& page)
{
    if (page.picture() == nullptr)
        return m_banner.showNotice(tr("A table has no picture: export it as CSV, or copy it."));
    const ExportDefaults defaults = m_settings.exportDefaults();
    const QString path = ask(tr("Export plot"), baseOf(page), defaults.format, pictureFilters());
    if (path.isEmpty())
        return;
    Sheet alone = sheetOf(page);
    alone.isBare = true;
    tell(path, writeSheet(path, alone, defaults.size / 2, 2, defaults.followTheme ? currentTheme() : lightTheme()));
}

void Exporter::page(const SnapshotPage& page)
{
    const ExportDefaults defaults = m_settings.exportDefaults();
    const QString path =
        ask(tr("Export page"), baseOf(page) + QStringLiteral("-page"), defaults.format, pictureFilters());
    if (path.isEmpty())
        return;
    const QSize size(std::max(800, defaults.size.width() / 2), std::max(1000, defaults.size.height() / 2));
    tell(path, writeSheet(path, sheetOf(page), size, 2, defaults.followTheme ? currentTheme() : lightTheme()));
}

void Exporter::csv(const SnapshotPage& page)
{
    const QString path = ask(tr("Export blocks as CSV"), baseOf(page), QStringLiteral("csv"), tr("CSV table (*.csv)"));
    if (!path.isEmpty())
        writeBeside(path, [path, from = sourceOf(page)] {
            return writeInPieces(path,
                                 [&](const Write& write) { return writeBlocksCsv(*from.device, from.range, write); });
        });
}

void Exporter::json(const SnapshotPage& page)
{
    const QString path = ask(tr("Export figures and findings as JSON"), baseOf(page), QStringLiteral("json"),
                             tr("Memscape record (*.json)"));
    if (!path.isEmpty())
        writeBeside(path, [path, from = sourceOf(page)] {
            const std::string text = reportJson({snapshotRecord(*from.device, from.range, from.name)}, from.name);
            return writeInPieces(path, [&](const Write& write) -> Result<void> {
                write(text);
                return {};
            });
        });
}

void Exporter::report(const SnapshotPage& page)
{
    const QString path =
        ask(tr("Export snapshot as report"), baseOf(page), QStringLiteral("html"), tr("HTML page (*.html)"));
    if (!path.isEmpty())
        writeBeside(path, [path, from = sourceOf(page)] {
            const std::string text = reportHtml({snapshotRecord(*from.device, from.range, from.name)}, from.name);
            return writeInPieces(path, [&](const Write& write) -> Result<void> {
                write(text);
                return {};
            });
        });
}

void Exporter::memoryViz(const SnapshotPage& page)
{
    const QString path = ask(tr("Export for memory_viz"), baseOf(page) + QStringLiteral("-range"),
                             QStringLiteral("pickle"), tr("Memory snapshot (*.pickle)"));
    if (!path.isEmpty())
        writeBeside(path, [path, from = sourceOf(page)] {
            return writeInPieces(path,
                                 [&](const Write& write) { return writeMemoryViz(*from.device, from.range, write); });
        });
}

void Exporter::copyPlot(const SnapshotPage& page)
{
    if (page.picture() == nullptr)
        return copyData(page);
    Sheet alone = sheetOf(page);
    alone.isBare = true;
    QApplication::clipboard()->setImage(sheetImage(alone, page.picture()->size(), 2, currentTheme()));
    m_banner.showNotice(tr("The plot is in the clipboard."));
}

void Exporter::copyData(const SnapshotPage& page)
{
    QApplication::clipboard()->setText(page.data());
    m_banner.showNotice(tr("The data are in the clipboard, as a table."));
}

} // namespace memscape
