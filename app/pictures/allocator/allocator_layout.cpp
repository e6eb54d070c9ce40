// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pictures/allocator/allocator_layout.h"

#include "app/settings/words.h"

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

constexpr int mostOwnRows = 8; ///< more segments than that flow
constexpr double leastWindow = 1e-4;
constexpr double leastCard = 108;   ///< units: what holds a name and the bytes
constexpr double leastPiece = 0.35; ///< px; what is narrower shows in its neighbours alone

/// Segments one behind the other.
struct Tape
{
    std::vector<double> begins; ///< B
    double bytes = 0, largest = 0;
};

Tape tapeOf(const AllocatorMoment& moment)
{
    Tape tape;
    for (const PolicySegment& segment : moment.segments) {
        tape.begins.push_back(tape.bytes);
        tape.bytes += double(segment.size);
        tape.largest = std::max(tape.largest, double(segment.size));
    }
    return tape;
}

/// Parts of [begin, end) of what is shown from `first` on, row by row: row, left and right in pixels from the row's
/// left.
template <typename Add>
void overRows(double begin, double end, double first, double perRow, std::size_t rows, Add&& add)
{
    begin = std::max(begin, first);
    end = std::min(end, first + perRow * double(rows));
    if (!(begin < end))
        return;
    for (auto row = std::min(rows - 1, std::size_t((begin - first) / perRow)); row < rows; ++row) {
        const double rowBegin = first + double(row) * perRow, rowEnd = row + 1 == rows ? end : rowBegin + perRow;
        const double from = std::max(begin, rowBegin), to = std::min(end, rowEnd);
        if (to > from)
            add(row, (from - rowBegin) / perRow, (to - rowBegin) / perRow);
    }
}

class Placer
{
public:
    Placer(AllocatorLayout& layout, const AllocatorState& state, const AllocatorMoment& moment, TapeWindow window)
        : m_layout(layout)
        , m_state(state)
        , m_moment(moment)
        , m_tape(tapeOf(moment))
        , m_window(window)
    { }
    void place();

private:
    void flow();
    void ownRows();
    void piece(std::size_t segment, std::size_t block, std::size_t row, double from, double to)
    {
        const QRectF& line = m_layout.rows[row];
        const QRectF rect(line.left() + from * line.width(), line.top(), (to - from) * line.width(), line.height());
        if (rect.width() >= leastPiece)
            m_layout.pieces.push_back({segment, block, rect});
    }

    AllocatorLayout& m_layout;
    const AllocatorState& m_state;
    const AllocatorMoment& m_moment;
    Tape m_tape;
    TapeWindow m_window;
};

void Placer::flow()
{
    const std::size_t rows = m_layout.rows.size();
    const double first = m_window.begin * m_tape.bytes;
    const double perRow = m_window.length * m_tape.bytes / double(rows);
    for (std::size_t s = 0; s < m_moment.segments.size(); ++s) {
        const PolicySegment& segment = m_moment.segments[s];
        const double begin = m_tape.begins[s], end = begin + double(segment.size);
        if (end <= first || begin >= first + perRow * double(rows))
            continue;
        overRows(begin, end, first, perRow, rows, [&](std::size_t row, double from, double to) {
            const QRectF& line = m_layout.rows[row];
            const double rowBegin = first + double(row) * perRow;
            m_layout.frames.push_back(
                {s, QRectF(line.left() + from * line.width(), line.top(), (to - from) * line.width(), line.height()),
                 begin >= rowBegin - 0.5 + from, end <= rowBegin + perRow + 0.5});
        });
        for (std::size_t b = 0; b < segment.blocks.size(); ++b) {
            const double at = begin + double(segment.blocks[b].address - segment.address);
            overRows(at, at + double(segment.blocks[b].size), first, perRow, rows,
                     [&](std::size_t row, double from, double to) { piece(s, b, row, from, to); });
        }
    }
    for (std::size_t row = 0; row < rows; ++row)
        m_layout.labelTexts.push_back(row == 0 && m_window.begin <= 0 ? tr("0")
                                                                      : m_state.bytes(first + double(row) * perRow));
}

void Placer::ownRows()
{
    const double first = m_window.begin * m_tape.largest, shown = m_window.length * m_tape.largest;
    for (std::size_t s = 0; s < m_moment.segments.size(); ++s) {
        const PolicySegment& segment = m_moment.segments[s];
        m_layout.labelTexts.push_back(m_state.bytes(double(segment.size)));
        const auto put = [&](double begin, double end, auto&& add) {
            const double from = std::clamp((begin - first) / shown, 0.0, 1.0),
                         to = std::clamp((end - first) / shown, 0.0, 1.0);
            if (to > from)
                add(from, to);
        };
        const QRectF& line = m_layout.rows[s];
        put(0, double(segment.size), [&](double from, double to) {
            m_layout.frames.push_back(
                {s, QRectF(line.left() + from * line.width(), line.top(), (to - from) * line.width(), line.height()),
                 first <= 0, double(segment.size) <= first + shown});
        });
        for (std::size_t b = 0; b < segment.blocks.size(); ++b) {
            const auto at = double(segment.blocks[b].address - segment.address);
            put(at, at + double(segment.blocks[b].size), [&](double from, double to) { piece(s, b, s, from, to); });
        }
    }
}

void Placer::place()
{
    m_layout.isFlow = m_moment.segments.size() > mostOwnRows;
    m_layout.bytesOnTape = m_layout.isFlow ? m_tape.bytes : m_tape.largest;
    const double u = m_layout.unit, labelWidth = 66 * u;
    const QRectF& tape = m_layout.tape;
    const double most = std::max(1.0, std::floor(tape.height() / (20 * u)));
    const std::size_t rows = m_layout.isFlow ? std::size_t(std::clamp(most, 3.0, 16.0)) : m_moment.segments.size();
    if (rows == 0 || m_layout.bytesOnTape <= 0)
        return;
    const double high = std::min(tape.height() / double(rows), 34 * u), gap = std::min(6 * u, high * 0.22);
    for (std::size_t row = 0; row < rows; ++row) {
        const double top = tape.top() + double(row) * high;
        m_layout.labels.emplace_back(tape.left(), top, labelWidth - 8 * u, high - gap);
        m_layout.rows.emplace_back(tape.left() + labelWidth, top, tape.width() - labelWidth, high - gap);
    }
    m_layout.isFlow ? flow() : ownRows();
}

void placeElsewhere(AllocatorLayout& layout, const AllocatorState& state, const QRectF& inside)
{
    if (state.cards.empty())
        return;
    const double u = layout.unit, gap = 6 * u;
    const int count = int(state.cards.size());
    const double high = 36 * u;
    const int wanted = std::clamp(int(inside.width() / (158 * u)), 2, 6); // columns
    const int room = std::max(2, int(inside.height() * 0.4 / (high + gap)));
    const int rows = std::min(room, (count + wanted - 1) / wanted), needed = (count + rows - 1) / rows;
    const int fitting = std::max(2, int((inside.width() + gap) / (leastCard * u + gap)));
    const int columns = std::min(needed, fitting);
    const double width = (inside.width() - gap * (columns - 1)) / columns;
    const double top = inside.bottom() - rows * high - (rows - 1) * gap;
    layout.cardsTitle = {inside.left(), top - 20 * u, inside.width(), 18 * u};
    layout.cards.resize(std::size_t(count));
    const auto chosen = std::ranges::find_if(state.cards, &ElsewhereCard::isChosen) - state.cards.begin();
    for (int i = 0, place = 0; i < count && place < rows * columns; ++i) {
        const bool isLast = place + 1 == rows * columns;
        if (isLast && chosen < count && chosen > i)
            i = int(chosen); // where not all have room the chosen one has
        layout.cards[std::size_t(i)] = {inside.left() + (place % columns) * (width + gap),
                                        top + (place / columns) * (high + gap), width, high};
        ++place;
    }
}

} // namespace

int AllocatorLayout::pieceAt(QPointF at) const
{
    for (std::size_t i = 0; i < pieces.size(); ++i)
        if (pieces[i].rect.contains(at))
            return int(i);
    return -1;
}

int AllocatorLayout::cardAt(QPointF at) const
{
    for (std::size_t i = 0; i < cards.size(); ++i)
        if (cards[i].contains(at))
            return int(i);
    return -1;
}

double AllocatorLayout::tapeAt(QPointF at, const TapeWindow& window) const
{
    if (rows.empty())
        return 0;
    const QRectF& first = rows.front();
    const double along = std::clamp((at.x() - first.left()) / first.width(), 0.0, 1.0);
    if (!isFlow)
        return window.begin + along * window.length;
    const double high = rows.size() > 1 ? rows[1].top() - first.top() : first.height();
    const double row = std::clamp(std::floor((at.y() - first.top()) / high), 0.0, double(rows.size() - 1));
    return window.begin + (row + along) / double(rows.size()) * window.length;
}

int AllocatorLayout::requestAt(double x, int count) const
{
    if (count == 0 || scrub.width() <= 0)
        return -1;
    return std::clamp(int((x - scrub.left()) / scrub.width() * count), 0, count - 1);
}

AllocatorLayout layoutAllocator(const AllocatorState& state, const AllocatorMoment* moment, TapeWindow window,
                                const QRectF& rect, double unit)
{
    AllocatorLayout layout;
    layout.unit = unit;
    const double u = unit;
    const QRectF inside = rect.adjusted(12 * u, 6 * u, -12 * u, -8 * u);
    layout.button = {inside.right() - 22 * u, inside.top(), 22 * u, 20 * u};
    layout.title = {inside.left(), inside.top(), inside.width() - 30 * u, 20 * u};
    layout.scrub = {inside.left() + 66 * u, layout.title.bottom() + 3 * u, inside.width() - 66 * u, 10 * u};
    layout.caption = {inside.left(), layout.scrub.bottom() + 3 * u, inside.width(), 16 * u};
    placeElsewhere(layout, state, inside);
    const double bottom = layout.cards.empty() ? inside.bottom() : layout.cardsTitle.top() - 4 * u;
    const double wordsHigh = 34 * u;
    layout.words = {inside.left(), bottom - wordsHigh, inside.width(), wordsHigh};
    layout.tape = {inside.left(), layout.caption.bottom() + 2 * u, inside.width(),
                   std::max(20 * u, layout.words.top() - 4 * u - layout.caption.bottom())};
    if (moment)
        Placer(layout, state, *moment, window).place();
    return layout;
}

TapeWindow zoomed(TapeWindow window, double factor, double share)
{
    const double length = std::clamp(window.length * factor, leastWindow, 1.0);
    const double within = window.length > 0 ? (share - window.begin) / window.length : 0;
    return {std::clamp(share - within * length, 0.0, 1 - length), length};
}

} // namespace memscape
