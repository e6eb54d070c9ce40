// SPDX-License-Identifier: GPL-3.0-or-later
// The figures as one sees them: no frame, as high as its rows, headers in the colours of prediction
// and measurement. The selected row is the one that "Why this number?" explains. Ctrl+C copies all.
// Labels and words wrap, numbers do not; where there is little room numbers are written smaller
// before a label has less than a few words' width.
#pragma once

#include "app/pages/cards/figures_model.h"

#include <QTableView>

#include <array>

namespace memscape {

class FiguresTable : public QTableView
{
    Q_OBJECT

public:
    explicit FiguresTable(QWidget* parent = nullptr);

    FiguresModel* figures() const { return m_model; }
    void setRows(std::vector<FigureRow> rows, ByteStyle bytes);
    /// Whether there is a measurement to compare with: else its columns would only take room.
    void setCompared(bool compared);
    /// Whether there is a prediction at all: of what is only measured, its columns would be empty.
    void setPredicted(bool predicted);
    double valueSize() const { return m_valueSize; } ///< of numbers, relative to the font
    bool wraps(const QModelIndex& value) const;      ///< whether what is too wide takes a second line
    /// Key of the selected figure; the first one's while none is.
    QString currentKey() const;

    QSize sizeHint() const override;
    QSize minimumSizeHint() const override;

signals:
    void currentKeyChanged(const QString& key);

protected:
    void changeEvent(QEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void currentChanged(const QModelIndex& current, const QModelIndex& previous) override;

private:
    void forget(); ///< how wide it was
    void layoutColumns();
    int layoutValues();           ///< what is left for the label
    int longestLabelWord() const; ///< px: a label narrower than that would lose letters
    void layoutRows();

    FiguresModel* m_model;
    /// Text of a column, since its rows changed.
    std::array<int, FiguresModel::NUM_COLUMNS> m_widest{};
    double m_valueSize = 0;
    bool m_breaksUnits = false; ///< there is no room for a number and its unit beside each other
    bool m_isPredicted = true;
};

} // namespace memscape
