// SPDX-License-Identifier: GPL-3.0-or-later
// What is remarkable about the run, as cards: the title, the evidence, the remedy. A click, or Enter, goes to the place
// on the timeline.
#pragma once

#include "core/snapshot/findings.h"

#include <QScrollArea>

#include <vector>

class QLabel;
class QVBoxLayout;

namespace memscape {

class FindingCard;

class FindingsList : public QScrollArea
{
    Q_OBJECT

public:
    explicit FindingsList(QWidget* parent = nullptr);

    void setFindings(std::vector<SnapshotFinding> findings, ByteStyle bytes);
    const std::vector<SnapshotFinding>& findings() const { return m_findings; }
    /// That all cards have at this width.
    int wantedHeight(int width) const;

signals:
    void chosen(int finding);

private:
    std::vector<SnapshotFinding> m_findings;
    QWidget* m_content;
    QVBoxLayout* m_column;
};

} // namespace memscape
