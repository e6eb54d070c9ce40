// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/labs/answer_fields.h"

#include "app/pages/cards/card.h"
#include "app/plots/plot_style.h"
#include "app/settings/words.h"
#include "core/base/json_values.h"
#include "core/base/number.h"

#include <QButtonGroup>
#include <QEvent>
#include <QGridLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QRadioButton>
#include <QVBoxLayout>

namespace memscape {

QString answerHint(Unit unit)
{
    switch (unit) {
    case Unit::Byte: return tr("48 KiB, 1.5 GB");
    case Unit::Second: return tr("1.5 ns, 20 us");
    case Unit::BytePerSecond: return tr("20 GB/s");
    case Unit::FlopPerSecond: return tr("2 TFLOP/s");
    case Unit::Hertz: return tr("3.5 GHz");
    case Unit::One: break;
    }
    return tr("a number, 0.25 or 25 %");
}

void markInvalid(QLineEdit* edit, bool isInvalid)
{
    if (edit->property("invalid").toBool() == isInvalid)
        return;
    edit->setProperty("invalid", isInvalid);
    edit->style()->unpolish(edit);
    edit->style()->polish(edit);
}

// A number. ---------------------------------------------------------------------------------------

NumberAnswer::NumberAnswer(const LabQuestion& question, QWidget* parent)
    : QuestionField(question, parent)
    , m_edit(new QLineEdit(this))
{
    m_edit->setObjectName(QStringLiteral("answer.") + toQString(question.key));
    m_edit->setPlaceholderText(answerHint(question.unit));
    m_edit->setMaxLength(200);
    column()->addWidget(m_edit);
    connect(m_edit, &QLineEdit::editingFinished, this, &NumberAnswer::commit);
    m_edit->setAccessibleName(shortName());
}

void NumberAnswer::fill(const QuestionView&)
{
    m_edit->setAccessibleName(shortName());
}

void NumberAnswer::display(const Json* given)
{
    const QString text = given ? answerText(m_question, *given) : QString();
    if (text == m_kept)
        return; // what is being typed, or was refused, stays
    m_kept = m_reported = text;
    m_edit->setText(text);
    markInvalid(m_edit, false);
    bool isPlain = false;
    const double number = text.toDouble(&isPlain);
    remark(isPlain && m_question.unit != Unit::One
               ? tr("read as %1").arg(toQString(quantityText(number, m_question.unit)))
               : QString()); // "5" may have been meant as GB
}

void NumberAnswer::commit()
{
    const QString text = m_edit->text().trimmed();
    if (m_edit->isReadOnly() || text == m_reported)
        return;
    m_reported = text;
    if (text == m_kept)
        showError({}); // back to what is kept
    else
        report(Json(text.toStdString()));
    markInvalid(m_edit, !errorText().isEmpty());
}

void NumberAnswer::enable(bool mayAnswer)
{
    m_edit->setReadOnly(!mayAnswer);
    m_edit->setEnabled(mayAnswer || !m_edit->text().isEmpty());
}

// A choice. ---------------------------------------------------------------------------------------

ChoiceAnswer::ChoiceAnswer(const LabQuestion& question, QWidget* parent)
    : QuestionField(question, parent)
    , m_group(new QButtonGroup(this))
{
    auto* grid = new QGridLayout;
    grid->setContentsMargins(0, 0, 0, 0);
    grid->setColumnStretch(1, 1);
    for (std::size_t i = 0; i < question.options.size(); ++i) {
        auto* button = new QRadioButton(this);
        button->setObjectName(
            QStringLiteral("answer.%1.%2").arg(toQString(question.key), toQString(question.options[i].key)));
        auto* label = new QLabel(toQString(question.options[i].label), this);
        label->setTextFormat(Qt::MarkdownText);
        label->setWordWrap(true);
        label->installEventFilter(this);
        m_labels.push_back(label);
        m_group->addButton(button, int(i));
        grid->addWidget(button, int(i), 0, Qt::AlignTop);
        grid->addWidget(label, int(i), 1);
        button->setAccessibleName(label->text());
    }
    column()->addLayout(grid);
    connect(m_group, &QButtonGroup::idClicked, this,
            [this](int id) { report(Json(m_question.options[std::size_t(id)].key)); });
}

void ChoiceAnswer::fill(const QuestionView& view)
{
    for (std::size_t i = 0; i < m_labels.size() && int(i) < view.labels.size(); ++i) {
        m_labels[i]->setText(view.labels.at(int(i)));
        m_group->button(int(i))->setAccessibleName(view.labels.at(int(i)));
    }
}

void ChoiceAnswer::display(const Json* given)
{
    const std::string key = given ? words(*given) : std::string();
    for (std::size_t i = 0; i < m_question.options.size(); ++i)
        if (m_question.options[i].key == key)
            m_group->button(int(i))->setChecked(true);
}

void ChoiceAnswer::enable(bool mayAnswer)
{
    for (QAbstractButton* one : m_group->buttons())
        one->setEnabled(mayAnswer);
}

/// A click on the words chooses, too.
bool ChoiceAnswer::eventFilter(QObject* watched, QEvent* event)
{
    if (event->type() == QEvent::MouseButtonRelease)
        for (std::size_t i = 0; i < m_labels.size(); ++i)
            if (watched == m_labels[i])
                m_group->button(int(i))->click();
    return QuestionField::eventFilter(watched, event);
}

// A text. -----------------------------------------------------------------------------------------

TextAnswer::TextAnswer(const LabQuestion& question, QWidget* parent)
    : QuestionField(question, parent)
    , m_edit(new QPlainTextEdit(this))
{
    m_edit->setObjectName(QStringLiteral("answer.") + toQString(question.key));
    m_edit->setTabChangesFocus(true);
    m_edit->setFixedHeight(int(96 * plotUnit()));
    m_edit->setAccessibleName(shortName());
    column()->addWidget(m_edit);
    connect(m_edit, &QPlainTextEdit::textChanged, this, &TextAnswer::commit);
}

void TextAnswer::fill(const QuestionView&)
{
    m_edit->setAccessibleName(shortName());
}

void TextAnswer::display(const Json* given)
{
    const QString text = given ? toQString(words(*given)) : QString();
    const bool isTyped = text == m_edit->toPlainText() || m_edit->hasFocus();
    if (std::exchange(m_kept, text) == text || isTyped)
        return;
    m_isShowing = true;
    m_edit->setPlainText(text);
    m_isShowing = false;
}

void TextAnswer::commit()
{
    if (!m_isShowing && !m_edit->isReadOnly() && !m_edit->toPlainText().isEmpty())
        report(Json(m_edit->toPlainText().toStdString()));
}

void TextAnswer::enable(bool mayAnswer)
{
    m_edit->setReadOnly(!mayAnswer);
    m_edit->setEnabled(mayAnswer || !m_edit->toPlainText().isEmpty());
}

// Parameters. -------------------------------------------------------------------------------------

ParametersAnswer::ParametersAnswer(const LabQuestion& question, QWidget* parent)
    : QuestionField(question, parent)
    , m_text(toneLabel({}, "strong", this, true))
{
    m_text->setObjectName(QStringLiteral("answer.") + toQString(question.key));
    column()->addWidget(m_text);
    display(nullptr);
}

void ParametersAnswer::display(const Json* given)
{
    if (!given || !given->is_object()) {
        m_text->setText(tr("Choose on the page beside this: what it shows is your answer."));
        return;
    }
    QStringList lines;
    for (const auto& [key, value] : given->items()) {
        const ParameterSpec* spec = findParameter(m_schema, key);
        const std::string text = value.is_string() ? value.get<std::string>() : jsonLine(value);
        const auto read = spec ? parseValue(*spec, text) : Result<ParameterValue>(text);
        lines << (spec && read ? tr("%1: %2").arg(toQString(spec->label), toQString(valueLabel(*spec, *read)))
                               : QStringLiteral("%1: %2").arg(toQString(key), toQString(text)));
    }
    m_text->setText(lines.join(u'\n'));
}

QString ParametersAnswer::text() const
{
    return m_text->text();
}

} // namespace memscape
