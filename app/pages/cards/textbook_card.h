// SPDX-License-Identifier: GPL-3.0-or-later
// The formulas of papers and courses beside the simulated figure, and what makes the difference.
#pragma once

#include "app/pages/cards/card.h"
#include "app/pictures/training-memory/memory_state.h"

#include <vector>

namespace memscape {

class TextbookCard : public Card
{
    Q_OBJECT

public:
    explicit TextbookCard(QWidget* parent = nullptr);

    /// Hidden while there is none.
    void setFormulas(const std::vector<TextbookFormula>& formulas, ByteStyle bytes);

private:
    struct Lines
    {
        QLabel *formula, *values, *difference, *source;
    };
    std::vector<Lines> m_lines; // reused while a slider moves
};

} // namespace memscape
