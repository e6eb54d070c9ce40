// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/labs/lab_document.h"

#include "app/settings/words.h"
#include "core/base/file.h"

#include <QBuffer>
#include <QFileInfo>
#include <QImage>
#include <QPainter>
#include <QPdfWriter>
#include <QRegularExpression>
#include <QSvgRenderer>
#include <QTextDocument>
#include <QUrl>

namespace memscape {

namespace {

constexpr int chartScale = 3;  ///< pixels for each unit of a chart
constexpr int resolution = 96; ///< dots per inch of the page; charts have more

QImage chartImage(const QByteArray& svg)
{
    QSvgRenderer renderer(svg);
    const QSize size = renderer.defaultSize() * chartScale;
    if (!renderer.isValid() || size.isEmpty())
        return {};
    QImage image(size.boundedTo(QSize(6000, 6000)), QImage::Format_RGB32);
    image.fill(Qt::white);
    QPainter painter(&image);
    renderer.render(&painter);
    return image;
}

/// Charts become pictures of the document: QTextDocument knows no inline SVG.
void setPage(QTextDocument& document, QString html, double width)
{
    static const QRegularExpression chart(QStringLiteral("<svg\\b.*?</svg>"),
                                          QRegularExpression::DotMatchesEverythingOption);
    int number = 0;
    for (auto match = chart.match(html); match.hasMatch(); match = chart.match(html)) {
        const QString name = QStringLiteral("chart-%1").arg(++number);
        const QImage image = chartImage(match.captured().toUtf8());
        document.addResource(QTextDocument::ImageResource, QUrl(name), image);
        html.replace(match.capturedStart(), match.capturedLength(),
                     image.isNull()
                         ? QString()
                         : QStringLiteral("<p><img src=\"%1\" width=\"%2\"></p>").arg(name).arg(int(width * 0.9)));
    }
    document.setHtml(html);
}

} // namespace

Result<void> writeLabDocument(const QString& path, const std::string& html)
{
    const QString suffix = QFileInfo(path).suffix().toLower();
    if (suffix == QStringLiteral("html") || suffix == QStringLiteral("htm"))
        return writeFileAtomically(pathOf(path), html);
    if (suffix != QStringLiteral("pdf"))
        return fail("export.format", "cannot tell the kind of report from \"" + path.toStdString() + "\"",
                    "name it .html or .pdf");
    QByteArray bytes;
    QBuffer buffer(&bytes);
    if (!buffer.open(QIODevice::WriteOnly))
        return fail("export.write", "the PDF could not be made");
    {
        QPdfWriter writer(&buffer);
        writer.setPageSize(QPageSize(QPageSize::A4));
        writer.setPageMargins(QMarginsF(0, 0, 0, 0)); // QTextDocument leaves 2 cm and numbers the pages
        writer.setResolution(resolution);
        QTextDocument document;
        setPage(document, toQString(html),
                (writer.pageLayout().fullRect(QPageLayout::Millimeter).width() - 40) / 25.4 * resolution);
        document.print(&writer);
    }
    return writeFileAtomically(pathOf(path), bytes.toStdString());
}

} // namespace memscape
