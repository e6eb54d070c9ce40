// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pictures/training-memory/training_memory_layout.h"

#include "app/plots/plot_style.h"
#include "app/settings/words.h"

#include <QFontMetricsF>

#include <algorithm>

namespace memscape {

namespace {

struct CardShape
{
    double narrowest = 0;
    int fewestColumns = 1;
};
constexpr CardShape changeCard{222, 2}; ///< a saving, a change of time and "inexact"; narrower where there is no room
constexpr CardShape fitCard{320, 1};    ///< combinations have longer names
constexpr int mostChipRows = 2;

/// A place from the top down.
struct Column
{
    QRectF area;
    double y;

    QRectF take(double height, double after)
    {
        const QRectF line(area.left(), y, area.width(), height);
        y += height + after;
        return line;
    }
};

void placeParts(const TrainingMemoryState& state, TrainingMemoryLayout& layout)
{
    const double u = plotUnit();
    const QFontMetricsF bold(plotFont(0.85, true)), plain(plotFont(0.85));
    const double total = state.memory.total();
    const double scale = layout.bar.width() / std::max({total, state.memory.capacity.value_or(0), 1.0});
    if (state.memory.capacity)
        layout.capacityX = layout.bar.left() + *state.memory.capacity * scale;
    double x = layout.bar.left();
    for (std::size_t i = 0; i < state.memory.parts.size(); ++i) {
        const MemoryPart& part = state.memory.parts[i];
        const double width = part.bytes * scale;
        PartBox box;
        box.part = int(i);
        const double gap = width > 5 * u ? 1.0 : 0;
        box.rect = QRectF(x, layout.bar.top(), std::max(width - gap, 0.6), layout.bar.height());
        x += width;
        const QString size = memoryText(part.bytes, state.bytes);
        const double wide = std::max(plain.horizontalAdvance(size), bold.horizontalAdvance(part.label));
        box.textLeft = box.rect.left() + 7 * u;
        const double line = layout.capacityX.value_or(-1);
        if (line > box.textLeft - 4 * u && line < box.textLeft + wide + 4 * u)
            box.textLeft = line + 7 * u;
        if (box.textLeft + wide <= box.rect.right() - 6 * u) {
            box.label = part.label;
            box.size = size;
        }
        layout.parts.push_back(box);
    }
}

/// Under its line, moved in from the edges.
QRectF centred(double x, const QString& text, const QFontMetricsF& metrics, const QRectF& row)
{
    const double width = metrics.horizontalAdvance(text) + 4;
    const double left = std::clamp(x - width / 2, row.left(), std::max(row.left(), row.right() - width));
    return {left, row.top(), std::min(width, row.width()), row.height()};
}

void placeTotals(const TrainingMemoryState& state, TrainingMemoryLayout& layout, Column& column)
{
    const double u = plotUnit();
    const QFontMetricsF bold(plotFont(0.85, true)), large(plotFont(0.95, true));
    const QRectF row = column.take(std::max(bold.height(), large.height()), 8 * u);
    layout.neededText = neededText(state.memory, state.bytes);
    if (state.memory.capacity)
        layout.capacityText = tr("%1 on this device").arg(memoryText(*state.memory.capacity, state.bytes));
    const double end = layout.parts.empty() ? row.left() : layout.parts.back().rect.right();
    layout.needed = centred(end, layout.neededText, large, row);
    if (layout.capacityText.isEmpty())
        return;
    layout.capacity = centred(*layout.capacityX, layout.capacityText, bold, row);
    // One row for both when they keep apart; the longer sentence moves, the label stays at its
    // line.
    const double gap = 16 * u;
    if (layout.capacity.right() + gap <= layout.needed.left() || layout.needed.right() + gap <= layout.capacity.left())
        return;
    if (layout.capacity.left() - gap - layout.needed.width() >= row.left()
        && layout.needed.center().x() < layout.capacity.center().x()) {
        layout.needed.moveRight(layout.capacity.left() - gap);
    } else if (layout.capacity.right() + gap + layout.needed.width() <= row.right()) {
        layout.needed.moveLeft(layout.capacity.right() + gap);
    } else if (layout.capacity.left() - gap - layout.needed.width() >= row.left()) {
        layout.needed.moveRight(layout.capacity.left() - gap);
    } else { // too narrow for both: the sentence says it all
        layout.capacity = QRectF();
        layout.capacityText.clear();
    }
}

/// Which rank of a pipeline the bar is of, and beside it all of them.
void placeRanks(const TrainingMemoryState& state, TrainingMemoryLayout& layout, Column& column)
{
    const PipelineRanks& ranks = state.memory.ranks;
    if (ranks.totals.empty())
        return;
    const double u = plotUnit();
    const QFontMetricsF plain(plotFont(0.88));
    layout.rankText = tr("rank %1 of %2 needs most: %3 passes in flight, at most")
                          .arg(ranks.fullest)
                          .arg(ranks.totals.size())
                          .arg(ranks.inFlight[std::size_t(ranks.fullest)]);
    const QRectF row = column.take(plain.height() + 6 * u, 8 * u);
    layout.rankLine = QRectF(row.left(), row.top(), std::min(plain.horizontalAdvance(layout.rankText) + 4, row.width()),
                             row.height());
    const double left = layout.rankLine.right() + 14 * u, width = 22 * u;
    if (left + width * double(ranks.totals.size()) > row.right())
        return;
    const double most = *std::ranges::max_element(ranks.totals);
    for (std::size_t i = 0; i < ranks.totals.size(); ++i) {
        const double height = row.height() * ranks.totals[i] / most;
        layout.ranks.emplace_back(left + width * double(i), row.bottom() - height, width - 3 * u, height);
    }
}

/// Buttons of the heading, from the right; returns where their room begins.
double placeHeadingButtons(TrainingMemoryLayout& layout, const QRectF& row,
                           const std::vector<std::pair<MemoryItem, QString>>& wanted)
{
    const double u = plotUnit();
    const QFontMetricsF metrics(plotFont(0.88, true));
    double right = row.right();
    for (const auto& [item, text] : wanted) {
        const double width = metrics.horizontalAdvance(text) + 22 * u;
        layout.buttons.push_back({item, 0, QRectF(right - width, row.top(), width, row.height()), text});
        right -= width + 6 * u;
    }
    return right;
}

std::vector<QRectF> cardPlaces(const QRectF& area, const CardShape& shape, std::size_t wanted)
{
    const double u = plotUnit();
    const QFontMetricsF bold(plotFont(0.95, true)), plain(plotFont(0.88));
    const double height = bold.height() + plain.height() + 20 * u, gap = 8 * u;
    const int rows = std::clamp(int((area.height() + gap) / (height + gap)), 0, mostChipRows);
    const int columns = std::clamp(int((area.width() + gap) / (shape.narrowest * u + gap)), shape.fewestColumns, 6);
    const double width = (area.width() - gap * (columns - 1)) / columns;
    std::vector<QRectF> places;
    for (int i = 0; i < rows * columns && std::size_t(i) < wanted; ++i)
        places.emplace_back(area.left() + (i % columns) * (width + gap), area.top() + (i / columns) * (height + gap),
                            width, height);
    return places;
}

std::size_t cardCount(const TrainingMemoryState& state)
{
    if (state.view == TrainingMemoryView::Fit && state.memory.fit)
        return state.memory.fit->cards().size();
    return state.applied.size() + state.memory.levers.size();
}

QString headingOf(const TrainingMemoryState& state)
{
    if (state.view == TrainingMemoryView::Fit) {
        if (state.memory.fit && !state.memory.fit->combinations.empty())
            return tr("This makes it fit");
        return cardCount(state) > 0 ? tr("Only a change of the training makes it fit") : tr("Nothing makes it fit");
    }
    if (state.view == TrainingMemoryView::Searching)
        return tr("Looking for what makes it fit…");
    return tr("What would help most");
}

QString captionOf(const TrainingMemoryState& state)
{
    if (state.view == TrainingMemoryView::Fit && state.memory.fit) {
        const int tried = state.memory.fit->tried;
        QString text = state.memory.fit->combinations.empty()
            ? tr("none of %n combinations that train the same fits", tried)
            : tr("quickest first, of %n combinations simulated", tried);
        if (const auto& batch = state.memory.fit->largestBatch)
            text += tr(" · largest batch that fits as it is: %1").arg(*batch);
        if (const auto& devices = state.memory.fit->fewestDevices)
            text += tr(" · with ZeRO-3 alone: %1 devices").arg(*devices);
        return text;
    }
    if (state.view == TrainingMemoryView::Searching)
        return tr("every combination is a step simulated again");
    if (state.isFilling)
        return tr("more are being simulated…");
    return tr("each card shows its saving before you choose it");
}

QString messageOf(const TrainingMemoryState& state)
{
    if (state.view == TrainingMemoryView::Searching)
        return tr("Trying combinations of levers…");
    if (state.view == TrainingMemoryView::Fit && state.memory.fit && state.memory.fit->smallest)
        return tr("Nearest: %1, still %2 on the device. A smaller model, more devices or a larger "
                  "GPU would be needed.")
            .arg(state.memory.fit->smallest->label, memoryText(state.memory.fit->smallest->total, state.bytes));
    if (state.view == TrainingMemoryView::Fit)
        return tr("No combination of the levers fits. A smaller model, more devices or a larger "
                  "GPU would be needed.");
    return state.settled ? tr("No lever saves anything for these parameters.") : tr("calculating…");
}

std::vector<std::pair<MemoryItem, QString>> headingButtons(const TrainingMemoryState& state, int first,
                                                           std::size_t shown)
{
    std::vector<std::pair<MemoryItem, QString>> buttons;
    if (state.view == TrainingMemoryView::Levers && !state.memory.fits)
        buttons.emplace_back(MemoryItem::MakeItFit, tr("Make it fit"));
    if (state.view == TrainingMemoryView::Searching)
        buttons.emplace_back(MemoryItem::Cancel, tr("Cancel"));
    if (state.view == TrainingMemoryView::Fit)
        buttons.emplace_back(MemoryItem::Back, tr("Back"));
    const std::size_t count = cardCount(state);
    if (std::size_t(first) + shown < count)
        buttons.emplace_back(MemoryItem::Next, tr("%1 more ›").arg(count - std::size_t(first) - shown));
    if (first > 0)
        buttons.emplace_back(MemoryItem::Previous, tr("‹"));
    return buttons;
}

void placeCards(const TrainingMemoryState& state, TrainingMemoryLayout& layout, Column& column, const QRectF& area)
{
    const double u = plotUnit();
    const QFontMetricsF bold(plotFont(1.0, true)), small(plotFont(0.85));
    const QRectF row = column.take(bold.height() + 6 * u, 5 * u);
    const QRectF room(area.left(), column.y, area.width(), area.bottom() - column.y);
    const int count = int(cardCount(state));
    const bool cards = state.view != TrainingMemoryView::Searching && count > 0;
    const int first = cards ? std::clamp(state.firstCard, 0, std::max(0, count - 1)) : 0;
    const std::vector<QRectF> places = cards
        ? cardPlaces(room, state.view == TrainingMemoryView::Fit ? fitCard : changeCard, std::size_t(count - first))
        : std::vector<QRectF>{};
    const double right =
        placeHeadingButtons(layout, row, headingButtons(state, first, cards ? places.size() : std::size_t(count)));
    std::ranges::reverse(layout.buttons); // the keyboard goes from left to right
    for (std::size_t i = 0; i < places.size(); ++i) {
        const int index = first + int(i);
        const int applied = state.view == TrainingMemoryView::Fit ? 0 : int(state.applied.size());
        layout.buttons.push_back({index < applied ? MemoryItem::Applied : MemoryItem::Card,
                                  index < applied ? index : index - applied,
                                  places[i],
                                  {}});
    }
    layout.headingText = headingOf(state);
    const double heading = bold.horizontalAdvance(layout.headingText) + 4;
    layout.heading = QRectF(row.left(), row.top(), std::min(heading, right - row.left()), row.height());
    layout.caption =
        QRectF(layout.heading.right() + 14 * u, row.top(), right - layout.heading.right() - 22 * u, row.height());
    layout.captionText = small.elidedText(captionOf(state), Qt::ElideRight, std::max(0.0, layout.caption.width()));
    if (layout.caption.width() < 60 * u)
        layout.caption = QRectF();
    if (!cards || places.empty()) {
        layout.messageText = cards ? QString() : messageOf(state);
        layout.message = layout.messageText.isEmpty()
            ? QRectF()
            : QRectF(room.left(), room.top(), room.width(), std::min(room.height(), 3 * small.height()));
    }
}

/// A long name gives way in its middle, so that batch and tokens stay; where they have no room either, at the end.
QString titleIn(double width, const QString& title, const QFontMetricsF& metrics)
{
    const QString separator = QStringLiteral(" · ");
    const QString name = title.section(separator, 0, 0), rest = separator + title.section(separator, 1);
    const double room = width - metrics.horizontalAdvance(rest);
    if (metrics.horizontalAdvance(title) <= width || room < width / 3)
        return metrics.elidedText(title, Qt::ElideRight, width);
    return metrics.elidedText(name, Qt::ElideMiddle, room) + rest;
}

} // namespace

QString neededText(const MemoryState& state, ByteStyle bytes)
{
    const QString needed = tr("%1 needed").arg(memoryText(state.total(), bytes));
    if (!state.capacity)
        return needed;
    const double free = *state.capacity - state.total();
    if (state.fits && free < 0)
        return tr("%1: tight, fits once cached memory is given back").arg(needed);
    if (state.fits)
        return (state.isTight ? tr("%1: tight, %2 free, and predictions may be 3 % off") : tr("%1: fits, %2 free"))
            .arg(needed, memoryText(free, bytes));
    if (free >= 0 && state.loading > *state.capacity)
        return tr("%1 while it is loaded: %2 too many")
            .arg(memoryText(state.loading, bytes), memoryText(state.loading - *state.capacity, bytes));
    return free < 0 ? tr("%1: %2 too many").arg(needed, memoryText(-free, bytes)) : tr("%1: does not fit").arg(needed);
}

const LeverCard* cardOf(const TrainingMemoryState& state, const MemoryButton& button)
{
    const auto at = [&](const auto& list) { return std::size_t(button.index) < list.size(); };
    if (button.item == MemoryItem::Applied)
        return at(state.applied) ? &state.applied[std::size_t(button.index)].card : nullptr;
    if (button.item != MemoryItem::Card)
        return nullptr;
    if (state.view == TrainingMemoryView::Fit)
        return state.memory.fit && at(state.memory.fit->cards()) ? &state.memory.fit->cards()[std::size_t(button.index)]
                                                                 : nullptr;
    return at(state.memory.levers) ? &state.memory.levers[std::size_t(button.index)] : nullptr;
}

std::vector<QRectF> TrainingMemoryLayout::pieces() const
{
    std::vector<QRectF> rects{title, bar, capacity, needed, rankLine, heading, caption, message};
    for (const MemoryButton& button : buttons)
        rects.push_back(button.rect);
    std::erase_if(rects, [](const QRectF& rect) { return rect.isEmpty(); });
    return rects;
}

TrainingMemoryLayout layoutTrainingMemory(const TrainingMemoryState& state, const QRectF& rect)
{
    const double u = plotUnit();
    TrainingMemoryLayout layout;
    const QRectF area = rect.adjusted(14 * u, 8 * u, -14 * u, -6 * u);
    Column column{area, area.top()};
    const QFontMetricsF head(plotFont(1.1, true));
    layout.title = column.take(head.height(), 9 * u);
    const QString towards = QObject::tr("how large a batch? →");
    const bool leads = state.advises && !state.memory.empty();
    const QRectF link(layout.title.right() - QFontMetricsF(plotFont(0.88, true)).horizontalAdvance(towards) - 20 * u,
                      layout.title.top(), QFontMetricsF(plotFont(0.88, true)).horizontalAdvance(towards) + 20 * u,
                      layout.title.height());
    if (leads)
        layout.title.setRight(link.left() - 10 * u);
    layout.titleText = titleIn(layout.title.width(), state.title, head);
    layout.bar = column.take(std::clamp(area.height() * 0.17, 34 * u, 52 * u), 6 * u);
    placeParts(state, layout);
    placeTotals(state, layout, column);
    placeRanks(state, layout, column);
    const QFontMetricsF plain(plotFont(0.95));
    if (state.advises) {
        placeCards(state, layout, column, area);
    } else if (!state.reach.isEmpty()) {
        layout.message = column.take(plain.height(), 0);
        layout.messageText = plain.elidedText(state.reach, Qt::ElideRight, layout.message.width());
    }
    if (leads)
        layout.buttons.push_back({MemoryItem::BatchSize, 0, link, towards});
    return layout;
}

} // namespace memscape
