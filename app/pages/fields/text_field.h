// SPDX-License-Identifier: GPL-3.0-or-later
// A free text: the name of a model, a path, a recipe such as from-scratch:layers=2. One line to
// type in; several texts, each in double quotes, sweep.
#pragma once

#include "app/pages/fields/parameter_field.h"

#include <functional>
#include <utility>

class QAbstractItemModel;
class QLineEdit;
class QToolButton;

namespace memscape {

class TextField : public ParameterField
{
    Q_OBJECT

public:
    explicit TextField(const ParameterSpec& spec, QWidget* parent = nullptr);

    void display(const ParameterValue& value, const std::optional<Sweep>& sweep) override;
    /// As if it had been typed: a text that is refused stays, with the reason under it.
    void propose(const QString& text);
    /// Asks for a file; empty: none was chosen. Tests answer it.
    std::function<QString()> askFile;

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;

    QLineEdit* edit() const { return m_edit; }
    /// Offers those rows that contain what is typed, whatever the case. They are made when the line is first used, and
    /// the field owns them.
    void suggest(std::function<QAbstractItemModel*()> choices) { m_choices = std::move(choices); }
    /// A button beside the label that proposes the file `askFile` answers with.
    QToolButton* addFileButton(const QString& text, const QString& tip);
    /// Whether a text means something; what it says otherwise stands under the line.
    virtual Result<void> check(const QString&) const { return {}; }

private:
    void commit();
    void complete(QAbstractItemModel* choices);

    QLineEdit* m_edit;
    std::function<QAbstractItemModel*()> m_choices; ///< while they are not made
    QString m_shown;                                ///< what parses back to the value or sweep
};

} // namespace memscape
