// SPDX-License-Identifier: GPL-3.0-or-later
// The right side of the page: figures of the selected range with what is predicted, who is alive at its peak, why the
// chosen figure is what it is, and the prediction beside.
#pragma once

#include "app/pages/cards/figures_table.h"
#include "app/pages/cards/why_card.h"
#include "app/pages/snapshot/beside_panel.h"
#include "app/pages/snapshot/snapshot_view.h"

#include <QFrame>

class QPushButton;
class QScrollArea;
class QVBoxLayout;

namespace memscape {

/// One of those alive: name, colour, bytes.
struct AliveRow
{
    QString name;
    int part = 0;
    double bytes = 0;
    std::size_t blocks = 0;
};

/// At the peak of the range: who, by what the snapshot knows best (module, else line, else operator), largest first;
/// the last one is the rest.
std::vector<AliveRow> largestAlive(const SnapshotDevice& device, const EventRange& range, std::size_t most = 8);

class SnapshotInspector : public QFrame
{
    Q_OBJECT

public:
    explicit SnapshotInspector(PageServices services, QWidget* parent = nullptr);

    FiguresTable* figures() const { return m_figures; }
    WhyCard* why() const { return m_why; }
    BesidePanel* beside() const { return m_beside; }

    /// Those of the file, measured or predicted itself; beside them those of a prediction, where there is one.
    void setFigures(const Figures& figures, bool isPredicted, const Outcome* beside, ByteStyle bytes);
    void setAlive(const std::vector<AliveRow>& rows, ByteStyle bytes);
    /// What figures and list are about; `isSelected`: it can be given up.
    void setRange(const QString& words, bool isSelected);
    QString rangeText() const { return m_range->text(); }

signals:
    void wholeWanted();

private:
    void explain();

    FiguresTable* m_figures;
    QLabel* m_range;
    QPushButton* m_whole;
    QVBoxLayout* m_alive;
    WhyCard* m_why;
    BesidePanel* m_beside;
    QScrollArea* m_scroll;
    ByteStyle m_bytes = ByteStyle::Binary;
};

} // namespace memscape
