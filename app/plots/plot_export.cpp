// SPDX-License-Identifier: GPL-3.0-or-later
// Files and clipboard. Exports are drawn by a second scene with the export's theme and size, so
// they look the same on every screen and never touch the plot that is shown. Every failure is an
// answer.
#include "app/plots/plot_private.h"

#include "core/base/file.h"

#include <QApplication>
#include <QBuffer>
#include <QClipboard>
#include <QFileInfo>
#include <QImageWriter>
#include <QMimeData>
#include <QPaintEngine>
#include <QPainter>
#include <QPdfWriter>
#include <QPicture>
#include <QSvgGenerator>

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

constexpr int largestSide = 16384; // pixels of an exported image

const Theme& themeOf(ExportTheme theme)
{
    if (theme == ExportTheme::AsOnScreen)
        return currentTheme();
    return theme == ExportTheme::Dark ? darkTheme() : lightTheme();
}

Result<void> writeBytes(const QString& path, const QByteArray& bytes)
{
    return writeFileAtomically(path.toStdString(), {bytes.constData(), static_cast<std::size_t>(bytes.size())});
}

Error unwritable(const QString& path, const QString& reason)
{
    return {"export.write",
            PlotView::tr("%1 could not be written: %2").arg(path, reason).toStdString(),
            {},
            PlotView::tr("Choose another folder or name.").toStdString()};
}

} // namespace

void PlotView::Private::fillScene(PlotScene& target) const
{
    const PlotState& from = scene.state();
    target.state().x = from.x;
    target.state().y = from.y;
    target.setCurves(from.curves);
    PlotState& to = target.state();
    to.title = from.title;
    to.emptyText = from.emptyText;
    to.markers = from.markers;
    for (Marker& marker : to.markers)
        marker.draggable = false; // on paper it is a value, not a handle
    to.lines = from.lines;
    to.bands = from.bands;
    to.phases = from.phases;
    to.callouts = from.callouts;
    to.xRange = from.xRange;
    to.yRange = from.yRange;
}

QImage PlotView::image(const PlotExport& options)
{
    m_d->ensureRanges();
    const QSize size = options.size.expandedTo({64, 64});
    const double scale =
        std::clamp(options.scale, 0.1, static_cast<double>(largestSide) / std::max(size.width(), size.height()));
    QImage image((QSizeF(size) * scale).toSize(), QImage::Format_ARGB32_Premultiplied);
    if (image.isNull())
        return image;
    PlotScene scene;
    scene.setTheme(themeOf(options.theme));
    m_d->fillScene(scene);
    if (!options.title.isEmpty())
        scene.state().title = options.title;
    image.fill(scene.theme().background);
    scene.render(image, size, scale, false);
    const int dotsPerMetre = static_cast<int>(std::lround(96 * scale / 0.0254));
    image.setDotsPerMeterX(dotsPerMetre);
    image.setDotsPerMeterY(dotsPerMetre);
    image.setText(QStringLiteral("Title"), scene.state().title);
    image.setText(QStringLiteral("Software"), QStringLiteral("Memscape"));
    if (!options.description.isEmpty())
        image.setText(QStringLiteral("Description"), options.description);
    return image;
}

Result<void> PlotView::exportTo(const QString& path, const PlotExport& options)
{
    const QString kind = QFileInfo(path).suffix().toLower();
    const QString title = options.title.isEmpty() ? this->title() : options.title;
    QByteArray bytes;
    QBuffer buffer(&bytes);
    buffer.open(QIODevice::WriteOnly);
    if (kind == QLatin1String("png")) {
        QImageWriter writer(&buffer, "png");
        if (!writer.write(image(options)))
            return fail(unwritable(path, writer.errorString()));
        return writeBytes(path, bytes);
    }
    if (kind != QLatin1String("svg") && kind != QLatin1String("pdf"))
        return fail("export.format", tr("A plot cannot be written as \"%1\".").arg(kind).toStdString(),
                    tr("Use a name that ends in .png, .svg or .pdf.").toStdString());

    m_d->ensureRanges();
    const QSize size = options.size.expandedTo({64, 64});
    PlotScene scene;
    scene.setTheme(themeOf(options.theme));
    m_d->fillScene(scene);
    scene.state().title = title;
    if (kind == QLatin1String("svg")) {
        QSvgGenerator generator;
        generator.setOutputDevice(&buffer);
        generator.setSize(size);
        generator.setViewBox(QRect(QPoint(0, 0), size));
        generator.setTitle(title);
        generator.setDescription(options.description.isEmpty() ? summary() : options.description);
        scene.render(generator, size, 1, true);
    } else {
        QPdfWriter writer(&buffer);
        writer.setTitle(title);
        writer.setCreator(QStringLiteral("Memscape"));
        writer.setResolution(96);
        writer.setPageSize(QPageSize(QSizeF(size) * 72.0 / 96.0, QPageSize::Point, QString(), QPageSize::ExactMatch));
        writer.setPageMargins(QMarginsF(0, 0, 0, 0));
        scene.render(writer, size, 1, true);
    }
    if (bytes.isEmpty())
        return fail(unwritable(path, tr("nothing was drawn")));
    return writeBytes(path, bytes);
}

void PlotView::paintTo(QPainter& painter, const QRectF& rect, const Theme& theme)
{
    m_d->ensureRanges();
    const QSize size = rect.size().toSize().expandedTo({64, 64});
    PlotScene scene;
    scene.setTheme(theme);
    m_d->fillScene(scene);
    const auto engine = painter.paintEngine() ? painter.paintEngine()->type() : QPaintEngine::Raster;
    painter.save();
    painter.translate(rect.topLeft());
    if (engine == QPaintEngine::Raster) {
        const double scale = painter.device()->devicePixelRatioF() * painter.transform().m11();
        QImage image((QSizeF(size) * scale).toSize(), QImage::Format_ARGB32_Premultiplied);
        image.fill(theme.background);
        scene.render(image, size, scale, false);
        painter.drawImage(QRectF(QPointF(0, 0), QSizeF(size)), image);
    } else {
        QPicture picture; // QCustomPlot paints with a painter of its own kind only
        scene.render(picture, size, 1, true);
        painter.drawPicture(0, 0, picture);
    }
    painter.restore();
}

QString PlotView::dataText(QChar separator, bool visibleRangeOnly) const
{
    m_d->ensureRanges();
    const PlotState& state = m_d->scene.state();
    return tableText(state.x, state.y, state.curves, separator, visibleRangeOnly ? &state.xRange : nullptr);
}

void PlotView::copyImage()
{
    PlotExport options;
    options.size = size();
    options.theme = ExportTheme::AsOnScreen;
    QApplication::clipboard()->setImage(image(options));
}

void PlotView::copyData()
{
    auto* mime = new QMimeData; // the clipboard takes it
    mime->setText(dataText(QLatin1Char('\t'), true));
    mime->setData(QStringLiteral("text/csv"), dataText(QLatin1Char(','), true).toUtf8());
    QApplication::clipboard()->setMimeData(mime);
}

} // namespace memscape
