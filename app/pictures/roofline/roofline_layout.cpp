// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pictures/roofline/roofline_layout.h"

#include "app/plots/plot_style.h"
#include "core/base/number.h"

#include <QCoreApplication>
#include <QFontMetricsF>
#include <QTransform>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

namespace memscape {

namespace {

QString quantity(double value, Unit unit)
{
    return QString::fromStdString(quantityText(value, unit));
}

/// "1/64", "4", "16384": powers of two.
QString powerText(double power)
{
    const QString size = QString::number(std::exp2(std::fabs(power)), 'f', 0);
    return power < 0 ? QStringLiteral("1/") + size : size;
}

/// The roofs: words keep off them where they can.
std::vector<QLineF> rooflineLines(const RooflineState& state, const RooflineScales& scales)
{
    double flat = 0;
    for (const RooflineRoof& format : state.formats)
        flat = std::max(flat, format.value);
    std::vector<QLineF> lines;
    const double first = std::exp2(scales.left), nearest = state.levels.front().value;
    for (const RooflineRoof& level : state.levels) {
        if (level.value > 0)
            lines.emplace_back(scales.at(first, first * level.value), scales.at(flat / level.value, flat));
    }
    for (const RooflineRoof& format : state.formats) {
        if (format.value > 0 && nearest > 0)
            lines.emplace_back(scales.at(format.value / nearest, format.value),
                               QPointF(scales.area.right(), scales.y(format.value)));
    }
    return lines;
}

/// The words as they are placed, one after the other.
class Placing
{
public:
    enum class Lines { Clear, Crossed };

    Placing(const RooflineState& state, const RooflineScales& scales)
        : m_scales(scales)
        , m_metrics(plotFont(0.75))
        , m_lines(rooflineLines(state, scales))
    {
        const double r = 6 * plotUnit();
        for (const RooflineMark& mark : state.marks) {
            const QPointF at = scales.at(mark.intensity, mark.rate);
            m_marks.emplace_back(QPolygonF(QRectF(at.x() - r, at.y() - r, 2 * r, 2 * r)));
        }
    }

    double width(const QString& text) const { return m_metrics.horizontalAdvance(text); }
    double height() const { return m_metrics.height(); }

    /// The text with its bottom left at `corner`, turned around it; nothing where that is not free.
    std::optional<RooflineText> at(const QString& text, QPointF corner, double angle = 0,
                                   Lines lines = Lines::Clear) const
    {
        RooflineText placed = unchecked(text, corner, angle);
        const QRectF bounds = placed.box.boundingRect();
        if (!m_scales.area.adjusted(0, -height(), 0, 0).contains(bounds))
            return std::nullopt;
        const auto meets = [&](const QPolygonF& other) {
            return other.boundingRect().adjusted(-1, -1, 1, 1).intersects(bounds) && other.intersects(placed.box);
        };
        if (std::ranges::any_of(m_marks, meets)
            || std::ranges::any_of(m_texts, [&](const RooflineText& other) { return meets(other.box); }))
            return std::nullopt;
        if (lines == Lines::Clear
            && std::ranges::any_of(m_lines, [&](const QLineF& line) { return crosses(line, placed.box); }))
            return std::nullopt;
        return placed;
    }

    RooflineText unchecked(const QString& text, QPointF corner, double angle = 0) const
    {
        QTransform turn;
        turn.translate(corner.x(), corner.y());
        turn.rotate(angle);
        RooflineText placed;
        placed.text = text;
        placed.corner = corner;
        placed.angle = angle;
        const double gap = 3 * plotUnit(); // between words side by side
        placed.box = turn.map(QPolygonF(QRectF(-gap, -height(), width(text) + 2 * gap, height())));
        return placed;
    }

    void take(RooflineText text, RooflineTextKind kind, std::size_t index)
    {
        text.kind = kind;
        text.index = index;
        m_texts.push_back(std::move(text));
    }

    /// What must be there takes the place of the words that it meets.
    void force(RooflineText text, RooflineTextKind kind, std::size_t index)
    {
        std::erase_if(m_texts, [&](const RooflineText& other) { return other.box.intersects(text.box); });
        take(std::move(text), kind, index);
    }

    std::vector<RooflineText> texts() && { return std::move(m_texts); }

private:
    static bool crosses(const QLineF& line, const QPolygonF& box)
    {
        bool meets = box.containsPoint(line.p1(), Qt::OddEvenFill);
        for (qsizetype i = 0; i + 1 < box.size(); ++i)
            meets |= line.intersects(QLineF(box[i], box[i + 1])) == QLineF::BoundedIntersection;
        return meets;
    }

    const RooflineScales& m_scales;
    QFontMetricsF m_metrics;
    std::vector<QLineF> m_lines;
    std::vector<QPolygonF> m_marks;
    std::vector<RooflineText> m_texts;
};

/// "FP16, BF16": a format with those of the same rate that come after it; empty for those.
QString namesOf(const RooflineState& state, std::size_t index)
{
    QStringList names;
    bool isFirst = true;
    const RooflineRoof& format = state.formats[index];
    for (std::size_t i = 0; i < state.formats.size(); ++i) {
        const RooflineRoof& other = state.formats[i];
        if (other.value != format.value)
            continue;
        isFirst &= other.isChosen ? i == index : format.isChosen || i >= index;
        names << other.label;
    }
    return isFirst ? names.join(QStringLiteral(", ")) : QString();
}

/// Names of kernels at one place as one: "FP16, BF16 product 8192³", "triad in L2, L2 far".
QString joinedNames(const QStringList& names)
{
    std::vector<QStringList> words;
    for (const QString& name : names)
        words.push_back(name.split(u' '));
    qsizetype least = words.front().size();
    for (const QStringList& one : words)
        least = std::min(least, one.size());
    const auto isShared = [&](qsizetype at, bool fromEnd) {
        return std::ranges::all_of(words, [&](const QStringList& one) {
            const QStringList& first = words.front();
            return fromEnd ? one[one.size() - 1 - at] == first[first.size() - 1 - at] : one[at] == first[at];
        });
    };
    qsizetype before = 0, behind = 0; // words that all have; each keeps one of its own
    while (before + 1 < least && isShared(before, false))
        ++before;
    while (before + behind + 1 < least && isShared(behind, true))
        ++behind;
    QStringList own;
    for (const QStringList& one : words)
        own << one.mid(before, one.size() - before - behind).join(u' ');
    QStringList parts = words.front().mid(0, before);
    parts << own.join(QStringLiteral(", "));
    parts += words.front().mid(words.front().size() - behind);
    return parts.join(u' ');
}

/// On its roof, as far right as there is room; below it when above there is none.
void placeFormat(const RooflineState& state, const RooflineScales& scales, std::size_t index, Placing& placing)
{
    const double u = plotUnit();
    const RooflineRoof& format = state.formats[index];
    const double dram = state.levels.back().value;
    const QString names = namesOf(state, index);
    if (format.value <= 0 || dram <= 0 || names.isEmpty())
        return;
    const QString text =
        QCoreApplication::translate("RooflinePicture", "%1 %2, ridge %3")
            .arg(names, quantity(format.value, Unit::FlopPerSecond), quantity(format.value / dram, Unit::One));
    const double y = scales.y(format.value), last = scales.area.right() - placing.width(text) - 4 * u;
    for (const Placing::Lines lines : {Placing::Lines::Clear, Placing::Lines::Crossed}) {
        for (double x = last; x > scales.area.left(); x -= 8 * u) {
            for (const double bottom : {y - 2 * u, y + 2 * u + placing.height()}) {
                if (auto placed = placing.at(text, {x, bottom}, 0, lines))
                    return placing.take(*placed, RooflineTextKind::Format, index);
            }
        }
    }
    if (format.isChosen)
        placing.force(placing.unchecked(text, {std::max(last, scales.area.left()), y - 2 * u}),
                      RooflineTextKind::Format, index);
}

/// Along its slope, above or below it, low enough that the flat roofs leave it room.
void placeLevel(const RooflineState& state, const RooflineScales& scales, std::size_t index, Placing& placing)
{
    const double u = plotUnit();
    const RooflineRoof& level = state.levels[index];
    if (level.value <= 0)
        return;
    double flat = 0;
    for (const RooflineRoof& format : state.formats)
        flat = std::max(flat, format.value);
    const QString text = level.label + u' ' + quantity(level.value, Unit::BytePerSecond);
    const QPointF to = scales.at(flat / level.value, flat);
    const double least = std::max(std::exp2(scales.left), std::exp2(scales.bottom) / level.value);
    const QPointF from = scales.at(least, least * level.value);
    const QPointF way = to - from;
    const double length = std::hypot(way.x(), way.y());
    const QPointF along = way / length, above(along.y() * 3 * u, -along.x() * 3 * u);
    const QPointF below = -above * (placing.height() / (3 * u) + 1);
    const double angle = std::atan2(way.y(), way.x()) * 180 / M_PI;
    for (const Placing::Lines lines : {Placing::Lines::Clear, Placing::Lines::Crossed}) {
        for (double done = 6 * u; done + placing.width(text) < length; done += 6 * u) {
            for (const QPointF& beside : {above, below}) {
                if (auto placed = placing.at(text, from + done * along + beside, angle, lines))
                    return placing.take(*placed, RooflineTextKind::Level, index);
            }
        }
    }
}

/// Where kernels stand so close together that one name is theirs.
struct NamedPlace
{
    std::size_t mark = 0; ///< the first of them
    QStringList names, ids;
};

/// A kernel that is both predicted and measured has its name once.
std::vector<NamedPlace> namedPlaces(const RooflineState& state, const RooflineScales& scales)
{
    const double near = 4 * plotUnit();
    const auto at = [&](std::size_t i) { return scales.at(state.marks[i].intensity, state.marks[i].rate); };
    std::vector<NamedPlace> places;
    QStringList known;
    for (std::size_t i = 0; i < state.marks.size(); ++i) {
        const RooflineMark& mark = state.marks[i];
        if (known.contains(mark.id))
            continue;
        known << mark.id;
        const auto shared = std::ranges::find_if(
            places, [&](const NamedPlace& place) { return QLineF(at(place.mark), at(i)).length() < near; });
        NamedPlace& place = shared == places.end() ? places.emplace_back(NamedPlace{i, {}, {}}) : *shared;
        place.names << mark.label;
        place.ids << mark.id;
    }
    return places;
}

/// Beside, above or below its mark.
void placeMark(const RooflineState& state, const RooflineScales& scales, std::size_t index, const QString& name,
               bool isLit, Placing& placing)
{
    const double u = plotUnit(), height = placing.height();
    const RooflineMark& mark = state.marks[index];
    const QPointF at = scales.at(mark.intensity, mark.rate);
    const double width = placing.width(name), gap = 9.5 * u;
    const QPointF right(at.x() + gap, at.y() + height / 2), left(at.x() - gap - width, right.y());
    std::vector<QPointF> corners{right, left};
    for (const double below : {0.0, 1.0, 0.25, 0.75}) { // of its height, beside the mark
        corners.emplace_back(right.x(), at.y() + below * height);
        corners.emplace_back(left.x(), at.y() + below * height);
    }
    for (const double share : {0.5, 0.2, 0.8}) { // of its width, under and over it
        corners.emplace_back(at.x() - share * width, at.y() + gap + height);
        corners.emplace_back(at.x() - share * width, at.y() - gap);
    }
    for (const Placing::Lines lines : {Placing::Lines::Clear, Placing::Lines::Crossed}) {
        for (const QPointF corner : corners) {
            if (auto placed = placing.at(name, corner, 0, lines))
                return placing.take(*placed, RooflineTextKind::Mark, index);
        }
    }
    if (isLit) {
        const bool fits = right.x() + width < scales.area.right();
        placing.force(placing.unchecked(name, fits ? right : left), RooflineTextKind::Mark, index);
    }
}

} // namespace

double RooflineScales::x(double intensity) const
{
    return area.left() + (std::log2(intensity) - left) / (right - left) * area.width();
}
double RooflineScales::y(double rate) const
{
    return area.bottom() - (std::log2(rate) - bottom) / (top - bottom) * area.height();
}
double RooflineScales::intensityAt(double at) const
{
    return std::exp2(left + (at - area.left()) / area.width() * (right - left));
}

RooflineScales rooflineScales(const RooflineState& state, const QRectF& rect)
{
    const double u = plotUnit();
    RooflineScales scales;
    scales.area = rect.adjusted(74 * u, 30 * u, -16 * u, -34 * u);
    double low = 1e300, high = 0;
    for (const RooflineRoof& format : state.formats)
        high = std::max(high, format.value);
    for (const RooflineMark& mark : state.marks)
        low = std::min(low, mark.rate);
    for (const RooflineRoof& level : state.levels)
        low = std::min(low, level.value * 0x1p-5);
    if (high <= 0 || low > high)
        return scales;
    scales.top = std::ceil(std::log2(high)) + 1;
    scales.bottom = std::floor(std::log2(low)) - 1;
    for (const RooflineMark& mark : state.marks)
        scales.left = std::min(scales.left, std::floor(std::log2(mark.intensity)) - 1);
    return scales;
}

std::vector<RooflineTick> rooflineTicks(const RooflineScales& scales)
{
    const double u = plotUnit();
    const QFontMetricsF metrics(plotFont(0.75));
    const double widest = std::max(metrics.horizontalAdvance(powerText(std::floor(scales.left))),
                                   metrics.horizontalAdvance(powerText(std::floor(scales.right))));
    const double octave = scales.area.width() / (scales.right - scales.left);
    const double step = octave > 0 ? 2 * std::max(1.0, std::ceil((widest + 8 * u) / octave / 2)) : 0;
    std::vector<RooflineTick> ticks;
    for (double power = std::ceil(scales.left / step) * step; step > 0 && power <= scales.right; power += step) {
        const QString text = powerText(power);
        const double width = metrics.horizontalAdvance(text) + 2;
        const double middle = std::min(scales.x(std::exp2(power)), scales.area.right() + 14 * u - width / 2);
        ticks.push_back({power, QRectF(middle - width / 2, scales.area.bottom() + 2 * u, width, 13 * u), text});
    }
    return ticks;
}

std::vector<RooflineText> rooflineTexts(const RooflineState& state, const RooflineScales& scales, const QString& lit)
{
    if (state.empty())
        return {};
    Placing placing(state, scales);
    const auto formats = [&](bool chosen) {
        std::vector<std::size_t> order(state.formats.size());
        std::iota(order.begin(), order.end(), 0);
        std::ranges::stable_sort(
            order, [&](std::size_t a, std::size_t b) { return state.formats[a].value > state.formats[b].value; });
        for (const std::size_t index : order) {
            if (state.formats[index].isChosen == chosen)
                placeFormat(state, scales, index, placing);
        }
    };
    formats(true);
    for (std::size_t i = state.levels.size(); i-- > 0;) // DRAM first
        placeLevel(state, scales, i, placing);
    formats(false);
    const std::vector<NamedPlace> places = namedPlaces(state, scales);
    for (const bool isLit : {true, false}) {
        for (const NamedPlace& place : places) {
            const QString name = joinedNames(place.names);
            if (place.ids.contains(lit) != isLit)
                continue;
            const auto shown = std::ranges::find(state.marks, lit, &RooflineMark::id);
            const std::size_t index = isLit ? std::size_t(shown - state.marks.begin()) : place.mark;
            placeMark(state, scales, index, name, isLit, placing);
        }
    }
    return std::move(placing).texts();
}

} // namespace memscape
