// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/labs/markdown_view.h"

#include "app/settings/theme.h"

#include <QDesktopServices>
#include <QDir>
#include <QFileInfo>
#include <QSvgRenderer>
#include <QTextDocument>

#include <cmath>

namespace memscape {

namespace {

constexpr qint64 pictureLimit = 8 << 20; ///< B

} // namespace

MarkdownView::MarkdownView(QWidget* parent)
    : QTextBrowser(parent)
{
    setObjectName(QStringLiteral("labText"));
    setOpenLinks(false);
    setFrameShape(QFrame::NoFrame);
    setStyleSheet(QStringLiteral("QTextBrowser { background: transparent; border: none; padding: 0; }"));
    viewport()->setAutoFillBackground(false);
    document()->setDocumentMargin(0);
    setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    setHorizontalScrollBarPolicy(Qt::ScrollBarAsNeeded);
    setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Fixed);
    connect(this, &QTextBrowser::anchorClicked, this, [](const QUrl& url) {
        if (url.scheme() == QStringLiteral("https") || url.scheme() == QStringLiteral("http"))
            QDesktopServices::openUrl(url);
    });
}

void MarkdownView::display(const QString& markdown, const QString& folder)
{
    if (m_markdown == markdown && m_folder == folder)
        return;
    m_markdown = markdown;
    m_folder = folder;
    setMarkdown(markdown);
    fit();
}

QVariant MarkdownView::loadResource(int type, const QUrl& name)
{
    const bool isHere = name.isRelative() || name.isLocalFile();
    if (type != QTextDocument::ImageResource || !isHere || m_folder.isEmpty())
        return {};
    const QString root = QFileInfo(m_folder).canonicalFilePath() + u'/';
    const QFileInfo file(QDir(m_folder).filePath(name.path()));
    if (!file.canonicalFilePath().startsWith(root) || file.size() > pictureLimit)
        return {};
    if (file.suffix().toLower() != QStringLiteral("svg"))
        return QImage(file.canonicalFilePath());
    QSvgRenderer svg(file.canonicalFilePath());
    const QSize size = svg.defaultSize().boundedTo(QSize(2000, 2000));
    if (!svg.isValid() || size.isEmpty())
        return {};
    QImage image(size, QImage::Format_ARGB32_Premultiplied);
    image.fill(Qt::transparent);
    QPainter painter(&image);
    svg.render(&painter);
    return image;
}

void MarkdownView::fit()
{
    document()->setTextWidth(viewport()->width());
    setFixedHeight(int(std::ceil(document()->size().height())) + 4);
}

void MarkdownView::resizeEvent(QResizeEvent* event)
{
    QTextBrowser::resizeEvent(event);
    fit();
}

void MarkdownView::changeEvent(QEvent* event)
{
    QTextBrowser::changeEvent(event);
    if (event->type() == QEvent::PaletteChange || event->type() == QEvent::FontChange) {
        setMarkdown(m_markdown); // code and links take their colours when they are read
        fit();
    }
}

} // namespace memscape
