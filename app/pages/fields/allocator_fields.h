// SPDX-License-Identifier: GPL-3.0-or-later
// The fields of `allocator`: what is played (a model, a script) and by which allocator; both know the words that there
// are.
#pragma once

#include "app/pages/fields/text_field.h"

namespace memscape {

/// Names of models as one types, a button for a script.
class TraceField : public TextField
{
    Q_OBJECT

public:
    explicit TraceField(const ParameterSpec& spec, QWidget* parent = nullptr);
};

/// Allocators and options of PYTORCH_CUDA_ALLOC_CONF; what is neither is refused, with the reason under the line.
class SettingField : public TextField
{
    Q_OBJECT

public:
    explicit SettingField(const ParameterSpec& spec, QWidget* parent = nullptr);

protected:
    Result<void> check(const QString& text) const override;
};

} // namespace memscape
