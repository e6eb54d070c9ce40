// SPDX-License-Identifier: GPL-3.0-or-later
// A choice: chips side by side when they are few and short, else a list. And a flag: a check box.
// The context menu of a choice sweeps over all of its values.
#pragma once

#include "app/pages/fields/parameter_field.h"

class QButtonGroup;
class QCheckBox;
class QComboBox;

namespace memscape {

class ChoiceField : public ParameterField
{
    Q_OBJECT

public:
    explicit ChoiceField(const ParameterSpec& spec, QWidget* parent = nullptr);

    void display(const ParameterValue& value, const std::optional<Sweep>& sweep) override;

protected:
    void contextMenuEvent(QContextMenuEvent* event) override;

private:
    void buildChips();
    void buildList();
    void choose(int index);
    void showCounted(const std::string& text);
    QString allKeys() const;

    QButtonGroup* m_chips = nullptr;
    QComboBox* m_list = nullptr;
    QLabel* m_swept;
};

class FlagField : public ParameterField
{
    Q_OBJECT

public:
    explicit FlagField(const ParameterSpec& spec, QWidget* parent = nullptr);

    void display(const ParameterValue& value, const std::optional<Sweep>& sweep) override;

private:
    QCheckBox* m_box;
};

} // namespace memscape
