// SPDX-License-Identifier: GPL-3.0-or-later
// "Why this number?": the formula, the user's own values in it, where each constant comes from and
// what is left out, for the figure that is selected.
#pragma once

#include "app/pages/cards/card.h"
#include "core/base/quantity.h"

#include <optional>
#include <vector>

namespace memscape {

class WhyCard : public Card
{
    Q_OBJECT

public:
    explicit WhyCard(QWidget* parent = nullptr);

    /// Null: nothing to explain; the card says how to choose.
    void setFigure(const Figure* figure, ByteStyle bytes);
    /// All of it as text, for the clipboard and for screen readers.
    QString text() const;

private:
    QLabel* line(std::size_t index, const char* tone);
    void finish(std::size_t used);

    std::vector<QLabel*> m_lines; // reused: a dragged slider must not rebuild widgets
    std::optional<Figure> m_figure;
};

} // namespace memscape
