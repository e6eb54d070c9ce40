// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/cards/headline_strip.h"

#include "app/settings/theme.h"

#include <QAbstractButton>
#include <QGridLayout>
#include <QPainter>

namespace memscape {

namespace {

constexpr int cells = 4, abreast = 2;
constexpr double labelSize = 0.82, valueSize = 1.05, smallValueSize = 0.85;

/// "417" of "417 GFLOP/s" where "162 GFLOP/s" stands beside it; all of it where the units differ.
QString withoutSharedUnit(const QString& first, const QString& second)
{
    const auto space = first.lastIndexOf(u' ');
    return space > 0 && second.endsWith(first.mid(space)) ? first.left(space) : first;
}

/// A label over its values; as wide as there is room, with what does not fit in the tooltip.
class HeadlineCell : public QAbstractButton
{
public:
    explicit HeadlineCell(QWidget* parent)
        : QAbstractButton(parent)
    {
        setFocusPolicy(Qt::StrongFocus);
        setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);
        setAttribute(Qt::WA_Hover);
    }

    void show(const FigureRow& row, ByteStyle bytes)
    {
        key = row.key;
        m_label = row.label;
        const bool isBrief = row.predicted && row.measured; // two share the cell
        m_predicted = row.predicted ? figureText(*row.predicted, bytes, isBrief) : QString();
        m_measured = row.measured ? figureText(*row.measured, bytes, isBrief) : QString();
        QStringList parts;
        if (row.predicted)
            parts << HeadlineStrip::tr("predicted %1").arg(figureText(*row.predicted, bytes));
        if (row.measured)
            parts << HeadlineStrip::tr("measured %1").arg(figureText(*row.measured, bytes));
        const QString text = m_label + QStringLiteral(": ") + parts.join(QStringLiteral(", "));
        setAccessibleName(text);
        setToolTip(text);
        update();
    }

    void showNothing()
    {
        m_predicted = QStringLiteral("–");
        m_measured.clear();
        setAccessibleName(m_label + QStringLiteral(": ") + HeadlineStrip::tr("no value"));
        setToolTip(accessibleName());
        update();
    }

    QSize sizeHint() const override
    {
        const int lines = QFontMetrics(relativeFont(labelSize, false)).height()
            + QFontMetrics(relativeFont(valueSize, true)).height();
        return {100, lines + 8};
    }

    QString key;

protected:
    void paintEvent(QPaintEvent*) override
    {
        const Theme& theme = currentTheme();
        QPainter painter(this);
        painter.setRenderHint(QPainter::Antialiasing);
        if (underMouse() || hasFocus()) {
            painter.setPen(hasFocus() ? QPen(theme.predicted) : QPen(Qt::NoPen));
            painter.setBrush(underMouse() ? mix(theme.surface, theme.text, 0.07) : QColor(Qt::transparent));
            painter.drawRoundedRect(QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5), 5, 5);
        }
        const QRect inner = rect().adjusted(6, 3, -4, -3);
        painter.setFont(relativeFont(labelSize, false));
        painter.setPen(theme.textFaint);
        painter.drawText(inner, Qt::AlignTop | Qt::AlignLeft, elided(painter, m_label, inner.width()));
        painter.setFont(relativeFont(valueSize, true));
        QString predicted = m_predicted;
        const auto isTooWide = [&] {
            return painter.fontMetrics().horizontalAdvance(predicted + QStringLiteral("  ") + m_measured)
                > inner.width() + 1;
        };
        if (isTooWide())
            painter.setFont(relativeFont(smallValueSize, true)); // words, or two long numbers
        if (isTooWide())
            predicted = withoutSharedUnit(m_predicted, m_measured);
        int left = inner.left();
        const int gap = painter.fontMetrics().horizontalAdvance(QStringLiteral("  "));
        for (const auto& [text, colour] :
             {std::pair{predicted, theme.predictedText}, {m_measured, theme.measuredText}}) {
            const int room = inner.right() + 1 - left;
            if (text.isEmpty() || room < gap)
                continue;
            painter.setPen(colour);
            painter.drawText(QRect(left, inner.top(), room, inner.height()), Qt::AlignBottom | Qt::AlignLeft,
                             elided(painter, text, room));
            left += painter.fontMetrics().horizontalAdvance(text) + gap;
        }
    }

private:
    static QString elided(const QPainter& painter, const QString& text, int room)
    {
        return painter.fontMetrics().elidedText(text, Qt::ElideRight, room);
    }

    QString m_label, m_predicted, m_measured;
};

} // namespace

HeadlineStrip::HeadlineStrip(QWidget* parent)
    : QFrame(parent)
{
    setObjectName(QStringLiteral("headlines"));
    setAccessibleName(tr("Headline figures"));
    auto* grid = new QGridLayout(this);
    grid->setContentsMargins(10, 6, 10, 6);
    grid->setHorizontalSpacing(6);
    grid->setVerticalSpacing(1);
    for (int i = 0; i < cells; ++i) {
        auto* cell = new HeadlineCell(this);
        connect(cell, &QAbstractButton::clicked, this, [this, cell] { emit chosen(cell->key); });
        grid->addWidget(cell, i / abreast, i % abreast);
        m_cells.push_back(cell);
    }
    for (int column = 0; column < abreast; ++column)
        grid->setColumnStretch(column, 1);
    hide();
}

void HeadlineStrip::setRows(const std::vector<FigureRow>& rows, ByteStyle bytes)
{
    for (std::size_t i = 0; i < m_cells.size(); ++i) {
        auto* cell = static_cast<HeadlineCell*>(m_cells[i]);
        if (rows.empty()) {
            cell->showNothing();
            continue;
        }
        cell->setVisible(i < rows.size());
        if (i < rows.size())
            cell->show(rows[i], bytes);
    }
    if (!rows.empty())
        show();
}

QStringList HeadlineStrip::texts() const
{
    QStringList all;
    for (const QAbstractButton* cell : m_cells) {
        if (!cell->isHidden())
            all << cell->accessibleName();
    }
    return all;
}

} // namespace memscape
