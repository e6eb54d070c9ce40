// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pictures/training-memory/step_chart.h"

#include "app/pictures/common/span.h"
#include "app/pictures/common/stairs.h"
#include "app/pictures/training-memory/memory_state.h"
#include "app/plots/plot_style.h"
#include "app/settings/words.h"

#include <QFontMetricsF>

#include <algorithm>
#include <cmath>
#include <map>

namespace memscape {

namespace {

constexpr double ownHeight = 1.2;   ///< pixels from which a block has a shape of its own
constexpr double groupHeight = 2.5; ///< of blocks that share one
constexpr double fewestEvents = 12; ///< in sight
constexpr double gripRoom = 1.5;    ///< heights of a block that stay in sight about it

QString tensors(int count)
{
    return count == 1 ? tr("1 tensor") : tr("%1 tensors").arg(count);
}

QString nameOf(Category category)
{
    const std::string_view name = categoryText(category);
    return QString::fromUtf8(name.data(), qsizetype(name.size()));
}

/// Shapes on each other, from the bottom.
class Stacking
{
public:
    Stacking(const StepBlocks& step, StepChart& chart, const QString& words)
        : m_step(step)
        , m_chart(chart)
        , m_words(words)
        , m_base(chart.events.size(), 0.0)
        , m_matched(chart.events.size(), 0.0)
        , m_scale(chart.area.height() / (chart.view.top - chart.view.bottom))
    { }

    void stack()
    {
        addResidents();
        for (std::size_t i = 0; i < m_step.rest.size(); ++i)
            addRest(int(i));
        for (std::size_t i = 0; i < m_step.blocks.size(); ++i)
            addBlock(int(i));
        for (auto& [key, group] : m_groups)
            close(group);
        m_chart.matchedBytes = m_matched.empty() ? 0 : *std::ranges::max_element(m_matched);
    }

private:
    struct Group
    {
        StepShape shape;
        std::vector<std::pair<int, int>> columns; ///< of each member
    };

    std::pair<int, int> columnsOf(const StepBlock& block) const
    {
        const auto& events = m_chart.events;
        const auto from = std::ranges::lower_bound(events, block.begin);
        const auto to = std::lower_bound(from, events.end(), block.end);
        return {int(from - events.begin()), int(to - events.begin())};
    }

    void addResidents()
    {
        std::map<std::pair<Category, bool>, StepShape> layers;
        for (std::size_t i = 0; i < m_step.residents.size(); ++i) {
            const StepBlock& block = m_step.residents[i];
            const bool isMatch = matches(block);
            StepShape& layer = layers[{block.category, isMatch}];
            layer.kind = StepShape::Kind::Residents;
            layer.category = block.category;
            layer.isMatch = isMatch;
            layer.bytes += block.bytes;
            layer.members.push_back(int(i));
        }
        for (auto& [key, layer] : layers)
            put(std::move(layer), 0, std::vector<double>(m_base.size(), layer.bytes));
    }

    void addRest(int index)
    {
        const StepRest& rest = m_step.rest[std::size_t(index)];
        StepShape layer;
        layer.kind = StepShape::Kind::Rest;
        layer.category = rest.category;
        layer.isMatch = m_words.isEmpty() || nameOf(rest.category).contains(m_words, Qt::CaseInsensitive);
        layer.members.push_back(index);
        std::vector<double> heights;
        for (const int event : m_chart.events)
            heights.push_back(rest.bytes[std::size_t(event - m_step.first)]);
        layer.bytes = heights.empty() ? 0 : *std::ranges::max_element(heights);
        put(std::move(layer), 0, heights);
    }

    void addBlock(int index)
    {
        const StepBlock& block = m_step.blocks[std::size_t(index)];
        const auto [from, to] = columnsOf(block);
        const bool isMatch = matches(block);
        if (from >= to)
            return; // between two columns
        if (block.bytes * m_scale >= ownHeight) {
            StepShape shape{StepShape::Kind::Block, block.category, isMatch, {index}, block.bytes, 0, {}, {}, {}, {}};
            return put(std::move(shape), from, std::vector<double>(std::size_t(to - from), block.bytes));
        }
        Group& group = m_groups[{block.category, isMatch}];
        group.shape.category = block.category;
        group.shape.isMatch = isMatch;
        group.shape.members.push_back(index);
        group.shape.bytes += block.bytes;
        group.columns.emplace_back(from, to);
        if (group.shape.bytes * m_scale >= groupHeight)
            close(group);
    }

    void close(Group& group)
    {
        if (group.columns.empty())
            return;
        int from = group.columns.front().first, to = 0;
        for (const auto& [first, last] : group.columns) {
            from = std::min(from, first);
            to = std::max(to, last);
        }
        std::vector<double> heights(std::size_t(to - from), 0.0);
        for (std::size_t i = 0; i < group.columns.size(); ++i) {
            const double bytes = m_step.blocks[std::size_t(group.shape.members[i])].bytes;
            for (int column = group.columns[i].first; column < group.columns[i].second; ++column)
                heights[std::size_t(column - from)] += bytes;
        }
        group.shape.kind = group.columns.size() == 1 ? StepShape::Kind::Block : StepShape::Kind::Group;
        put(std::move(group.shape), from, heights);
        group = {};
    }

    bool matches(const StepBlock& block)
    {
        const bool isMatch = m_step.matches(block, m_words);
        m_chart.matches += isMatch;
        return isMatch;
    }

    /// On what lies there; `heights` in B.
    void put(StepShape shape, int column, const std::vector<double>& heights)
    {
        shape.column = column;
        for (std::size_t i = 0; i < heights.size(); ++i) {
            const std::size_t at = std::size_t(column) + i;
            shape.low.push_back(m_chart.y(m_base[at]));
            m_base[at] += heights[i];
            shape.high.push_back(m_chart.y(m_base[at]));
            if (shape.isMatch)
                m_matched[at] += heights[i];
        }
        m_chart.shapes.push_back(std::move(shape));
    }

    const StepBlocks& m_step;
    StepChart& m_chart;
    const QString m_words;
    std::vector<double> m_base, m_matched;               ///< B of each column
    const double m_scale;                                ///< pixels a byte
    std::map<std::pair<Category, bool>, Group> m_groups; ///< not yet put
};

/// One event for each column of pixels: that with the most memory. Columns of the same event are one.
void placeColumns(const StepBlocks& step, StepChart& chart)
{
    const int columns = std::max(1, int(chart.area.width()));
    for (int column = 0; column < columns; ++column) {
        const double left = chart.area.left() + column * chart.area.width() / columns;
        const double right = chart.area.left() + (column + 1) * chart.area.width() / columns;
        const int from = std::clamp(int(std::floor(chart.eventAt(left))), step.first, step.last);
        const int to = std::clamp(int(std::ceil(chart.eventAt(right))), from + 1, step.last + 1);
        const auto begin = step.totals.begin() + (from - step.first);
        const int event = to - from == 1
            ? from
            : int(std::max_element(begin, step.totals.begin() + (to - step.first)) - step.totals.begin()) + step.first;
        if (!chart.events.empty() && event <= chart.events.back()) {
            chart.edges.back() = right;
            continue;
        }
        if (chart.edges.empty())
            chart.edges.push_back(left);
        chart.events.push_back(event);
        chart.edges.push_back(right);
    }
}

/// In the longest stretch that goes straight on.
void placeLabel(const StepBlocks& step, const StepChart& chart, StepShape& shape, ByteStyle style)
{
    const double u = plotUnit();
    const QFontMetricsF metrics(plotFont(0.75));
    if (shape.kind == StepShape::Kind::Group || shape.kind == StepShape::Kind::Rest)
        return;
    const QRectF best =
        longestStretch({chart.edges, std::size_t(shape.column), shape.low, shape.high}, chart.area, metrics.height());
    const double room = best.width() - 6 * u;
    const QString size = memoryText(shape.bytes, style);
    QStringList wordings;
    if (shape.kind == StepShape::Kind::Residents) {
        wordings << nameOf(shape.category) + u' ' + size;
    } else {
        const StepBlock& block = step.blocks[std::size_t(shape.members.front())];
        wordings << step.textOf(block) + u' ' + size << step.names[block.name] + u' ' + size << step.names[block.name];
    }
    for (const QString& words : wordings) {
        if (words.isEmpty() || metrics.horizontalAdvance(words) > room)
            continue;
        shape.text = words;
        shape.label = best.adjusted(3 * u, 0, -3 * u, 0);
        return;
    }
}

} // namespace

StepView zoomed(const StepView& view, const StepView& whole, const StepGrip& grip, double xFactor, double yFactor)
{
    const Span x = zoomed({view.left, view.right}, {whole.left, whole.right}, grip.event, xFactor, fewestEvents);
    const Span y = zoomed({view.bottom, view.top}, {whole.bottom, whole.top}, grip.bytes, yFactor, grip.least);
    return {x.low, x.high, y.low, y.high};
}

StepView panned(const StepView& view, const StepView& whole, double xShare, double yShare)
{
    const Span x = panned({view.left, view.right}, {whole.left, whole.right}, xShare);
    const Span y = panned({view.bottom, view.top}, {whole.bottom, whole.top}, yShare);
    return {x.low, x.high, y.low, y.high};
}

StepView withMemory(const StepView& view, const StepBlocks& step)
{
    if (step.empty())
        return view;
    const auto indexOf = [&](double event) { return std::clamp(int(event), step.first, step.last) - step.first; };
    const auto highest = std::max_element(step.totals.begin() + indexOf(view.left),
                                          step.totals.begin() + indexOf(std::ceil(view.right) - 1) + 1);
    const Span bytes = lowered({view.bottom, view.top}, *highest);
    return {view.left, view.right, bytes.low, bytes.high};
}

double StepChart::eventAt(double place) const
{
    return view.left + (place - area.left()) / area.width() * (view.right - view.left);
}

double StepChart::bytesAt(double place) const
{
    return view.bottom + (area.bottom() - place) / area.height() * (view.top - view.bottom);
}

double StepChart::x(double event) const
{
    return area.left() + (event - view.left) / (view.right - view.left) * area.width();
}

double StepChart::y(double bytes) const
{
    return area.bottom() - (bytes - view.bottom) / (view.top - view.bottom) * area.height();
}

QPolygonF StepChart::outline(const StepShape& shape) const
{
    return outlineOf({edges, std::size_t(shape.column), shape.low, shape.high});
}

const StepShape* StepChart::at(QPointF place) const
{
    if (!area.contains(place) || events.empty())
        return nullptr;
    const int column = columnAt(edges, place.x());
    const auto found = std::ranges::find_if(shapes, [&](const StepShape& shape) {
        return contains({edges, std::size_t(shape.column), shape.low, shape.high}, column, place.y());
    });
    return found == shapes.end() ? nullptr : &*found;
}

StepGrip StepChart::gripAt(QPointF place) const
{
    const int column = columnAt(edges, place.x());
    double top = area.bottom(); // of the stack there
    for (const StepShape& shape : shapes) {
        const int i = column - shape.column;
        if (column >= 0 && i >= 0 && i < int(shape.high.size()))
            top = std::min(top, shape.high[std::size_t(i)]);
    }
    const QPointF held(place.x(), std::clamp(place.y(), std::max(area.top(), top + 0.5), area.bottom()));
    StepGrip grip{eventAt(held.x()), bytesAt(held.y())};
    if (const StepShape* shape = at(held))
        grip.least = gripRoom * shape->bytes;
    return grip;
}

StepChart layoutChart(const StepBlocks& step, const StepView& view, const QRectF& area, const QString& words,
                      ByteStyle style)
{
    StepChart chart;
    chart.area = area;
    chart.view = view;
    if (step.empty() || area.width() < 4 || area.height() < 4)
        return chart;
    placeColumns(step, chart);
    Stacking(step, chart, words).stack();
    for (StepShape& shape : chart.shapes)
        placeLabel(step, chart, shape, style);
    return chart;
}

double flameRowHeight()
{
    return 15 * plotUnit();
}

std::vector<FlameBox> layoutFlame(const StepBlocks& step, const StepView& view, const QRectF& area,
                                  const QString& words)
{
    const double u = plotUnit(), height = flameRowHeight();
    const QFontMetricsF metrics(plotFont(0.75));
    const int rows = int((area.height() + 0.5) / height);
    const auto x = [&](double event) {
        return std::clamp(area.left() + (event - view.left) / (view.right - view.left) * area.width(), area.left(),
                          area.right());
    };
    std::vector<FlameBox> boxes;
    for (std::size_t i = 0; i < step.spans.size() && step.spans[i].row < rows; ++i) {
        const StepSpan& span = step.spans[i];
        const double left = x(span.begin), right = x(span.end);
        if (right - left < 1)
            continue;
        FlameBox box;
        box.rect = QRectF(left, area.top() + span.row * height, right - left, height - 1);
        box.span = int(i);
        box.isMatch = words.isEmpty() || span.path.contains(words, Qt::CaseInsensitive);
        for (const QString& text : {span.text, span.text.section(u'.', -1)}) {
            if (box.text.isEmpty() && metrics.horizontalAdvance(text) + 4 * u <= box.rect.width())
                box.text = text;
        }
        boxes.push_back(std::move(box));
    }
    return boxes;
}

QString shapeText(const StepBlocks& step, const StepShape& shape, ByteStyle style)
{
    const QString size = memoryText(shape.bytes, style);
    const int count = int(shape.members.size());
    switch (shape.kind) {
    case StepShape::Kind::Rest: {
        const StepRest& rest = step.rest[std::size_t(shape.members.front())];
        return tr("%1 more of %2, too small to be drawn one by one: %3 at most")
            .arg(tensors(rest.count), nameOf(rest.category), size);
    }
    case StepShape::Kind::Residents:
        return tr("%1: %2 in %3, alive the whole step").arg(nameOf(shape.category), size, tensors(count));
    case StepShape::Kind::Group:
        return tr("%1 from %2 on: %3 of %4; zoom in to tell them apart")
            .arg(tensors(count), step.textOf(step.blocks[std::size_t(shape.members.front())]), size,
                 nameOf(shape.category));
    case StepShape::Kind::Block: break;
    }
    const StepBlock& block = step.blocks[std::size_t(shape.members.front())];
    const double share = double(block.end - block.begin) / (step.last + 1 - step.first);
    const auto phase = [](Phase of) {
        const std::string_view name = phaseText(of);
        return QString::fromUtf8(name.data(), qsizetype(name.size()));
    };
    const QString life = block.isFreed ? tr("made in %1, freed in %2").arg(phase(block.madeIn), phase(block.freedIn))
                                       : tr("made in %1, kept").arg(phase(block.madeIn));
    return tr("%1: %2 of %3, alive for %4 of %5 events (%6), %7")
        .arg(step.textOf(block), size, nameOf(block.category))
        .arg(block.end - block.begin)
        .arg(step.last + 1 - step.first)
        .arg(QString::fromStdString(percentText(share)), life);
}

} // namespace memscape
