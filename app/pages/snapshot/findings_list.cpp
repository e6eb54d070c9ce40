// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/snapshot/findings_list.h"

#include "app/pages/byte_words.h"
#include "app/pages/cards/card.h"
#include "app/plots/plot_style.h"

#include <QHBoxLayout>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>

namespace memscape {

namespace {

constexpr std::size_t mostGroups = 3; ///< named on a card; the others are in the tool tip

QColor colourOf(FindingLevel level, const Theme& theme)
{
    switch (level) {
    case FindingLevel::Problem: return theme.bad;
    case FindingLevel::Hint: return theme.warning;
    case FindingLevel::Note: break;
    }
    return theme.good;
}

QString groupsText(const std::vector<SnapshotGroup>& groups, ByteStyle bytes, std::size_t most, const QString& between)
{
    QStringList parts;
    for (const SnapshotGroup& group : groups) {
        if (std::size_t(parts.size()) == most)
            break;
        parts << QString::fromStdString(group.label) + u' '
                + QString::fromStdString(quantityText(double(group.bytes), Unit::Byte, bytes));
    }
    return parts.join(between);
}

} // namespace

class FindingCard : public Card
{
public:
    FindingCard(const SnapshotFinding& finding, ByteStyle bytes, std::function<void()> choose, QWidget* parent)
        : Card(parent)
        , m_level(finding.level)
        , m_choose(std::move(choose))
    {
        setObjectName(QStringLiteral("finding.") + QString::fromStdString(finding.id));
        setFocusPolicy(Qt::StrongFocus);
        setCursor(Qt::PointingHandCursor);
        const auto words = [&](const std::string& text) { return bytesInStyle(QString::fromStdString(text), bytes); };
        QString evidence = words(finding.evidence);
        if (const QString who = groupsText(finding.groups, bytes, mostGroups, QStringLiteral("; ")); !who.isEmpty())
            evidence += (evidence.isEmpty() ? QString() : QStringLiteral("\n")) + who;
        auto* remedy = toneLabel(words(finding.remedy), "predicted", this);
        remedy->setAlignment(Qt::AlignRight | Qt::AlignTop);
        auto* row = new QHBoxLayout;
        row->setSpacing(16);
        row->addWidget(toneLabel(evidence, "dim", this), 3, Qt::AlignTop);
        row->addWidget(remedy, 2, Qt::AlignTop);
        column()->addWidget(toneLabel(words(finding.title), "strong", this));
        column()->setContentsMargins(14, 7, 12, 7);
        column()->addLayout(row);
        const std::string_view level = findingLevelText(finding.level);
        setAccessibleName(
            tr("%1: %2").arg(QString::fromUtf8(level.data(), qsizetype(level.size())), words(finding.title)));
        setAccessibleDescription(evidence + QStringLiteral(" ") + words(finding.remedy));
        setToolTip(finding.groups.size() > mostGroups
                       ? groupsText(finding.groups, bytes, finding.groups.size(), QStringLiteral("\n"))
                       : tr("Shows the place on the timeline"));
    }

protected:
    void paintEvent(QPaintEvent* event) override
    {
        Card::paintEvent(event);
        const Theme& theme = currentTheme();
        QPainter painter(this);
        painter.setRenderHint(QPainter::Antialiasing);
        painter.setPen(Qt::NoPen);
        painter.setBrush(colourOf(m_level, theme));
        painter.drawRoundedRect(QRectF(0, 0, 4 * plotUnit(), height()), 2, 2);
        if (!hasFocus() && !underMouse())
            return;
        painter.setBrush(Qt::NoBrush);
        painter.setPen(QPen(hasFocus() ? theme.predicted : theme.textFaint, 1));
        painter.drawRoundedRect(QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5), 7, 7);
    }
    void mouseReleaseEvent(QMouseEvent* event) override
    {
        if (event->button() == Qt::LeftButton && rect().contains(event->position().toPoint()))
            m_choose();
    }
    void keyPressEvent(QKeyEvent* event) override
    {
        if (event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter || event->key() == Qt::Key_Space)
            m_choose();
        else
            Card::keyPressEvent(event);
    }
    void enterEvent(QEnterEvent*) override { update(); }
    void leaveEvent(QEvent*) override { update(); }

private:
    FindingLevel m_level;
    std::function<void()> m_choose;
};

FindingsList::FindingsList(QWidget* parent)
    : QScrollArea(parent)
    , m_content(new QWidget(this))
    , m_column(new QVBoxLayout(m_content))
{
    setAccessibleName(tr("Findings"));
    m_column->setContentsMargins(0, 0, 6, 0);
    m_column->setSpacing(6);
    setWidget(m_content);
    setWidgetResizable(true);
    setFrameShape(QFrame::NoFrame);
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    setFocusPolicy(Qt::NoFocus);
}

void FindingsList::setFindings(std::vector<SnapshotFinding> findings, ByteStyle bytes)
{
    m_findings = std::move(findings);
    clearLayout(m_column);
    for (std::size_t i = 0; i < m_findings.size(); ++i)
        m_column->addWidget(new FindingCard(
            m_findings[i], bytes, [this, i] { emit chosen(int(i)); }, m_content));
    if (m_findings.empty())
        m_column->addWidget(
            toneLabel(tr("Nothing remarkable: no growth, no fragmentation, no failed request."), "dim", m_content));
    m_column->addStretch(1);
    updateGeometry();
}

int FindingsList::wantedHeight(int width) const
{
    const int inside = std::max(100, width - 16); // beside the scroll bar
    return m_column->hasHeightForWidth() ? m_column->heightForWidth(inside) : m_column->sizeHint().height();
}

} // namespace memscape
