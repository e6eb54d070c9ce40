// SPDX-License-Identifier: GPL-3.0-or-later
// The four figures that answer the page's question, where one always sees them: two abreast above the
// parameters, predicted in blue and measured in orange. A click goes to the figure's row and its why.
#pragma once

#include "app/pages/cards/figures_model.h"

#include <QFrame>

class QAbstractButton;

namespace memscape {

class HeadlineStrip : public QFrame
{
    Q_OBJECT

public:
    explicit HeadlineStrip(QWidget* parent = nullptr);

    /// At most four, most important first. Without any those before stay, with no value: what is below stays in place.
    void setRows(const std::vector<FigureRow>& rows, ByteStyle bytes);
    /// "peak: predicted 56 MiB, measured 57 MiB" of each cell, for tests and screen readers.
    QStringList texts() const;

signals:
    void chosen(const QString& key);

private:
    std::vector<QAbstractButton*> m_cells;
};

} // namespace memscape
