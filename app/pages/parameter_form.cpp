// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/parameter_form.h"

#include <QVBoxLayout>

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
    for (ParameterField* field : m_fields) {
        const std::string& key = field->spec().key;
        field->setByteStyle(bytes);
        for (const auto& [name, value] : parameters.values()) {
            if (name == key)
                field->display(value, parameters.sweep());
        }
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
