// SPDX-License-Identifier: GPL-3.0-or-later
// The form of an experiment, made from its schema alone: a new parameter in core appears here
// without a line of code. It shows parameters and reports edits; it never keeps values of its own.
// Groups of a schema other than the basic one are sections that fold. What means nothing at the
// choice is left out; where such a parameter is not at its default, the form's last line names it.
#pragma once

#include "app/pages/fields/parameter_field.h"

#include <QStringList>

#include <map>
#include <set>
#include <vector>

class QLabel;

namespace memscape {

class ParameterSection;

class ParameterForm : public QWidget
{
    Q_OBJECT

public:
    explicit ParameterForm(const Schema& schema, QWidget* parent = nullptr);

    void display(const Parameters& parameters, ByteStyle bytes = ByteStyle::Binary);
    /// What parameters are compared with; the schema's defaults until it is set.
    void setStandard(const Parameters& standard);
    /// Of what is displayed, leaves out the parameters with these keys, but for one that is swept.
    void setIdle(const std::vector<std::string>& keys);
    /// Why there is no prediction, at the parameter that the error names, or its remedy; none takes it away.
    void setRefusal(const std::optional<Error>& error);
    /// Unfolds its section and gives it the keyboard.
    void reveal(const QString& key);
    /// The page sees to that one by itself: never shown.
    void leaveOut(const QString& key);
    ParameterField* field(const QString& key) const;
    const std::vector<ParameterSection*>& sections() const { return m_sections; }
    QString idleText() const; ///< the last line; empty for none

signals:
    void edited(const QString& key, const QString& text); ///< text parses as value or sweep
    void editing(bool active);
    void folded(const QString& title, bool open); ///< a section, by hand

private:
    void place(ParameterField* field);
    void refresh();
    QString changedText(const ParameterSpec& spec) const;

    std::vector<ParameterField*> m_fields;
    std::vector<ParameterSection*> m_sections;
    QLabel* m_idleLine;
    std::set<std::string> m_idle, m_leftOut;
    Parameters m_shown, m_standard;
    std::optional<ByteStyle> m_bytes; ///< none: nothing is shown yet
};

} // namespace memscape
