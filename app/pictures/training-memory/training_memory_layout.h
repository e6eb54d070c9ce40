// SPDX-License-Identifier: GPL-3.0-or-later
// The memory budget on paper: a bar of the parts of the device total with the device's capacity as
// a line across it, what is needed in words, and below it cards of what would help, as many as
// there is room for. Pure geometry, so that a test can ask whether anything overlaps or leaves the
// picture.
#pragma once

#include "app/pictures/training-memory/memory_state.h"

#include <QRectF>

namespace memscape {

/// A change that was made from a card, and how to take it back.
struct AppliedLever
{
    LeverCard card;
    ParameterChanges before;
    ParameterChanges others; ///< the other parameters then: with these the saving is still the one shown
    bool savingHolds = true;
};

/// What stands under the bar.
enum class TrainingMemoryView { Levers, Searching, Fit };

struct TrainingMemoryState
{
    MemoryState memory;
    QString title;                     ///< "Llama-2-7B · batch 8 · 4096 tokens · AdamW · bf16 mixed"
    std::vector<AppliedLever> applied; ///< in force now
    TrainingMemoryView view = TrainingMemoryView::Levers;
    bool advises = true;    ///< the experiment has levers at all
    QString reach;          ///< without levers: "At batch 8 up to 4096 tokens fit, …"
    bool settled = true;    ///< false while something moves: the cards are of the step before
    bool isFilling = false; ///< more cards will come
    int firstCard = 0;      ///< of the page of cards that is shown
    ByteStyle bytes = ByteStyle::Decimal;
};

struct PartBox
{
    QRectF rect;
    int part = 0;        ///< of MemoryState::parts
    QString label, size; ///< empty where they do not fit
    double textLeft = 0; ///< where they begin: beside the line of the capacity, not under it
};

enum class MemoryItem { Card, Applied, MakeItFit, Cancel, Back, Previous, Next, BatchSize };

/// Something to click: a card of a lever or a button.
struct MemoryButton
{
    MemoryItem item = MemoryItem::Card;
    int index = 0; ///< of the lever, the applied lever or the combination
    QRectF rect;
    QString text; ///< of a button
};

struct TrainingMemoryLayout
{
    QRectF title;
    QString titleText; ///< elided
    QRectF bar;        ///< where parts lie; longer than them when they fit
    std::vector<PartBox> parts;
    std::optional<double> capacityX;
    QRectF capacity, needed; ///< texts under the bar
    QString capacityText, neededText;
    std::vector<QRectF> ranks; ///< of a pipeline, as high as each is full; empty where there is no room
    QRectF rankLine;
    QString rankText;
    QRectF heading, caption;
    QString headingText, captionText;
    QRectF message; ///< instead of cards: nothing helps, searching…
    QString messageText;
    std::vector<MemoryButton> buttons; ///< in the order of the keyboard

    /// Every rectangle that holds text or can be clicked.
    std::vector<QRectF> pieces() const;
};

TrainingMemoryLayout layoutTrainingMemory(const TrainingMemoryState& state, const QRectF& rect);

/// The card of a button; null for buttons without one.
const LeverCard* cardOf(const TrainingMemoryState& state, const MemoryButton& button);

/// "186.4 GB needed: 45 GB too many", "92 GB needed: fits, 49 GB free".
QString neededText(const MemoryState& state, ByteStyle bytes);

} // namespace memscape
