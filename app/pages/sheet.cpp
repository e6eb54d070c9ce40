// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/sheet.h"

#include "app/pages/experiment_page.h"
#include "app/pages/records/record_text.h"

#include <QBuffer>
#include <QFileInfo>
#include <QPainter>
#include <QPdfWriter>
#include <QSvgGenerator>

#include "core/base/file.h"
#include "core/base/json.h"
#include "core/experiment/record.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

constexpr double margin = 24, leastPlot = 210;
constexpr double plainPicture = 200, plainPlot = 300; ///< heights where nothing else is wished

double figureRow()
{
    return QFontMetricsF(relativeFont(0.95, true)).height() + 8;
}

/// Those that say something of the prediction.
QString parametersText(const ExperimentPage& page, const Device& device)
{
    QStringList parts;
    const Parameters parameters = page.parameters();
    const auto idle = page.experiment().idleParameters(device, parameters);
    for (const auto& [key, value] : parameters.values()) {
        const ParameterSpec* spec = findParameter(page.experiment().schema(), key);
        const bool swept = parameters.sweep() && parameters.sweep()->key == key;
        if (spec == nullptr || !(swept || isNamed(*spec, value)) || std::ranges::find(idle, key) != idle.end())
            continue;
        const QString text =
            swept ? QObject::tr("swept") : QString::fromStdString(valueLabel(*spec, value, page.byteStyle()));
        if (!text.isEmpty())
            parts << QString::fromStdString(spec->label) + u' ' + text;
    }
    return parts.join(QStringLiteral(" · "));
}

double textHeight(QPainter& painter)
{
    return painter.fontMetrics().height();
}

/// Draws the figures as columns side by side; returns the height it took.
double paintFigures(QPainter& painter, const QRectF& rect, const Sheet& sheet, const Theme& theme)
{
    FiguresModel model;
    model.setRows(sheet.figures, sheet.bytes);
    const bool hasBaseline = !sheet.figures.empty() && sheet.figures.front().hasBaseline;
    const bool isMeasured =
        std::ranges::any_of(sheet.figures, [](const FigureRow& one) { return one.measured.has_value(); });
    const int columns = hasBaseline ? FiguresModel::NUM_COLUMNS
        : isMeasured                ? FiguresModel::BaselineColumn
                                    : FiguresModel::MeasuredColumn; // nothing to set beside the prediction
    const double value = hasBaseline ? 0.2 : isMeasured ? 0.22 : 0.6;
    const double shares[] = {hasBaseline ? 0.3 : 0.4, value, value, hasBaseline ? 0.15 : 0.16, 0.15};
    const QColor heads[] = {theme.text, theme.predictedText, theme.measuredText, theme.textFaint, theme.textFaint};
    const double row = figureRow();
    double y = rect.top();
    for (int line = -1; line < model.rowCount(); ++line, y += row) {
        double x = rect.left();
        for (int column = 0; column < columns; ++column) {
            const double width = rect.width() * shares[column];
            const QString text = line < 0
                ? model.headerData(column, Qt::Horizontal, Qt::DisplayRole).toString().replace(u'\n', u' ')
                : model.index(line, column).data().toString().replace(u'\n', QStringLiteral(" · "));
            painter.setFont(relativeFont(0.95, line < 0 || column == 1 || column == 2));
            painter.setPen(line < 0 ? heads[column] : column == 0 ? theme.textDim : theme.text);
            painter.drawText(QRectF(x, y, width - 4, row),
                             int(Qt::AlignVCenter | (column == 0 ? Qt::AlignLeft : Qt::AlignRight)), text);
            x += width;
        }
        painter.setPen(theme.border);
        painter.drawLine(QPointF(rect.left(), y + row), QPointF(rect.right(), y + row));
    }
    return y - rect.top();
}

double paintTitle(QPainter& painter, const QRectF& rect, const Sheet& sheet, const Theme& theme)
{
    double y = rect.top();
    const auto line = [&](const QString& text, const QFont& font, const QColor& colour) {
        painter.setFont(font);
        painter.setPen(colour);
        const QRectF box(rect.left(), y, rect.width(), 1000);
        const QRectF used = painter.boundingRect(box, Qt::TextWordWrap, text);
        painter.drawText(box, Qt::TextWordWrap, text);
        y += used.height() + 2;
    };
    line(sheet.title, relativeFont(1.6, true), theme.text);
    line(sheet.question, relativeFont(1), theme.textDim);
    line(sheet.subtitle, relativeFont(0.9), theme.textFaint);
    return y - rect.top() + 8;
}

constexpr std::size_t largestRecord = 8u << 20; ///< bytes; a larger one is not kept in a picture

Result<void> writePixels(const QString& path, const Sheet& sheet, const QSize& size, double scale, const Theme& theme)
{
    QImage image = sheetImage(sheet, size, scale, theme);
    if (image.isNull())
        return fail("export.write", "no memory for a picture of that size", "make it smaller");
    if (const std::string record = sheet.record ? sheet.record() : std::string(); record.size() < largestRecord)
        image.setText(QString::fromLatin1(recordInPicture), QString::fromStdString(record)); // compressed in the file
    QByteArray bytes;
    QBuffer buffer(&bytes);
    if (!buffer.open(QIODevice::WriteOnly) || !image.save(&buffer, "PNG"))
        return fail("export.write", "the picture could not be encoded");
    return writeFileAtomically(path.toStdString(), bytes.toStdString());
}

Result<void> writeSvg(const QString& path, const Sheet& sheet, const QSize& size, const Theme& theme)
{
    QBuffer buffer;
    QSvgGenerator generator;
    generator.setOutputDevice(&buffer);
    generator.setSize(size);
    generator.setViewBox(QRect(QPoint(), size));
    generator.setTitle(sheet.title);
    generator.setDescription(sheet.subtitle);
    generator.setResolution(96);
    QPainter painter(&generator);
    paintSheet(painter, QRectF(QPointF(), QSizeF(size)), sheet, theme);
    painter.end();
    return writeFileAtomically(path.toStdString(), buffer.data().toStdString());
}

Result<void> writePdf(const QString& path, const Sheet& sheet, const QSize& size, const Theme& theme)
{
    QBuffer buffer;
    if (!buffer.open(QIODevice::WriteOnly))
        return fail("export.write", "no memory");
    {
        QPdfWriter writer(&buffer);
        writer.setResolution(96);
        writer.setPageSize(QPageSize(QSizeF(size) * 72.0 / 96.0, QPageSize::Point));
        writer.setPageMargins(QMarginsF());
        writer.setTitle(sheet.title);
        writer.setCreator(QStringLiteral("Memscape"));
        QPainter painter(&writer);
        paintSheet(painter, QRectF(QPointF(), QSizeF(size)), sheet, theme);
    }
    return writeFileAtomically(path.toStdString(), buffer.data().toStdString());
}

} // namespace

Sheet sheetOf(const ExperimentPage& page)
{
    Sheet sheet;
    sheet.bytes = page.byteStyle();
    sheet.title = page.title();
    sheet.question = page.question();
    if (const Record* record = page.prediction())
        sheet.subtitle =
            QString::fromStdString(record->device.name) + QStringLiteral(" · ") + parametersText(page, record->device);
    if (const Record* record = page.prediction())
        sheet.footer = QObject::tr("Memscape %1 · prediction based on: %2")
                           .arg(QString::fromStdString(programVersion()), basisText(record->device, TimeText::Date));
    if (const Picture* picture = page.picture(); picture && !picture->isHidden()) {
        sheet.picture = [picture](QPainter& painter, const QRectF& rect, const Theme& theme) {
            picture->paintTo(painter, rect, theme);
        };
        sheet.pictureHeight = picture->sizeHint().height();
    }
    sheet.plot = page.plot()->isFolded() ? nullptr : page.plot()->view();
    sheet.figures = page.inspector()->figures()->figures()->rows();
    sheet.record = [&page]() -> std::string {
        const auto shown = page.shownRecord();
        return shown ? jsonLine(recordToJson(*shown)) : std::string();
    };
    return sheet;
}

QSize roomFor(const Sheet& sheet, QSize least)
{
    const double title = 6 * QFontMetricsF(relativeFont(1)).height(),
                 foot = 2 * QFontMetricsF(relativeFont(0.85)).height();
    const double picture = !sheet.picture ? 0 : sheet.pictureHeight > 0 ? sheet.pictureHeight : plainPicture;
    const double needed = 2 * margin + title + picture + (sheet.plot ? plainPlot : 0)
        + figureRow() * double(sheet.figures.size() + 1) + foot;
    return {least.width(), std::max(least.height(), int(std::ceil(needed)))};
}

void paintSheet(QPainter& painter, const QRectF& rect, const Sheet& sheet, const Theme& theme)
{
    painter.fillRect(rect, theme.background);
    if (sheet.isBare && sheet.picture)
        return sheet.picture(painter, rect, theme);
    QRectF inner = rect.adjusted(margin, margin, -margin, -margin);
    inner.setTop(inner.top() + paintTitle(painter, inner, sheet, theme));

    painter.setFont(relativeFont(0.85));
    painter.setPen(theme.textFaint);
    painter.drawText(inner, Qt::AlignLeft | Qt::AlignBottom, sheet.footer);
    inner.setBottom(inner.bottom() - textHeight(painter) - 8);

    const double figures = figureRow() * double(sheet.figures.size() + 1) + 10;
    QRectF table = inner;
    table.setTop(std::max(inner.top() + inner.height() * 0.4, inner.bottom() - figures));
    paintFigures(painter, table, sheet, theme);
    inner.setBottom(table.top() - 8);

    if (sheet.picture) {
        QRectF picture = inner;
        const double most =
            std::max(inner.height() * 0.42, inner.height() - leastPlot); // panels need more than a strip
        const double wanted = sheet.pictureHeight > 0 ? sheet.pictureHeight : plainPicture;
        picture.setHeight(sheet.plot ? std::min(wanted, most) : inner.height());
        sheet.picture(painter, picture, theme);
        inner.setTop(picture.bottom() + 8);
    }
    if (sheet.plot)
        sheet.plot->paintTo(painter, inner, theme);
}

QImage sheetImage(const Sheet& sheet, const QSize& size, double scale, const Theme& theme)
{
    QImage image(size * scale, QImage::Format_ARGB32_Premultiplied);
    if (image.isNull())
        return image;
    image.setDevicePixelRatio(scale);
    QPainter painter(&image);
    painter.setRenderHint(QPainter::Antialiasing);
    paintSheet(painter, QRectF(QPointF(), QSizeF(size)), sheet, theme);
    return image;
}

Result<void> writeSheet(const QString& path, const Sheet& sheet, const QSize& size, double scale, const Theme& theme)
{
    const QString suffix = QFileInfo(path).suffix().toLower();
    if (suffix == QStringLiteral("png"))
        return writePixels(path, sheet, size, scale, theme);
    if (suffix == QStringLiteral("svg"))
        return writeSvg(path, sheet, size, theme);
    if (suffix == QStringLiteral("pdf"))
        return writePdf(path, sheet, size, theme);
    return fail("export.format", "cannot tell the kind of picture from \"" + path.toStdString() + "\"",
                "end the name in .png, .svg or .pdf");
}

} // namespace memscape
