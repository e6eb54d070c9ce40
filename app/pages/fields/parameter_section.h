// SPDX-License-Identifier: GPL-3.0-or-later
// A heading with the parameters under it, which fold away. The heading shows which parameters differ from their
// defaults, folded or not: how many, and which.
#pragma once

#include "app/pages/fields/parameter_field.h"

#include <QStringList>
#include <QWidget>

#include <vector>

class QToolButton;
class QLabel;
class QVBoxLayout;

namespace memscape {

class ParameterSection : public QWidget
{
    Q_OBJECT

public:
    explicit ParameterSection(const QString& title, QWidget* parent = nullptr);

    void add(ParameterField* field);
    const QString& title() const { return m_title; }
    QToolButton* header() const { return m_header; }
    bool isOpen() const;
    void setOpen(bool open);
    /// "ZeRO stage 2" of each parameter in it that is not at its default.
    void setChanged(const QStringList& changed);
    QString changedText() const;
    /// Not there at all while none of its fields is.
    void refresh();

signals:
    void folded(const QString& title, bool open); ///< by hand

private:
    void showState();

    QString m_title;
    QToolButton* m_header;
    QLabel* m_count;
    QLabel* m_changed;
    QWidget* m_body;
    QVBoxLayout* m_column;
    QStringList m_differing;
    std::vector<ParameterField*> m_fields;
};

} // namespace memscape
