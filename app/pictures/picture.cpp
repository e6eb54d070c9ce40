// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pictures/picture.h"

#include <QEvent>

namespace memscape {

Picture::Picture(QWidget* parent)
    : QWidget(parent)
{
    setMouseTracking(true);
    setFocusPolicy(Qt::StrongFocus);
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Preferred);
}

Picture::~Picture() = default;

void Picture::setByteStyle(ByteStyle style)
{
    if (m_byteStyle == style)
        return;
    m_byteStyle = style;
    update();
}

void Picture::changeEvent(QEvent* event)
{
    QWidget::changeEvent(event);
    if (event->type() == QEvent::PaletteChange || event->type() == QEvent::FontChange
        || event->type() == QEvent::StyleChange)
        update();
}

Picture* makePicture(std::string_view, QWidget*)
{
    return nullptr;
}

} // namespace memscape
