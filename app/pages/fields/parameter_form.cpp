// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/fields/parameter_form.h"

#include "app/pages/cards/card.h"
#include "app/pages/fields/parameter_section.h"
#include "app/settings/words.h"

#include <QLineEdit>

#include <algorithm>

namespace memscape {

namespace {

const ParameterValue* valueOf(const Parameters& parameters, const std::string& key)
{
    for (const auto& [name, value] : parameters.values()) {
        if (name == key)
            return &value;
    }
    return nullptr;
}

} // namespace

ParameterForm::ParameterForm(const Schema& schema, QWidget* parent)
    : QWidget(parent)
    , m_idleLine(toneLabel({}, "faint", this))
    , m_standard(resolve(schema, std::vector<std::string>{}).value_or(Parameters()))
{
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(7);
    for (const std::string& group : groupsOf(schema)) {
        if (!group.empty()) {
            m_sections.push_back(new ParameterSection(capitalized(toQString(group)), this));
            column->addWidget(m_sections.back());
            connect(m_sections.back(), &ParameterSection::folded, this, &ParameterForm::folded);
        }
        for (const ParameterSpec& spec : schema) {
            if (spec.group == group)
                place(makeParameterField(spec, this));
        }
    }
    m_idleLine->setObjectName(QStringLiteral("idle"));
    m_idleLine->hide();
    column->addWidget(m_idleLine);
}

void ParameterForm::place(ParameterField* field)
{
    connect(field, &ParameterField::edited, this, &ParameterForm::edited);
    connect(field, &ParameterField::editing, this, &ParameterForm::editing);
    if (m_sections.empty() || field->spec().group.empty())
        layout()->addWidget(field);
    else
        m_sections.back()->add(field);
    m_fields.push_back(field);
}

void ParameterForm::display(const Parameters& parameters, ByteStyle bytes)
{
    // While a slider moves one field of twenty has something else to show.
    const bool all = m_bytes != bytes || m_shown.sweep() != parameters.sweep();
    const auto& before = m_shown.values();
    for (ParameterField* field : m_fields) {
        const std::string& key = field->spec().key;
        field->setByteStyle(bytes);
        for (const auto& one : parameters.values()) {
            const bool same = std::ranges::find(before, one) != before.end();
            if (one.first == key && (all || !same || field->isTypedWrong()))
                field->display(one.second, parameters.sweep());
        }
    }
    m_shown = parameters;
    m_bytes = bytes;
    refresh();
}

void ParameterForm::setStandard(const Parameters& standard)
{
    m_standard = standard;
    refresh();
}

void ParameterForm::setIdle(const std::vector<std::string>& keys)
{
    m_idle = {keys.begin(), keys.end()};
    refresh();
}

void ParameterForm::setRefusal(const std::optional<Error>& error)
{
    const std::string place = !error                       ? ""
        : field(toQString(error->place)) || !error->remedy ? error->place
                                                           : error->remedy->parameter;
    for (ParameterField* one : m_fields)
        one->setRefusal(error && one->spec().key == place ? toQString(error->message) : QString());
}

void ParameterForm::reveal(const QString& key)
{
    ParameterField* wanted = field(key);
    if (wanted == nullptr)
        return;
    for (ParameterSection* section : m_sections)
        if (section->isAncestorOf(wanted))
            section->setOpen(true);
    if (auto* line = wanted->findChild<QLineEdit*>())
        line->setFocus(Qt::ShortcutFocusReason); // the inspector scrolls to what has the keyboard
}

void ParameterForm::leaveOut(const QString& key)
{
    m_leftOut.insert(key.toStdString());
    refresh();
}

/// "ZeRO stage 2"; empty at the default, of the device's page or of the schema.
QString ParameterForm::changedText(const ParameterSpec& spec) const
{
    const ParameterValue* now = valueOf(m_shown, spec.key);
    const ParameterValue* standard = valueOf(m_standard, spec.key);
    const bool isSwept = m_shown.sweep() && m_shown.sweep()->key == spec.key;
    const auto ofSchema = parseValue(spec, spec.standard);
    const bool isStandard = now && standard && (*now == *standard || (ofSchema && *now == *ofSchema));
    if (!now || (isStandard && !isSwept))
        return {};
    const QString label = QString::fromStdString(spec.label);
    if (isSwept)
        return tr("%1 swept").arg(label);
    if (const bool* on = std::get_if<bool>(now))
        return *on ? label : tr("%1 off").arg(label);
    return label + u' ' + QString::fromStdString(valueLabel(spec, *now, m_bytes.value_or(ByteStyle::Binary)));
}

void ParameterForm::refresh()
{
    QStringList idle;
    std::map<std::string, QStringList> changed;
    for (ParameterField* field : m_fields) {
        const ParameterSpec& spec = field->spec();
        const bool isSwept = m_shown.sweep() && m_shown.sweep()->key == spec.key; // the plot is over it
        const bool isIdle = m_idle.contains(spec.key) && !isSwept;
        const bool isLeftOut = m_leftOut.contains(spec.key);
        field->setVisible(!isIdle && !isLeftOut);
        if (isLeftOut)
            continue;
        if (const QString text = changedText(spec); !text.isEmpty())
            isIdle ? void(idle << text) : void(changed[spec.group] << text);
    }
    for (ParameterSection* section : m_sections) {
        section->refresh();
        const auto own = std::ranges::find_if(changed, [&](const auto& one) {
            return !one.first.empty() && capitalized(toQString(one.first)) == section->title();
        });
        section->setChanged(own == changed.end() ? QStringList() : own->second);
    }
    m_idleLine->setText(idle.isEmpty() ? QString()
                                       : tr("Set, but without effect here: %1").arg(idle.join(QStringLiteral(", "))));
    m_idleLine->setVisible(!idle.isEmpty());
}

QString ParameterForm::idleText() const
{
    return m_idleLine->text();
}

ParameterField* ParameterForm::field(const QString& key) const
{
    for (ParameterField* field : m_fields) {
        if (field->spec().key == key.toStdString())
            return field;
    }
    return nullptr;
}

} // namespace memscape
