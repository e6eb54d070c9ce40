// SPDX-License-Identifier: GPL-3.0-or-later
// The first picture of a snapshot: bytes in blocks along the events that are read so far, over the part of the width
// that is their share of the file. Without a scale in events: how many there are is known at the end.
#pragma once

#include "core/base/quantity.h"

#include <QWidget>

#include <cstdint>
#include <vector>

namespace memscape {

class PreviewCurve : public QWidget
{
    Q_OBJECT

public:
    explicit PreviewCurve(QWidget* parent = nullptr);

    /// Bytes by column, each as wide as the others, over `share` (0 to 1) of the width.
    void setColumns(std::vector<std::int64_t> columns, double share);
    bool isEmpty() const { return m_columns.empty(); }
    double share() const { return m_share; }
    QSize sizeHint() const override;

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    std::vector<std::int64_t> m_columns;
    std::int64_t m_highest = 0;
    double m_share = 0;
};

} // namespace memscape
