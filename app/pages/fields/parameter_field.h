// SPDX-License-Identifier: GPL-3.0-or-later
// One line of the parameter form: label and value over a slider, chips, a list, a check box or a
// line of text. A field shows a value that it is given and reports what a person made of it as text
// that parses (a value, or a sweep such as 1:128:x2). Text that does not parse stays where it was
// typed, with the reason in red under it; Esc brings the last good value back.
#pragma once

#include "core/experiment/parameter.h"

#include <QString>
#include <QWidget>

#include <memory>

class QLabel;
class QVBoxLayout;

namespace memscape {

class ParameterField : public QWidget
{
    Q_OBJECT

public:
    explicit ParameterField(const ParameterSpec& spec, QWidget* parent = nullptr);

    const ParameterSpec& spec() const { return m_spec; }
    /// Shows a value (or the sweep it is part of) without reporting it back.
    /// How bytes are written; holds from the next display() on.
    void setByteStyle(ByteStyle style) { m_bytes = style; }
    virtual void display(const ParameterValue& value, const std::optional<Sweep>& sweep) = 0;
    QString errorText() const;
    bool isTypedWrong() const { return !m_isRefused && !errorText().isEmpty(); }
    /// What became of a value that leaves it open, under it; empty: nothing is said.
    void setNote(const QString& text);
    /// What a prediction refuses, though it parses, until the next display() or without an error.
    void setRefusal(const QString& text);

signals:
    void edited(const QString& key, const QString& text);
    /// A drag begins (true) or ends (false): edits between are one undo step.
    void editing(bool active);

protected:
    QVBoxLayout* column() const { return m_column; }
    QLabel* label() const { return m_label; }
    ByteStyle byteStyle() const { return m_bytes; }
    /// Checks the text; reports it when it parses, else shows why not. True when it parsed.
    bool offer(const QString& text);
    void showError(const Error& error);
    void clearError();
    QString key() const { return QString::fromStdString(m_spec.key); }

private:
    ParameterSpec m_spec;
    ByteStyle m_bytes = ByteStyle::Binary;
    QVBoxLayout* m_column;
    QLabel* m_label;
    QLabel *m_note, *m_error;
    bool m_isRefused = false; ///< the error is the prediction's
};

/// The right kind of field for a parameter: slider with value, chips, list, check box or line.
ParameterField* makeParameterField(const ParameterSpec& spec, QWidget* parent);

/// Help, range and how to sweep, as rich text.
QString parameterToolTip(const ParameterSpec& spec);

} // namespace memscape
