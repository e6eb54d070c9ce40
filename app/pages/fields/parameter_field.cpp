// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/fields/parameter_field.h"
#include "app/pages/fields/allocator_fields.h"

#include "app/pages/fields/checkpoint_fields.h"
#include "app/pages/fields/choice_field.h"
#include "app/pages/fields/model_field.h"
#include "app/pages/fields/number_field.h"
#include "app/pages/fields/text_field.h"
#include "app/pages/records/record_text.h"
#include "core/experiment/parameter_text.h"

#include <QLabel>
#include <QVBoxLayout>

namespace memscape {

ParameterField::ParameterField(const ParameterSpec& spec, QWidget* parent)
    : QWidget(parent)
    , m_spec(spec)
    , m_column(new QVBoxLayout(this))
    , m_label(new QLabel(QString::fromStdString(spec.label), this))
    , m_note(new QLabel(this))
    , m_error(new QLabel(this))
{
    setObjectName(QStringLiteral("field.") + key());
    setToolTip(parameterToolTip(spec));
    m_column->setContentsMargins(0, 0, 0, 0);
    m_column->setSpacing(0);
    m_error->setContentsMargins(0, 2, 0, 2);
    m_label->setProperty("tone", "dim");
    m_error->setProperty("tone", "bad");
    m_error->setWordWrap(true);
    m_error->setVisible(false);
    m_error->setObjectName(QStringLiteral("error"));
    m_note->setContentsMargins(0, 2, 0, 2);
    m_note->setProperty("tone", "dim");
    m_note->setWordWrap(true);
    m_note->setVisible(false);
    m_note->setObjectName(QStringLiteral("note"));
    m_column->addWidget(m_note);
    m_column->addWidget(m_error);
}

QString ParameterField::errorText() const
{
    return m_error->isHidden() ? QString() : m_error->text();
}

bool ParameterField::offer(const QString& text)
{
    const auto values = parseSweep(m_spec, text.trimmed().toStdString());
    if (!values) {
        showError(values.error());
        return false;
    }
    clearError();
    emit edited(key(), text.trimmed());
    return true;
}

void ParameterField::showError(const Error& error)
{
    const Error brief = withBriefHint(error);
    QString text = QString::fromStdString(brief.message);
    if (!brief.hint.empty())
        text += QStringLiteral(" (%1)").arg(QString::fromStdString(brief.hint));
    m_isRefused = false;
    m_error->setText(text);
    m_error->setVisible(true);
}

void ParameterField::setNote(const QString& text)
{
    m_note->setText(text);
    m_note->setVisible(!text.isEmpty());
}

void ParameterField::setRefusal(const QString& text)
{
    if (text.isEmpty() && m_isRefused)
        clearError();
    if (text.isEmpty() || isTypedWrong())
        return;
    m_isRefused = true;
    m_error->setText(text);
    m_error->setVisible(true);
}

void ParameterField::clearError()
{
    m_isRefused = false;
    m_error->setVisible(false);
    m_error->clear();
}

ParameterField* makeParameterField(const ParameterSpec& spec, QWidget* parent)
{
    switch (spec.kind) {
    case ParameterKind::Integer:
    case ParameterKind::Real: return new NumberField(spec, parent);
    case ParameterKind::Choice:
        if (spec.key == "strategy" && !spec.counted.empty())
            return new StrategyField(spec, parent);
        return new ChoiceField(spec, parent);
    case ParameterKind::Text:
        if (spec.key == "model" || spec.key == "draft_model")
            return new ModelField(spec, parent);
        if (spec.key == "chain")
            return new ChainField(spec, parent);
        if (spec.key == "trace")
            return new TraceField(spec, parent);
        if (spec.key == "setting")
            return new SettingField(spec, parent);
        if (spec.key == "budget")
            return new BudgetField(spec, parent);
        return new TextField(spec, parent);
    case ParameterKind::Flag: break;
    }
    return new FlagField(spec, parent);
}

QString parameterToolTip(const ParameterSpec& spec)
{
    QString tip =
        QStringLiteral("<p><b>%1</b><br>%2</p>")
            .arg(QString::fromStdString(spec.label).toHtmlEscaped(), QString::fromStdString(spec.help).toHtmlEscaped());
    if (spec.kind == ParameterKind::Integer || spec.kind == ParameterKind::Real) {
        tip += ParameterField::tr("<p>%1. Type several values to sweep: "
                                  "<code>1,2,5</code>, <code>1:128:x2</code> or "
                                  "<code>0:64:8</code>.</p>")
                   .arg(QString::fromStdString(numbersText(spec)).toHtmlEscaped());
    } else if (spec.kind == ParameterKind::Text) {
        tip += ParameterField::tr("<p>Type several texts, each in quotes, to sweep: "
                                  "<code>\"one\",\"two\"</code>.</p>");
    }
    return tip;
}

} // namespace memscape
