// SPDX-License-Identifier: GPL-3.0-or-later
// What leaves the page Snapshot, of the selected range alone, and what --screenshot may ask of it.
#include "app/document/study_document.h"
#include "app/pages/snapshot/snapshot_page.h"
#include "app/pages/snapshot/snapshot_words.h"
#include "app/workers/devices.h"
#include "core/report/report.h"
#include "core/report/snapshot_record.h"
#include "core/snapshot/snapshot_export.h"

#include <QFileInfo>
#include <QSaveFile>

namespace memscape {

namespace {

using WritePiece = std::function<bool(std::string_view)>;

/// Piece by piece, and at its place only when all of it is written.
Result<void> writeInPieces(const QString& path, const std::function<Result<void>(const WritePiece&)>& produce)
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

    Record record() const { return snapshotRecord(*device, range, name); }
};

Result<void> writeText(const QString& path, const std::string& text)
{
    return writeInPieces(path, [&](const WritePiece& write) -> Result<void> {
        write(text);
        return {};
    });
}

} // namespace

Sheet SnapshotPage::sheet() const
{
    Sheet sheet;
    sheet.bytes = m_shown.bytes;
    sheet.title = title();
    sheet.question = facts();
    sheet.subtitle = m_inspector->rangeText();
    sheet.footer = tr("Memscape %1").arg(QString::fromStdString(programVersion()));
    if (const SnapshotView* view = picture()) {
        sheet.picture = [view](QPainter& painter, const QRectF& rect, const Theme& theme) {
            view->paintTo(painter, rect, theme);
        };
    }
    sheet.figures = m_inspector->figures()->figures()->rows();
    return sheet;
}

PageExports SnapshotPage::exports() const
{
    if (!m_shown.device)
        return {};
    const Source from{m_shown.device, m_shown.range, title().toStdString()};
    PageExports what;
    what.name = QFileInfo(file()).completeBaseName();
    what.sheet = [this] { return sheet(); };
    if (const SnapshotView* view = picture()) {
        what.hasPicture = true;
        what.pictureSize = view->size();
    }
    what.data = [this] { return data(); };
    what.csv = [from](const QString& path) {
        return writeInPieces(path,
                             [&](const WritePiece& write) { return writeBlocksCsv(*from.device, from.range, write); });
    };
    what.json = [from](const QString& path) { return writeText(path, reportJson({from.record()}, from.name)); };
    what.report = [from](const QString& path) { return writeText(path, reportHtml({from.record()}, from.name)); };
    what.memoryViz = [from](const QString& path) {
        return writeInPieces(path,
                             [&](const WritePiece& write) { return writeMemoryViz(*from.device, from.range, write); });
    };
    return what;
}

/// "file=run.pickle", "record=run.json", "view=blocks", "compare=other.pickle", "range=1200:2400" or "range=25%:75%",
/// "time=true"; anything else is a parameter of the prediction that is drawn beside it.
Result<void> SnapshotPage::apply(const ScreenshotRequest& request)
{
    std::vector<std::string> beside;
    QString range;
    for (const QString& assignment : request.values) {
        const QString key = assignment.section(u'=', 0, 0), value = assignment.section(u'=', 1);
        if (key == QStringLiteral("file"))
            open(value);
        else if (key == QStringLiteral("record"))
            request.openFile(value);
        else if (key == QStringLiteral("compare"))
            compareWith(value);
        else if (key == QStringLiteral("view"))
            setKind(value);
        else if (key == QStringLiteral("range"))
            range = value;
        else if (key == QStringLiteral("time"))
            set("time", Json(value == QStringLiteral("true")));
        else
            beside.push_back(assignment.toStdString());
    }
    if (!beside.empty()) {
        MEMSCAPE_TRY(experiment, findExperiment("training-memory"));
        if (!request.device.empty())
            setDevice(request.device);
        const DeviceEntry* entry = m_services.devices.find(deviceId());
        MEMSCAPE_TRY(parameters,
                     entry ? standardParameters(*experiment, entry->device, beside)
                           : askedParameters(*experiment, beside));
        m_services.document.setParameters("training-memory", parameters, QStringLiteral("parameters"));
        set("beside", Json(true));
    }
    if (range.isEmpty())
        return {};
    MEMSCAPE_CHECK(request.settle());
    if (!m_shown.device)
        return {}; // the page says why
    MEMSCAPE_TRY(events, parseEventRange(range.toStdString(), m_shown.device->lifetimes().events()));
    select(events.first, events.last);
    return {};
}

} // namespace memscape
