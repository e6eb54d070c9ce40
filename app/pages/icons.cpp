// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/icons.h"

#include "app/settings/theme.h"

#include <QAbstractButton>
#include <QAction>
#include <QFile>
#include <QIconEngine>
#include <QPainter>
#include <QPixmap>
#include <QSvgRenderer>

static void initResources()
{
    Q_INIT_RESOURCE(resources); // must stand outside of any namespace
}

namespace memscape {

namespace {

/// Draws the SVG at whatever size is asked, its black replaced by the colour.
class LineIcon : public QIconEngine
{
public:
    LineIcon(QByteArray svg, const QColor& fixed)
        : m_svg(std::move(svg))
        , m_fixed(fixed)
    { }

    void paint(QPainter* painter, const QRect& rect, QIcon::Mode mode, QIcon::State) override
    {
        const Theme& theme = currentTheme();
        QColor colour = m_fixed.isValid() ? m_fixed : theme.textDim;
        if (mode == QIcon::Disabled)
            colour = mix(theme.surface, theme.textFaint, 0.5);
        else if (mode == QIcon::Active || mode == QIcon::Selected)
            colour = m_fixed.isValid() ? m_fixed : theme.text;
        QByteArray svg = m_svg;
        svg.replace("#000000", colour.name().toLatin1());
        QSvgRenderer(svg).render(painter, QRectF(rect));
    }

    QPixmap pixmap(const QSize& size, QIcon::Mode mode, QIcon::State state) override
    {
        QPixmap pixmap(size);
        pixmap.fill(Qt::transparent);
        QPainter painter(&pixmap);
        paint(&painter, QRect(QPoint(), size), mode, state);
        return pixmap;
    }

    QIconEngine* clone() const override { return new LineIcon(m_svg, m_fixed); }

private:
    QByteArray m_svg;
    QColor m_fixed; ///< invalid: the theme's, looked up at each paint
};

} // namespace

void initIcons()
{
    initResources();
}

QIcon themedIcon(const QString& name, const QColor& colour)
{
    initIcons();
    QFile file(QStringLiteral(":/icons/%1.svg").arg(name));
    if (!file.open(QIODevice::ReadOnly))
        return {};
    return QIcon(new LineIcon(file.readAll(), colour));
}

QIcon themedIcon(const QString& name)
{
    return themedIcon(name, QColor());
}

void setThemedIcon(QAbstractButton* button, const QString& name)
{
    button->setIcon(themedIcon(name));
}

void setThemedIcon(QAction* action, const QString& name)
{
    action->setIcon(themedIcon(name));
}

} // namespace memscape
