// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pictures/moment_layout.h"

#include "app/pictures/treemap_layout.h"
#include "app/plots/plot_style.h"

#include <QCoreApplication>
#include <QFontMetricsF>

#include <algorithm>

namespace memscape {

namespace {

constexpr double listShare = 0.42; ///< of the width
constexpr int deepest = 3; ///< levels inside each other
constexpr std::size_t mostCells = 400; ///< per level: what is smaller is not seen

QString tr(const char* text, int n = -1)
{
    return QCoreApplication::translate("Memory", text, nullptr, n);
}

QString headingOf(const MomentState& state)
{
    return state.isPeak ? tr("Alive at the peak") : tr("Alive at this moment");
}

/// "event 3797 · backward · model.layers.31.self_attn · softmax"
QString placeOf(const MomentState& state)
{
    if (state.moment.event < 0)
        return {};
    QString place = tr("event %1").arg(state.moment.event) + QStringLiteral(" · ")
        + placeText(state.moment.phase, state.moment.module, state.moment.name);
    if (state.moment.microBatch > 0)
        place += tr(" · micro-batch %1").arg(state.moment.microBatch + 1);
    return place;
}

QString rowName(const LiveTensor& tensor)
{
    QString name = placeText({}, tensor.module, tensor.name);
    if (name.isEmpty())
        name = tensor.category;
    return tensor.count > 1 ? name + QStringLiteral(" ×%1").arg(tensor.count) : name;
}

void placeRows(const MomentState& state, MomentLayout& layout)
{
    const double u = plotUnit();
    const QFontMetricsF plain(plotFont(0.88)), bold(plotFont(0.88, true));
    const double height = plain.height() + 6 * u;
    const int live = int(state.moment.live.size());
    layout.rowsInAll = live + (state.moment.restCount > 0 ? 1 : 0);
    const int fitting = std::max(0, int(layout.list.height() / height));
    const int first = std::clamp(state.firstRow, 0, std::max(0, layout.rowsInAll - fitting));
    double y = layout.list.top();
    for (int i = first; i < layout.rowsInAll && i < first + fitting; ++i, y += height) {
        LiveRow row;
        row.live = i;
        row.rect = QRectF(layout.list.left(), y, layout.list.width(), height);
        const bool rest = i >= live;
        row.sizeText = memoryText(
            rest ? state.moment.restBytes : state.moment.live[std::size_t(i)].bytes, state.bytes);
        row.nameText = rest ? tr("%n more", state.moment.restCount)
                            : rowName(state.moment.live[std::size_t(i)]);
        const double size = bold.horizontalAdvance(row.sizeText) + 2;
        row.swatch = QRectF(row.rect.left() + 2 * u, y + height / 2 - 5 * u, 10 * u, 10 * u);
        row.size = QRectF(row.rect.right() - size - 2 * u, y, size, height);
        row.name = QRectF(row.swatch.right() + 8 * u, y,
                          row.size.left() - row.swatch.right() - 14 * u, height);
        row.nameText =
            plain.elidedText(row.nameText, Qt::ElideMiddle, std::max(0.0, row.name.width()));
        layout.rows.push_back(row);
    }
}

void placeCrumbs(const MomentState& state, MomentLayout& layout, QRectF row)
{
    const double u = plotUnit();
    const QFontMetricsF metrics(plotFont(0.88, true));
    QStringList path;
    std::vector<std::pair<QString, QStringList>> crumbs{{tr("whole model"), {}}};
    for (const QString& name : state.path) {
        path << name;
        crumbs.emplace_back(name, path);
    }
    const auto width = [&](const QString& text) {
        return metrics.horizontalAdvance(text) + 10 * u;
    };
    const auto all = [&] {
        double sum = 0;
        for (const auto& crumb : crumbs)
            sum += width(crumb.first) + 10 * u;
        return sum;
    };
    while (crumbs.size() > 2 && all() > row.width())
        crumbs.erase(crumbs.begin() + 1); // the middle gives way
    double x = row.left();
    for (auto& [text, to] : crumbs) {
        const double room = std::min(width(text), row.right() - x);
        if (room < 20 * u)
            break;
        layout.crumbs.push_back({QRectF(x, row.top(), room, row.height()), text, to});
        x += room + 10 * u;
    }
}

TreeCell cellOf(const MomentState& state, const MemoryNode& node, const QRectF& rect,
                const QStringList& path, int depth)
{
    const double u = plotUnit();
    const QFontMetricsF metrics(plotFont(0.8, true));
    TreeCell cell;
    cell.rect = rect;
    cell.bytes = node.bytes;
    cell.leaf = node.children.empty();
    cell.path = path;
    cell.depth = depth;
    cell.category = node.category;
    const QString full = node.name + u' ' + memoryText(node.bytes, state.bytes);
    const QRectF label(rect.left() + 4 * u, rect.top() + 2 * u, rect.width() - 8 * u,
                       metrics.height());
    if (rect.height() < metrics.height() + 4 * u)
        return cell;
    if (metrics.horizontalAdvance(full) <= label.width())
        cell.text = full;
    else if (metrics.horizontalAdvance(node.name) <= label.width())
        cell.text = node.name;
    if (!cell.text.isEmpty())
        cell.label = label;
    return cell;
}

void placeCells(const MomentState& state, MomentLayout& layout, const MemoryNode& parent,
                const QRectF& rect, const QStringList& path, int depth)
{
    const double u = plotUnit();
    const std::size_t count = std::min(parent.children.size(), mostCells);
    std::vector<double> bytes;
    for (std::size_t i = 0; i < count; ++i)
        bytes.push_back(parent.children[i].bytes);
    const std::vector<QRectF> rects = squarify(bytes, rect);
    for (std::size_t i = 0; i < count; ++i) {
        const MemoryNode& child = parent.children[i];
        const QRectF inner = rects[i].adjusted(0.5, 0.5, -0.5, -0.5);
        if (inner.width() < 1 || inner.height() < 1)
            continue;
        const QStringList to = path + QStringList{child.name};
        layout.cells.push_back(cellOf(state, child, inner, to, depth));
        const double head =
            layout.cells.back().label.isEmpty() ? 0 : layout.cells.back().label.height() + 3 * u;
        const QRectF room = inner.adjusted(3 * u, head + 2 * u, -3 * u, -3 * u);
        if (depth < deepest && head > 0 && !child.children.empty() && room.height() > 24 * u
            && room.width() > 40 * u)
            placeCells(state, layout, child, room, to, depth + 1);
    }
}

} // namespace

const MemoryNode& MomentState::tree() const
{
    static const MemoryNode nothing;
    return root ? *root : nothing;
}

std::vector<QRectF> MomentLayout::pieces() const
{
    std::vector<QRectF> rects{heading, total, place, map};
    for (const LiveRow& row : rows)
        rects.insert(rects.end(), {row.swatch, row.name, row.size});
    for (const Crumb& crumb : crumbs)
        rects.push_back(crumb.rect);
    std::erase_if(rects, [](const QRectF& rect) { return rect.isEmpty(); });
    return rects;
}

const MemoryNode& nodeAt(const MemoryNode& root, const QStringList& path)
{
    const MemoryNode* node = &root;
    for (const QString& name : path) {
        const auto child = std::find_if(node->children.begin(), node->children.end(),
                                        [&](const MemoryNode& one) { return one.name == name; });
        if (child == node->children.end())
            break;
        node = &*child;
    }
    return *node;
}

MomentLayout layoutMoment(const MomentState& state, const QRectF& rect)
{
    const double u = plotUnit();
    MomentLayout layout;
    const QRectF area = rect.adjusted(14 * u, 8 * u, -14 * u, -8 * u);
    const QFontMetricsF head(plotFont(0.95, true));
    layout.totalText =
        state.moment.event < 0 ? QString() : memoryText(state.moment.allocated, state.bytes);
    const double total =
        layout.totalText.isEmpty() ? 0 : head.horizontalAdvance(layout.totalText) + 4;
    const double split = area.left() + listShare * area.width();
    layout.total = QRectF(split - 14 * u - total, area.top(), total, head.height());
    layout.heading =
        QRectF(area.left(), area.top(), std::max(0.0, layout.total.left() - area.left() - 8 * u),
               head.height());
    layout.headingText = head.elidedText(headingOf(state), Qt::ElideRight, layout.heading.width());
    const double top = area.top() + head.height() + 6 * u;
    const QFontMetricsF small(plotFont(0.85));
    layout.place = QRectF(area.left(), area.top() + head.height(), split - 14 * u - area.left(),
                          small.height());
    layout.placeText = small.elidedText(placeOf(state), Qt::ElideMiddle, layout.place.width());
    const double rows = layout.place.bottom() + 5 * u;
    layout.list =
        QRectF(area.left(), rows, layout.place.width(), std::max(0.0, area.bottom() - rows));
    placeRows(state, layout);
    placeCrumbs(state, layout, QRectF(split, area.top(), area.right() - split, head.height()));
    layout.map = QRectF(split, top, area.right() - split, std::max(0.0, area.bottom() - top));
    placeCells(state, layout, nodeAt(state.tree(), state.path), layout.map, state.path, 0);
    return layout;
}

} // namespace memscape
