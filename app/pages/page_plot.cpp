// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/page_plot.h"

#include "app/pages/cards/card.h"
#include "app/pages/fields/quiet_widgets.h"

#include <QButtonGroup>
#include <QEvent>
#include <QHBoxLayout>

#include <algorithm>
#include <utility>

namespace memscape {

namespace {

constexpr std::size_t mostChips = 3;
constexpr int toolSpacing = 6;
constexpr int lowPlot = 280; ///< with tools, status line and strip

} // namespace

PagePlot::PagePlot(QWidget* parent)
    : QWidget(parent)
    , m_view(new PlotView(this))
    , m_toolBar(new QWidget(this))
    , m_chipArea(new QWidget(this))
    , m_chips(new QHBoxLayout(m_chipArea))
    , m_group(new QButtonGroup(this))
    , m_list(new QuietComboBox(this))
    , m_reset(new QToolButton(this))
    , m_status(new QLabel(this))
    , m_fold(new QToolButton(this))
{
    m_view->setObjectName(QStringLiteral("plot"));
    m_view->setFocusPolicy(Qt::StrongFocus);
    m_chips->setContentsMargins(0, 0, 0, 0);
    m_chips->setSpacing(6);
    m_bases =
        chipButton(tr("datasheet"),
                   tr("Also draw the predictions from the data sheet alone and without the calibration, where known"));
    connect(m_bases, &QToolButton::clicked, this, &PagePlot::basesChosen);
    m_logX = logButton(tr("log x"), tr("Logarithmic horizontal axis"), Qt::XAxis);
    m_logY = logButton(tr("log y"), tr("Logarithmic vertical axis"), Qt::YAxis);
    m_list->hide();
    m_list->setMinimumWidth(120); // of a long name the end may go, of the buttons beside it nothing
    m_list->setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Fixed);
    m_reset->setText(tr("reset view"));
    m_reset->setToolTip(tr("Show all of the data again (0)"));
    m_reset->setFocusPolicy(Qt::StrongFocus);
    m_reset->setProperty("role", "flat");
    connect(m_reset, &QToolButton::clicked, m_view, &PlotView::resetView);

    m_status->setObjectName(QStringLiteral("statusLine"));
    m_status->setTextFormat(Qt::PlainText);
    m_status->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);
    m_status->setAccessibleName(tr("Value under the pointer"));

    m_toolBar->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed); // fitChips() sees to it
    auto* tools = new QHBoxLayout(m_toolBar);
    tools->setContentsMargins(0, 0, 0, 0);
    tools->setSpacing(toolSpacing);
    m_chipArea->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed); // fitChips() sees to it
    tools->addWidget(m_chipArea, 1);
    tools->addWidget(m_list);
    tools->addStretch(0);
    for (QToolButton* button : {m_bases, m_logX, m_logY, m_reset})
        tools->addWidget(button);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(8, 8, 12, 6);
    column->setSpacing(4);
    column->addWidget(m_toolBar);
    column->addWidget(m_view, 1);
    m_fold->setFocusPolicy(Qt::StrongFocus);
    m_fold->setProperty("role", "flat");
    m_fold->hide();
    connect(m_fold, &QToolButton::clicked, this, [this] { emit foldChosen(!m_isFolded); });
    auto* foot = new QHBoxLayout;
    foot->addWidget(m_status, 1);
    foot->addWidget(m_fold);
    column->addLayout(foot);

    connect(m_view, &PlotView::readoutChanged, this, &PagePlot::refreshStatus);
    connect(m_view, &PlotView::noteChanged, this, &PagePlot::refreshStatus);
    m_list->setAccessibleName(tr("What the plot shows"));
    m_list->setFocusPolicy(Qt::StrongFocus);
    const auto choose = [this](int id) {
        if (id >= 0 && id < int(m_groups.size()))
            emit groupChosen(m_groups[std::size_t(id)].key);
    };
    connect(m_group, &QButtonGroup::idClicked, this, choose);
    connect(m_list, &QComboBox::activated, this, choose);
    refreshStatus();
}

QToolButton* PagePlot::chipButton(const QString& text, const QString& tip)
{
    auto* button = new QToolButton(this);
    button->setText(text);
    button->setToolTip(tip);
    button->setAccessibleName(tip);
    button->setCheckable(true);
    button->setFocusPolicy(Qt::StrongFocus);
    button->setProperty("role", "chip");
    return button;
}

QToolButton* PagePlot::logButton(const QString& text, const QString& tip, Qt::Axis axis)
{
    QToolButton* button = chipButton(text, tip);
    connect(button, &QToolButton::clicked, this, [this, axis](bool on) { emit logChosen(axis, on); });
    return button;
}

void PagePlot::setGroups(const std::vector<SeriesGroup>& groups, const QString& current)
{
    if (groups != m_groups) {
        m_groups = groups;
        makeChips(groups);
        fitChips();
    }
    for (std::size_t i = 0; i < groups.size(); ++i) {
        if (groups[i].key != current)
            continue;
        if (QAbstractButton* chip = m_group->button(int(i)))
            chip->setChecked(true);
        m_list->setCurrentIndex(int(i));
    }
}

void PagePlot::makeChips(const std::vector<SeriesGroup>& groups)
{
    clearLayout(m_chips);
    m_list->clear();
    for (std::size_t i = 0; i < groups.size(); ++i) {
        m_list->addItem(groups[i].label);
        if (groups.size() > mostChips || groups.size() < 2)
            continue;
        auto* chip = new QToolButton(m_chipArea);
        chip->setText(groups[i].label);
        chip->setAccessibleName(tr("Plot %1").arg(groups[i].label));
        chip->setCheckable(true);
        chip->setFocusPolicy(Qt::StrongFocus);
        chip->setProperty("role", "chip");
        m_group->addButton(chip, int(i));
        m_chips->addWidget(chip);
        // The layout would show it later, and until then count it as nothing.
        chip->ensurePolished();
        chip->show();
    }
    m_chips->addStretch(1);
}

/// The layout's own rectangle is not known while it is out of date.
int PagePlot::roomInside() const
{
    const QMargins around = layout()->contentsMargins();
    return width() - around.left() - around.right();
}

void PagePlot::fitChips()
{
    const int room = roomInside();
    const auto buttons = [this] {
        int width = 0;
        for (const QToolButton* button : {m_bases, m_logX, m_logY, m_reset})
            width += button->isHidden() ? 0 : toolSpacing + button->sizeHint().width();
        return width;
    };
    m_reset->show();
    m_bases->setVisible(!m_isPlain);
    const bool fits = m_groups.size() <= mostChips && m_chips->sizeHint().width() + buttons() <= room;
    m_chipArea->setVisible(fits);
    m_list->setVisible(!fits && m_groups.size() > 1);
    // The narrowest plot does without what a double click and the settings do as well.
    for (QToolButton* button : {m_reset, m_bases}) {
        if (!fits && m_list->minimumWidth() + buttons() > room)
            button->hide();
    }
}

void PagePlot::resizeEvent(QResizeEvent* event)
{
    QWidget::resizeEvent(event);
    fitChips();
    fitStatus();
}

void PagePlot::setFoldable(bool foldable, const QString& hint)
{
    m_hint = hint;
    m_fold->setVisible(foldable);
    if (!foldable)
        setFolded(false);
    refreshStatus();
}

void PagePlot::setFolded(bool folded)
{
    m_isFolded = folded;
    m_toolBar->setVisible(!folded);
    m_view->setVisible(!folded);
    m_fold->setText(folded ? tr("show curves") : tr("hide curves"));
    m_fold->setToolTip(folded ? tr("The plot of the curves, with pinned records, zoom and its own export")
                              : tr("The picture shows the curves already: hiding them makes it larger"));
    m_fold->setAccessibleName(m_fold->text());
    const QMargins around = layout()->contentsMargins();
    int line = std::max(m_status->sizeHint().height(), m_fold->sizeHint().height());
    if (m_below && !m_below->isHidden())
        line += m_below->sizeHint().height() + layout()->spacing();
    setMaximumHeight(folded ? line + around.top() + around.bottom() : QWIDGETSIZE_MAX);
    fitStatus();
    refreshStatus();
}

void PagePlot::addBelow(QWidget* strip)
{
    m_below = strip;
    layout()->addWidget(strip);
    strip->installEventFilter(this);
}

bool PagePlot::eventFilter(QObject* watched, QEvent* event)
{
    const bool mayResize = event->type() == QEvent::ShowToParent || event->type() == QEvent::HideToParent
        || event->type() == QEvent::LayoutRequest;
    if (watched == m_below && mayResize)
        setFolded(m_isFolded); // the strip takes its height
    return QWidget::eventFilter(watched, event);
}

void PagePlot::setAxes(const AxisSpec& x, const AxisSpec& y)
{
    m_view->setAxes(x, y);
    m_logX->setChecked(x.log != 0);
    m_logX->setEnabled(x.names.isEmpty());
    m_logY->setChecked(y.log != 0);
}

void PagePlot::setPlain(bool plain)
{
    m_isPlain = plain;
    for (QToolButton* button : {m_logX, m_logY})
        button->setVisible(!plain);
    fitChips();
}

void PagePlot::setHoverText(const QString& text)
{
    m_hover = text;
    refreshStatus();
}

void PagePlot::setInvitation(const QString& text)
{
    if (std::exchange(m_invitation, text) != text)
        refreshStatus();
}

void PagePlot::setBusy(bool busy)
{
    if (std::exchange(m_isBusy, busy) != busy)
        refreshStatus();
}

void PagePlot::refreshStatus()
{
    QString text = m_hover.isEmpty() && !m_isFolded ? m_view->readout() : m_hover;
    if (text.isEmpty() && m_isFolded)
        text = m_hint;
    else if (text.isEmpty() && !m_invitation.isEmpty())
        text = m_invitation;
    else if (text.isEmpty())
        text = tr("Point at the plot to read values. Wheel zooms, drag pans, double click shows all.");
    if (m_isBusy)
        text = tr("Calculating… Esc stops it.");
    if (!m_isFolded && !m_view->note().isEmpty())
        text += QStringLiteral("   ") + m_view->note();
    m_text = text;
    fitStatus();
}

/// Whole sentences while they fit, then as much of the first as there is room for. A low plot leaves
/// the line to what stands below: what it says stands beside the pointer, too.
void PagePlot::fitStatus()
{
    m_status->setVisible(!m_below || m_below->isHidden() || m_isFolded || height() >= lowPlot);
    const int buttons = m_fold->isHidden() ? 0 : m_fold->sizeHint().width() + toolSpacing;
    const int room = roomInside() - buttons;
    const QFontMetrics metrics = m_status->fontMetrics();
    QString text = m_text;
    for (qsizetype end = text.lastIndexOf(QStringLiteral(". ")); end > 0 && metrics.horizontalAdvance(text) > room;
         end = text.lastIndexOf(QStringLiteral(". ")))
        text = text.left(end + 1);
    m_status->setText(metrics.elidedText(text, Qt::ElideRight, room));
    const bool isWhole = m_status->text() == m_text;
    m_status->setToolTip(isWhole ? QString() : m_text + QLatin1Char('\n'));
    if (!m_isFolded)
        m_status->setToolTip(m_status->toolTip() + PlotView::shortcuts());
    m_status->setAccessibleDescription(m_text);
}

} // namespace memscape
