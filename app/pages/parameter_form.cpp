// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/parameter_form.h"

#include <QVBoxLayout>

#include <algorithm>

namespace memscape {

ParameterForm::ParameterForm(const Schema& schema, QWidget* parent)
    : QWidget(parent)
{
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(7);
    for (const ParameterSpec& spec : schema) {
        ParameterField* field = makeParameterField(spec, this);
        connect(field, &ParameterField::edited, this, &ParameterForm::edited);
        connect(field, &ParameterField::editing, this, &ParameterForm::editing);
        column->addWidget(field);
        m_fields.push_back(field);
    }
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
            const bool same = std::find(before.begin(), before.end(), one) != before.end();
            if (one.first == key && (all || !same || !field->errorText().isEmpty()))
                field->display(one.second, parameters.sweep());
        }
    }
    m_shown = parameters;
    m_bytes = bytes;
}

void ParameterForm::setDevice(bool isGpu)
{
    const AppliesTo elsewhere = isGpu ? AppliesTo::Hosts : AppliesTo::Gpus;
    for (ParameterField* field : m_fields) {
        const ParameterSpec& spec = field->spec();
        const bool isSwept = m_shown.sweep() && m_shown.sweep()->key == spec.key; // the plot is over it
        if (spec.appliesTo != AppliesTo::Everywhere)
            field->setVisible(spec.appliesTo != elsewhere || isSwept);
    }
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
