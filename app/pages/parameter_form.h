// SPDX-License-Identifier: GPL-3.0-or-later
// The form of an experiment, made from its schema alone: a new parameter in core appears here
// without a line of code. It shows parameters and reports edits; it never keeps values of its own.
#pragma once

#include "app/pages/parameter_field.h"

#include <vector>

namespace memscape {

class ParameterForm : public QWidget
{
    Q_OBJECT

public:
    explicit ParameterForm(const Schema& schema, QWidget* parent = nullptr);

    void display(const Parameters& parameters, ByteStyle bytes = ByteStyle::Binary);
    /// Of what is displayed, leaves out what means nothing on a GPU, or on a host, unless it is swept.
    void setDevice(bool isGpu);
    ParameterField* field(const QString& key) const;

signals:
    void edited(const QString& key, const QString& text); ///< text parses as value or sweep
    void editing(bool active);

private:
    std::vector<ParameterField*> m_fields;
    Parameters m_shown;
    std::optional<ByteStyle> m_bytes; ///< none: nothing is shown yet
};

} // namespace memscape
