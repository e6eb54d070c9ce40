// SPDX-License-Identifier: GPL-3.0-or-later
// Which network: a line that knows the names that come with the program, recipes, and the files of
// a network, which a button opens. What names no network is refused, with the reason under the
// line.
#pragma once

#include "app/pages/fields/text_field.h"

namespace memscape {

/// The models that come with the program, each with what it is called: "llama-2-7b". Every model is a file: it takes
/// a moment.
QAbstractItemModel* modelList();

class ModelField : public TextField
{
    Q_OBJECT

public:
    explicit ModelField(const ParameterSpec& spec, QWidget* parent = nullptr);

protected:
    Result<void> check(const QString& text) const override;
};

} // namespace memscape
