// SPDX-License-Identifier: GPL-3.0-or-later
// The building blocks of the inspector: a raised card, a label with a tone (see settings/theme.h),
// a section with a title.
#pragma once

#include <QFrame>
#include <QLabel>
#include <QVBoxLayout>

namespace memscape {

/// A rounded, raised surface with a column inside.
class Card : public QFrame
{
    Q_OBJECT

public:
    explicit Card(QWidget* parent = nullptr);

    QVBoxLayout* column() const { return m_column; }
    /// Removes and deletes every widget in it.
    void clear();

private:
    QVBoxLayout* m_column;
};

/// A label of that tone; wraps, and its text can be selected with the mouse when `selectable`.
QLabel* toneLabel(const QString& text, const char* tone, QWidget* parent, bool selectable = false);

/// A label of links. Tab comes to its first link, Shift+Tab to its last: Qt alone would first come to the label,
/// where nothing shows the keyboard and Enter does nothing.
class LinkLabel : public QLabel
{
    Q_OBJECT

public:
    LinkLabel(const char* tone, QWidget* parent);

protected:
    void focusInEvent(QFocusEvent* event) override;
};

/// A line whose middle gives way to "…" where it has too little room.
class ElidedLabel : public QLabel
{
    Q_OBJECT

public:
    ElidedLabel(const QString& text, const char* tone, QWidget* parent);
    QSize minimumSizeHint() const override { return {0, QLabel::minimumSizeHint().height()}; }

protected:
    void paintEvent(QPaintEvent* event) override;
};

/// Sets the tone of an existing label and lets the style sheet look again.
void setTone(QLabel* label, const char* tone);

/// Deletes all items of a layout, widgets and inner layouts with them.
void clearLayout(QLayout* layout);

} // namespace memscape
