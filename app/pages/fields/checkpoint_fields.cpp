// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/fields/checkpoint_fields.h"

#include "app/pages/fields/model_field.h"
#include "app/pages/fields/quiet_widgets.h"

#include <QButtonGroup>
#include <QEvent>
#include <QFileDialog>
#include <QGridLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QSignalBlocker>
#include <QSpinBox>
#include <QToolButton>

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

constexpr int sliderSteps = 1000;
constexpr int buttonsPerRow = 3, buttonsWhereNarrow = 2;
constexpr QLatin1String statesPrefix("slots:");

/// Short enough for a button.
QString buttonText(const QString& key)
{
    if (key == QStringLiteral("none"))
        return StrategyField::tr("none");
    if (key == QStringLiteral("every"))
        return StrategyField::tr("every k");
    return strategyLabel(key);
}

QString pointText(const StrategyPoint& point, const ScheduleUnits& units)
{
    QStringList lines;
    if (std::isfinite(point.peak))
        lines << StrategyField::tr("%1, %2").arg(units.memory(point.peak), units.time(point.makespan));
    if (!point.missing.isEmpty())
        lines << point.missing;
    else if (!point.feasible)
        lines << StrategyField::tr("does not fit the budget");
    if (!point.note.isEmpty())
        lines << point.note;
    return lines.join(u'\n');
}

} // namespace

QString budgetText(double memory)
{
    return QString::fromStdString(numberText(std::round(memory)));
}

ChainField::ChainField(const ParameterSpec& spec, QWidget* parent)
    : TextField(spec, parent)
{
    askFile = [this] {
        return QFileDialog::getOpenFileName(this, tr("Open a chain"), {}, tr("Chains (*.json);;All files (*)"));
    };
    QToolButton* open = addFileButton(
        tr("open chain…"),
        tr("A memscape-chain file, also one that a run measured; dropping it on the window does the same"));
    open->setObjectName(QStringLiteral("openChain"));
    open->setAccessibleName(tr("Open a chain file"));
    suggest(modelList);
    edit()->setPlaceholderText(tr("mlp:48x4096, uniform:16, gpt2, a file…"));
}

StrategyField::StrategyField(const ParameterSpec& spec, QWidget* parent)
    : ParameterField(spec, parent)
    , m_group(new QButtonGroup(this))
    , m_count(new QSpinBox(this))
    , m_grid(new QGridLayout)
{
    for (const ChoiceValue& choice : spec.choices)
        m_keys << QString::fromStdString(choice.key);
    m_keys.insert(std::min<qsizetype>(1, m_keys.size()), QString::fromStdString(spec.counted));
    m_grid->setContentsMargins(0, 4, 0, 2);
    m_grid->setSpacing(5);
    for (int i = 0; i < m_keys.size(); ++i) {
        auto* button = new QToolButton(this);
        button->setObjectName(QStringLiteral("strategy.") + m_keys[i]);
        button->setText(buttonText(m_keys[i]));
        button->setCheckable(true);
        button->setFocusPolicy(Qt::StrongFocus);
        button->setProperty("role", "chip");
        button->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed); // three of a width
        button->setAccessibleName(tr("Strategy: %1").arg(button->text()));
        m_group->addButton(button, i);
    }
    layoutButtons();
    m_count->setObjectName(QStringLiteral("count"));
    m_count->setRange(1, 65536);
    m_count->setValue(8);
    m_count->setPrefix(tr("k = "));
    m_count->setAccessibleName(tr("Stages per segment"));
    m_count->setKeyboardTracking(false);
    m_count->setVisible(false);
    auto* head = new QHBoxLayout;
    head->addWidget(label(), 1);
    head->addWidget(m_count);
    column()->insertLayout(0, head);
    column()->insertLayout(1, m_grid);
    setPoints({}, {});
    connect(m_group, &QButtonGroup::idClicked, this, &StrategyField::choose);
    connect(m_count, &QSpinBox::valueChanged, this, [this] { choose(m_group->checkedId()); });
}

/// Two in a row where the words of three would be cut.
void StrategyField::layoutButtons()
{
    int widest = 0;
    for (const QAbstractButton* button : m_group->buttons())
        widest = std::max(widest, button->sizeHint().width());
    const int room = width() - (buttonsPerRow - 1) * m_grid->spacing();
    const int perRow = width() > 0 && widest * buttonsPerRow > room ? buttonsWhereNarrow : buttonsPerRow;
    if (perRow == m_perRow)
        return;
    m_perRow = perRow;
    for (int i = 0; i < m_keys.size(); ++i)
        m_grid->addWidget(m_group->button(i), i / perRow, i % perRow);
    for (int column = 0; column < buttonsPerRow; ++column)
        m_grid->setColumnStretch(column, column < perRow ? 1 : 0);
}

void StrategyField::resizeEvent(QResizeEvent* event)
{
    ParameterField::resizeEvent(event);
    layoutButtons();
}

bool StrategyField::isCounted(int index) const
{
    return index >= 0 && m_keys[index].toStdString() == spec().counted;
}

void StrategyField::choose(int index)
{
    if (index < 0)
        return;
    offer(isCounted(index) ? QStringLiteral("%1:%2").arg(m_keys[index]).arg(m_count->value()) : m_keys[index]);
}

void StrategyField::display(const ParameterValue& value, const std::optional<Sweep>&)
{
    const QString text = QString::fromStdString(valueText(value));
    for (int i = 0; i < m_keys.size(); ++i) {
        const bool counted = isCounted(i) && text.startsWith(m_keys[i] + u':');
        if (!counted && text != m_keys[i])
            continue;
        m_group->button(i)->setChecked(true);
        m_count->setVisible(counted);
        const QSignalBlocker quiet(m_count);
        if (counted)
            m_count->setValue(text.mid(m_keys[i].size() + 1).toInt());
    }
    clearError();
}

void StrategyField::setPoints(const std::vector<StrategyPoint>& points, const ScheduleUnits& units)
{
    for (int i = 0; i < m_keys.size(); ++i) {
        QString tip, best;
        for (const ChoiceValue& choice : spec().choices) {
            if (m_keys[i].toStdString() == choice.key)
                tip = QString::fromStdString(choice.help.empty() ? choice.label : choice.label + ": " + choice.help);
        }
        if (isCounted(i))
            tip = tr("the input of every k-th stage stays");
        bool fits = true;
        for (const StrategyPoint& point : points) {
            if (point.key != m_keys[i]
                && !(isCounted(i) && point.key.startsWith(m_keys[i] + u':') && m_group->checkedId() == i))
                continue;
            fits = point.feasible && point.missing.isEmpty();
            best = pointText(point, units);
        }
        QAbstractButton* button = m_group->button(i);
        QFont font = button->font();
        font.setItalic(!fits);
        button->setFont(font);
        button->setToolTip(best.isEmpty() ? tip : tip + u'\n' + best);
        button->setAccessibleDescription(button->toolTip());
    }
}

BudgetField::BudgetField(const ParameterSpec& spec, QWidget* parent)
    : TextField(spec, parent)
    , m_slider(new QuietSlider(Qt::Horizontal, this))
    , m_range(new QLabel(this))
{
    m_slider->setObjectName(QStringLiteral("slider"));
    m_slider->setRange(0, sliderSteps);
    m_slider->setSingleStep(5);
    m_slider->setPageStep(50);
    m_slider->setAccessibleName(QString::fromStdString(spec.label));
    m_slider->valueAt = [this](int at) { return low() + (high() - low()) * at / sliderSteps; };
    m_range->setProperty("tone", "faint");
    m_range->setWordWrap(true);
    edit()->setProperty("role", "value");
    edit()->setAlignment(Qt::AlignRight);
    edit()->setPlaceholderText(tr("half-way"));
    connect(m_slider, &QSlider::valueChanged, this, &BudgetField::sliderMoved);
    connect(m_slider, &QSlider::sliderPressed, this, [this] { emit editing(true); });
    connect(m_slider, &QSlider::sliderReleased, this, [this] { emit editing(false); });
    auto* head = new QHBoxLayout;
    head->setSpacing(8);
    column()->removeWidget(label());
    column()->removeWidget(edit());
    head->addWidget(label());
    head->addWidget(edit(), 1);
    column()->insertLayout(0, head);
    column()->insertWidget(1, m_slider);
    column()->insertWidget(2, m_range);
}

bool BudgetField::countsStates() const
{
    return m_text.startsWith(statesPrefix);
}

double BudgetField::low() const
{
    if (countsStates())
        return 1;
    // The solver's slots round up: a little more than the exact least.
    const double least = std::isfinite(m_front.least) ? m_front.least : 0;
    return m_front.budget.empty() ? least : std::max(least, m_front.budget.front());
}

double BudgetField::high() const
{
    const double most = countsStates() ? std::max(1, m_length - 1) : m_front.full;
    return std::max(low(), std::isfinite(most) ? most : 0);
}

/// The value of the text; where it is empty, that of the last prediction.
double BudgetField::value() const
{
    if (countsStates())
        return m_text.mid(statesPrefix.size()).toDouble();
    const auto told = parseQuantity(m_text.toStdString(), m_front.units.isBytes ? Unit::Byte : Unit::One);
    return told ? *told : m_front.given;
}

QString BudgetField::textAt(double share) const
{
    const double value = std::round(low() + std::clamp(share, 0.0, 1.0) * (high() - low()));
    return (countsStates() ? QString(statesPrefix) : QString()) + budgetText(value);
}

void BudgetField::display(const ParameterValue& value, const std::optional<Sweep>& sweep)
{
    m_text = QString::fromStdString(valueText(value)).trimmed();
    TextField::display(value, sweep);
    refresh();
}

void BudgetField::setRange(const FrontLine& front, int length)
{
    m_front = front;
    m_length = length;
    refresh();
}

void BudgetField::refresh()
{
    const double now = value();
    const double span = high() - low();
    m_slider->setEnabled(span > 0);
    if (span > 0 && std::isfinite(now) && !m_slider->isSliderDown()) {
        const QSignalBlocker quiet(m_slider);
        m_slider->setValue(int(std::lround(std::clamp((now - low()) / span, 0.0, 1.0) * sliderSteps)));
    }
    const ScheduleUnits& units = m_front.units;
    if (countsStates())
        m_range->setText(tr("%1 states of %2").arg(now).arg(int(high())));
    else if (span > 0)
        m_range->setText(tr("%1 to %2").arg(units.memory(low()), units.memory(high())));
    m_range->setVisible(!m_range->text().isEmpty());
    const double step = span * m_slider->singleStep() / sliderSteps;
    m_slider->setAccessibleDescription(tr("%1; a step is %2. %3")
                                           .arg(m_range->text(),
                                                countsStates() ? QString::number(step, 'g', 2) : units.memory(step),
                                                QString::fromStdString(spec().help)));
    if (!edit()->isModified() && !edit()->hasFocus() && errorText().isEmpty())
        edit()->setText(restText());
}

/// While it is not edited: "5.94 GB", also where the parameter is empty.
QString BudgetField::restText() const
{
    const bool known = !countsStates() && std::isfinite(value()) && value() > 0;
    return known ? m_front.units.memory(value()) : m_text;
}

bool BudgetField::eventFilter(QObject* watched, QEvent* event)
{
    if (watched == edit() && errorText().isEmpty() && !edit()->isModified()) {
        if (event->type() == QEvent::FocusIn)
            edit()->setText(m_text);
        else if (event->type() == QEvent::FocusOut)
            edit()->setText(restText());
    }
    return TextField::eventFilter(watched, event);
}

void BudgetField::sliderMoved(int position)
{
    m_text = textAt(double(position) / sliderSteps);
    emit edited(key(), m_text);
}

} // namespace memscape
