// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/snapshot/flame_layout.h"

#include "app/plots/plot_style.h"
#include "app/settings/words.h"

#include <QFontMetricsF>

#include <algorithm>

namespace memscape {

namespace {

class Placing
{
public:
    Placing(const std::vector<FlameItem>& items, const QRectF& rect, const QString& words)
        : m_items(items)
        , m_rect(rect)
        , m_words(words)
        , m_metrics(plotFont(0.78))
    { }

    void put(std::uint32_t item, double left, double width, int row)
    {
        const double top = m_rect.top() + row * itemRowHeight();
        if (width < 1 || top + itemRowHeight() > m_rect.bottom() + 1)
            return;
        const FlameItem& one = m_items[item];
        ItemBox box{QRectF(left, top, width, itemRowHeight() - 1), item, {}, true};
        box.isMatch = m_words.isEmpty() || one.text.contains(m_words, Qt::CaseInsensitive);
        const double room = width - 6 * plotUnit();
        if (room > 16 * plotUnit()) {
            const bool isLong = !one.brief.isEmpty() && m_metrics.horizontalAdvance(one.text) > room;
            box.text = m_metrics.elidedText(isLong ? one.brief : one.text, Qt::ElideRight, room);
        }
        boxes.push_back(std::move(box));
    }

    void putBelow(std::uint32_t item, double left, double width, int row)
    {
        put(item, left, width, row);
        const FlameItem& one = m_items[item];
        if (width < 1 || one.bytes <= 0 || m_rect.top() + (row + 1) * itemRowHeight() > m_rect.bottom())
            return;
        for (const std::uint32_t child : one.children) {
            const double share = width * m_items[child].bytes / one.bytes;
            if (share < 1)
                break; // the others are smaller
            putBelow(child, left, share, row + 1);
            left += share;
        }
    }

    std::vector<ItemBox> boxes;

private:
    const std::vector<FlameItem>& m_items;
    const QRectF m_rect;
    const QString m_words;
    const QFontMetricsF m_metrics;
};

} // namespace

std::vector<FlameItem> stackItems(const Snapshot& snapshot, const std::vector<FlameNode>& nodes)
{
    std::vector<FlameItem> items;
    items.reserve(nodes.size());
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        const FlameNode& node = nodes[i];
        FlameItem item;
        if (i == 0) {
            item.text = tr("all");
        } else if (node.frame == ~0u) {
            item.text = tr("no stack was recorded");
        } else {
            item.text = toQString(snapshot.frameText(node.frame));
            const std::string_view file = snapshot.frameFile(node.frame), name = snapshot.frameName(node.frame);
            item.brief = QString::fromUtf8(name.data(), qsizetype(name.size()));
            item.kind = QString::fromUtf8(file.data(), qsizetype(file.size()));
        }
        item.parent = node.parent;
        item.bytes = double(node.bytes);
        item.blocks = node.blocks;
        item.children = node.children;
        items.push_back(std::move(item));
    }
    if (!nodes.empty() && nodes.front().own > 0) { // what no frame tells of has a box, too
        FlameItem none;
        none.text = tr("no stack was recorded");
        none.bytes = double(nodes.front().own);
        auto& children = items.front().children;
        const auto place =
            std::ranges::find_if(children, [&](std::uint32_t child) { return items[child].bytes < none.bytes; });
        none.blocks = items.front().blocks;
        for (const std::uint32_t child : children)
            none.blocks -= items[child].blocks;
        children.insert(place, std::uint32_t(items.size()));
        items.push_back(std::move(none));
    }
    return items;
}

std::vector<FlameItem> moduleItems(const std::vector<SnapshotGroup>& modules)
{
    std::vector<FlameItem> items(1);
    items[0].text = tr("all");
    for (const SnapshotGroup& module : modules) {
        const auto add = [&](std::uint32_t at) {
            items[at].bytes += double(module.bytes);
            items[at].blocks += module.blocks;
        };
        std::uint32_t at = 0;
        add(at);
        for (const QString& part : toQString(module.label).split(u'.', Qt::SkipEmptyParts)) {
            const auto& children = items[at].children;
            const auto known =
                std::ranges::find_if(children, [&](std::uint32_t child) { return items[child].text == part; });
            std::uint32_t next = known == children.end() ? std::uint32_t(items.size()) : *known;
            if (next == items.size()) {
                FlameItem item;
                item.text = item.kind = part;
                item.parent = at;
                items.push_back(std::move(item));
                items[at].children.push_back(next);
            }
            at = next;
            add(at);
        }
    }
    for (FlameItem& item : items)
        std::ranges::stable_sort(item.children,
                                 [&](std::uint32_t a, std::uint32_t b) { return items[a].bytes > items[b].bytes; });
    return items;
}

double itemRowHeight()
{
    return 18 * plotUnit();
}

std::vector<ItemBox> layoutItems(const std::vector<FlameItem>& items, std::uint32_t root, const QRectF& rect,
                                 const QString& words)
{
    Placing placing(items, rect, words);
    if (root >= items.size())
        return {};
    std::vector<std::uint32_t> path;
    for (std::uint32_t item = root; item != 0 && path.size() < items.size(); item = items[item].parent)
        path.push_back(item);
    if (root != 0)
        path.push_back(0);
    std::ranges::reverse(path);
    int row = 0;
    for (const std::uint32_t item : path) {
        if (item != root)
            placing.put(item, rect.left(), rect.width(), row++);
    }
    placing.putBelow(root, rect.left(), rect.width(), row);
    return placing.boxes;
}

} // namespace memscape
