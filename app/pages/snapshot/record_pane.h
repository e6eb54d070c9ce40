// SPDX-License-Identifier: GPL-3.0-or-later
// A snapshot's record (what `memscape-cli snapshot FILE -o` writes) where the snapshot itself is not open: its curves,
// figures and findings, and who held the bytes at the peak. Blocks, stacks and moments are in the snapshot alone.
#pragma once

#include "app/pages/cards/figures_table.h"
#include "app/pages/snapshot/findings_list.h"
#include "app/pages/snapshot/numbers_table.h"
#include "core/experiment/record.h"

#include <QWidget>

namespace memscape {

class PlotView;

class RecordPane : public QWidget
{
    Q_OBJECT

public:
    explicit RecordPane(QWidget* parent = nullptr);

    void setRecord(const Record& record, ByteStyle bytes);
    PlotView* plot() const { return m_plot; }
    FindingsList* findings() const { return m_findings; }
    FiguresTable* figures() const { return m_figures; }

private:
    PlotView* m_plot;
    FindingsList* m_findings;
    FiguresTable* m_figures;
    NumbersTable* m_holders;
};

} // namespace memscape
