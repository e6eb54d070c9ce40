// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/exporter.h"

#include "app/pages/experiment_page.h"
#include "app/pages/records/record_text.h"
#include "app/pages/sheet.h"
#include "core/base/file.h"
#include "core/report/report.h"

#include <QApplication>
#include <QClipboard>
#include <QDesktopServices>
#include <QDir>
#include <QFileDialog>
#include <QFileInfo>
#include <QGuiApplication>
#include <QUrl>

#include <algorithm>

namespace memscape {

QString Exporter::pictureFilters()
{
    return tr("PNG picture (*.png);;SVG drawing (*.svg);;PDF document (*.pdf)");
}

Exporter::Exporter(StudyDocument& document, Settings& settings, Banner& banner, QWidget* window)
    : QObject(window)
    , m_document(document)
    , m_settings(settings)
    , m_banner(banner)
    , m_window(window)
{
    askName = [this](const QString& what, const QString& suggested, const QString& filters) {
        QString chosen;
        QString path = QFileDialog::getSaveFileName(m_window, what, suggested, filters, &chosen);
        if (!path.isEmpty() && QFileInfo(path).suffix().isEmpty()) {
            const qsizetype star = chosen.indexOf(QStringLiteral("*."));
            if (star >= 0)
                path += u'.' + chosen.mid(star + 2).section(u')', 0, 0);
        }
        return path;
    };
}

QString Exporter::baseName(const ExperimentPage& page) const
{
    QString name = QString::fromStdString(page.experiment().id());
    if (const Record* record = page.prediction())
        name += u'-' + shortDeviceName(record->device).toLower().replace(u' ', u'-');
    return name;
}

QString Exporter::ask(const QString& what, const QString& base, const QString& suffix, const QString& filters)
{
    const ExportDefaults defaults = m_settings.exportDefaults();
    const QString path = askName(what, QDir(defaults.folder).filePath(base + u'.' + suffix), filters);
    if (!path.isEmpty() && QFileInfo(path).absoluteDir().exists()) {
        ExportDefaults next = defaults;
        next.folder = QFileInfo(path).absolutePath();
        m_settings.setExportDefaults(next);
    }
    return path;
}

void Exporter::tell(const QString& path, const Result<void>& written)
{
    if (!written) {
        m_banner.showError(written.error(), path);
        return;
    }
    m_banner.put({BannerKind::Info,
                  tr("Wrote %1.").arg(QDir::toNativeSeparators(path)),
                  {},
                  {},
                  {{tr("Open"), [path] { QDesktopServices::openUrl(QUrl::fromLocalFile(path)); }}},
                  QStringLiteral("export")});
}

void Exporter::write(const QString& path, const std::string& content)
{
    tell(path, writeFileAtomically(path.toStdString(), content));
}

void Exporter::plot(ExperimentPage& page)
{
    const ExportDefaults defaults = m_settings.exportDefaults();
    const QString path = ask(tr("Export plot"), baseName(page), defaults.format, pictureFilters());
    if (path.isEmpty())
        return;
    if (page.plot()->isFolded()) { // the picture is the plot
        Sheet alone = sheetOf(page);
        alone.isBare = true;
        return tell(
            path, writeSheet(path, alone, defaults.size / 2, 2, defaults.followTheme ? currentTheme() : lightTheme()));
    }
    PlotExport options;
    options.scale = 2;
    options.size = defaults.size / 2;
    options.theme = defaults.followTheme ? ExportTheme::AsOnScreen : ExportTheme::Light;
    options.title = page.plot()->view()->title();
    options.description = sheetOf(page).subtitle;
    tell(path, page.plot()->view()->exportTo(path, options));
}

void Exporter::page(ExperimentPage& page)
{
    const ExportDefaults defaults = m_settings.exportDefaults();
    const QString path =
        ask(tr("Export page"), baseName(page) + QStringLiteral("-page"), defaults.format, pictureFilters());
    if (path.isEmpty())
        return;
    const Theme& theme = defaults.followTheme ? currentTheme() : lightTheme();
    const QSize least(std::max(800, defaults.size.width() / 2), std::max(1000, defaults.size.height() / 2));
    const Sheet sheet = sheetOf(page);
    tell(path, writeSheet(path, sheet, roomFor(sheet, least), 2, theme));
}

void Exporter::csv(ExperimentPage& page)
{
    const QString path = ask(tr("Export data as CSV"), baseName(page), QStringLiteral("csv"), tr("CSV table (*.csv)"));
    if (!path.isEmpty())
        write(path, reportCsv(page.exportRecords()));
}

void Exporter::json(ExperimentPage& page)
{
    const QString path =
        ask(tr("Export data as JSON"), baseName(page), QStringLiteral("json"), tr("Memscape record (*.json)"));
    if (!path.isEmpty())
        write(path, reportJson(page.exportRecords(), page.experiment().title()));
}

void Exporter::record(int index)
{
    if (index < 0 || index >= int(m_document.records().size()))
        return;
    const Record record = m_document.records()[std::size_t(index)];
    const QString path = ask(tr("Save record"), recordName(record).replace(u'/', u'-'), QStringLiteral("json"),
                             tr("Memscape record (*.json)"));
    if (!path.isEmpty())
        tell(path, writeRecord(std::filesystem::path(path.toStdString()), record));
}

void Exporter::report(const ExperimentPage* page)
{
    std::vector<Record> records = m_document.records();
    if (records.empty() && page != nullptr)
        records = page->exportRecords();
    if (records.empty()) {
        m_banner.put({BannerKind::Warning,
                      tr("The study has no records to report yet."),
                      tr("Measure something first, or export this page's data as JSON."),
                      {},
                      {},
                      QStringLiteral("export")});
        return;
    }
    const QString base = QFileInfo(m_document.displayName()).completeBaseName();
    const QString path =
        ask(tr("Export study as report"), base, QStringLiteral("html"), tr("HTML page (*.html);;Markdown (*.md)"));
    if (path.isEmpty())
        return;
    const bool markdown = QFileInfo(path).suffix().toLower() == QStringLiteral("md");
    std::string title = m_document.title().empty() ? m_document.displayName().toStdString() : m_document.title();
    if (m_document.records().empty() && m_document.title().empty())
        title = page->title().toStdString();
    write(path, markdown ? reportMarkdown(records, title) : reportHtml(records, title));
}

void Exporter::copyPlot(ExperimentPage& page)
{
    if (page.plot()->isFolded()) {
        Sheet alone = sheetOf(page);
        alone.isBare = true;
        QApplication::clipboard()->setImage(sheetImage(alone, page.picture()->size(), 2, currentTheme()));
    } else {
        page.plot()->view()->copyImage();
    }
    m_banner.showNotice(tr("The plot is in the clipboard."));
}

void Exporter::copyData(ExperimentPage& page)
{
    page.plot()->view()->copyData();
    m_banner.showNotice(tr("The data are in the clipboard, as a table."));
}

void Exporter::copySnippet(ExperimentPage& page, const std::string& key)
{
    const std::vector<Snippet> snippets = page.snippets();
    const auto snippet = std::ranges::find(snippets, key, &Snippet::key);
    if (snippet == snippets.end())
        return m_banner.showNotice(tr("The settings of this page have no such lines."));
    QGuiApplication::clipboard()->setText(QString::fromStdString(snippet->text));
    const QString done = tr("In the clipboard: %1.").arg(QString::fromStdString(snippet->label));
    if (snippet->notes.empty())
        return m_banner.showNotice(done);
    QStringList notes;
    for (const std::string& note : snippet->notes)
        notes << QString::fromStdString(note);
    m_banner.put({BannerKind::Info, done, notes.join(u' '), {}, {}, QStringLiteral("snippet")});
}

} // namespace memscape
