// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/fields/choice_field.h"

#include "app/pages/fields/quiet_widgets.h"

#include <QButtonGroup>
#include <QCheckBox>
#include <QContextMenuEvent>
#include <QHBoxLayout>
#include <QLabel>
#include <QMenu>
#include <QSignalBlocker>
#include <QToolButton>

#include <algorithm>

namespace memscape {

namespace {

/// Chips fit when all labels together are short: the inspector is about 41 letters wide, and the edges of a chip and
/// what is between two take five and a half.
bool fitsAsChips(const ParameterSpec& spec)
{
    double letters = 0;
    for (const ChoiceValue& choice : spec.choices)
        letters += double(choice.label.size()) + 5.5;
    return spec.choices.size() <= 4 && letters <= 41;
}

} // namespace

ChoiceField::ChoiceField(const ParameterSpec& spec, QWidget* parent)
    : ParameterField(spec, parent)
    , m_swept(new QLabel(this))
{
    m_swept->setProperty("tone", "dim");
    m_swept->setVisible(false);
    auto* row = new QHBoxLayout;
    row->addWidget(label());
    row->addSpacing(6);
    row->addStretch(1);
    column()->insertLayout(0, row);
    if (fitsAsChips(spec)) {
        buildChips();
        row->addWidget(m_swept);
    } else {
        buildList();
        row->addWidget(m_list);
        column()->insertWidget(1, m_swept, 0, Qt::AlignRight); // beside the list it would widen the form
    }
}

void ChoiceField::buildChips()
{
    m_chips = new QButtonGroup(this);
    auto* row = new QHBoxLayout;
    row->setSpacing(6);
    for (std::size_t i = 0; i < spec().choices.size(); ++i) {
        const ChoiceValue& choice = spec().choices[i];
        auto* chip = new QToolButton(this);
        chip->setText(QString::fromStdString(choice.label));
        chip->setCheckable(true);
        chip->setFocusPolicy(Qt::StrongFocus);
        chip->setProperty("role", "chip");
        chip->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
        chip->setToolTip(QString::fromStdString(choice.help));
        chip->setAccessibleName(QString::fromStdString(spec().label + ": " + choice.label));
        m_chips->addButton(chip, int(i));
        row->addWidget(chip);
    }
    connect(m_chips, &QButtonGroup::idClicked, this, &ChoiceField::choose);
    row->setContentsMargins(0, 4, 0, 2);
    column()->insertLayout(1, row);
}

void ChoiceField::buildList()
{
    m_list = new QuietComboBox(this);
    m_list->setObjectName(QStringLiteral("list"));
    m_list->setFocusPolicy(Qt::StrongFocus);
    m_list->setSizeAdjustPolicy(QComboBox::AdjustToContents);
    m_list->setMinimumContentsLength(14); // lists below each other are equally wide
    m_list->setMinimumWidth(96);          // in a narrow form the end of a long name may go, of the arrow nothing
    m_list->setAccessibleName(QString::fromStdString(spec().label));
    m_list->setAccessibleDescription(QString::fromStdString(spec().help));
    for (const ChoiceValue& choice : spec().choices) {
        m_list->addItem(QString::fromStdString(choice.label), QString::fromStdString(choice.key));
        m_list->setItemData(m_list->count() - 1, QString::fromStdString(choice.help), Qt::ToolTipRole);
    }
    label()->setBuddy(m_list);
    connect(m_list, &QComboBox::activated, this, &ChoiceField::choose);
}

void ChoiceField::display(const ParameterValue& value, const std::optional<Sweep>& sweep)
{
    const bool swept = sweep && sweep->key == spec().key;
    m_swept->setVisible(swept);
    if (swept)
        m_swept->setText(tr("swept over %n values", nullptr, int(sweep->values.size())));
    const std::string text = valueText(value);
    for (std::size_t i = 0; i < spec().choices.size(); ++i) {
        if (spec().choices[i].key != text)
            continue;
        if (m_chips)
            m_chips->button(int(i))->setChecked(true);
        if (m_list) {
            const QSignalBlocker quiet(m_list);
            m_list->setCurrentIndex(int(i));
        }
    }
    showCounted(text);
    clearError();
}

void ChoiceField::showCounted(const std::string& text)
{
    const bool known =
        std::ranges::any_of(spec().choices, [&](const ChoiceValue& choice) { return choice.key == text; });
    if (known || !m_list)
        return;
    const QSignalBlocker quiet(m_list);
    const int extra = int(spec().choices.size()); // a counted value that the list does not offer
    if (m_list->count() == extra)
        m_list->addItem({});
    m_list->setItemText(extra, QString::fromStdString(text));
    m_list->setItemData(extra, QString::fromStdString(text));
    m_list->setCurrentIndex(extra);
}

void ChoiceField::contextMenuEvent(QContextMenuEvent* event)
{
    QMenu menu(this);
    menu.addAction(tr("Sweep over all values"), this, [this] { offer(allKeys()); });
    menu.exec(event->globalPos());
}

void ChoiceField::choose(int index)
{
    if (index < int(spec().choices.size()))
        offer(QString::fromStdString(spec().choices[std::size_t(index)].key));
    else
        offer(m_list->itemData(index).toString());
}

QString ChoiceField::allKeys() const
{
    QStringList keys;
    for (const ChoiceValue& choice : spec().choices)
        keys << QString::fromStdString(choice.key);
    return keys.join(u',');
}

FlagField::FlagField(const ParameterSpec& spec, QWidget* parent)
    : ParameterField(spec, parent)
    , m_box(new QCheckBox(QString::fromStdString(spec.label), this))
{
    label()->setVisible(false);
    m_box->setAccessibleDescription(QString::fromStdString(spec.help));
    column()->insertWidget(0, m_box);
    connect(m_box, &QCheckBox::clicked, this,
            [this](bool on) { offer(on ? QStringLiteral("true") : QStringLiteral("false")); });
}

void FlagField::display(const ParameterValue& value, const std::optional<Sweep>&)
{
    m_box->setChecked(std::holds_alternative<bool>(value) && std::get<bool>(value));
    clearError();
}

} // namespace memscape
