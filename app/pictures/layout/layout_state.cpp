// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pictures/layout/layout_state.h"

#include "app/settings/words.h"
#include "core/access/views/view_code.h"

#include <algorithm>
#include <numeric>

namespace memscape {

namespace {

constexpr int mostRows = 8, mostColumns = 16, mostPanels = 6, mostLines = 32;

QString plain(const std::string& text)
{
    return QString::fromStdString(text);
}

QString indexText(const Sizes& index)
{
    return QStringLiteral("x") + plain(sizesText(index));
}

/// The cells of a corner: panels of the leading dimensions, each a matrix of the last two.
std::vector<TensorCell> cornerOf(const TensorView& view, int panels, int rows, int columns)
{
    std::vector<TensorCell> cells;
    const std::size_t rank = view.size.size();
    for (int panel = 0; panel < panels; ++panel) {
        Sizes index(rank);
        std::int64_t rest = panel;
        for (std::size_t i = rank > 2 ? rank - 2 : 0; i-- > 0;) {
            index[i] = rest % view.size[i];
            rest /= view.size[i];
        }
        for (int row = 0; row < rows; ++row) {
            for (int column = 0; column < columns; ++column) {
                if (rank > 1)
                    index[rank - 2] = row;
                if (rank > 0)
                    index[rank - 1] = column;
                std::int64_t element = view.offset;
                for (std::size_t i = 0; i < rank; ++i)
                    element += index[i] * view.stride[i];
                cells.push_back({panel, row, column, index, element, 0, 0});
            }
        }
    }
    return cells;
}

void findLines(LayoutState& state)
{
    const std::int64_t item = state.asked.itemBytes();
    state.lines.clear();
    for (const TensorCell& cell : state.cells)
        state.lines.push_back(cell.element * item / state.lineBytes);
    std::ranges::sort(state.lines);
    state.lines.erase(std::unique(state.lines.begin(), state.lines.end()), state.lines.end());
    for (TensorCell& cell : state.cells) {
        const std::int64_t line = cell.element * item / state.lineBytes;
        cell.line = int(std::ranges::lower_bound(state.lines, line) - state.lines.begin());
        cell.slot = int((cell.element * item - line * state.lineBytes) / item);
    }
}

/// As large a corner as its lines can be drawn.
void chooseCorner(LayoutState& state)
{
    const TensorView& view = state.asked.view;
    if (view.isEmpty())
        return;
    const std::size_t rank = view.size.size();
    std::int64_t leading = 1;
    for (std::size_t i = 0; i + 2 < rank; ++i)
        leading *= view.size[i];
    const auto bounded = [](std::int64_t size, int most) { return int(std::min<std::int64_t>(size, most)); };
    state.rows = rank > 1 ? bounded(view.size[rank - 2], mostRows) : 1;
    state.columns = rank > 0 ? bounded(view.size[rank - 1], mostColumns) : 1;
    state.panels = bounded(leading, mostPanels);
    while (state.panels > 1 && state.panels * (state.columns + 1) > 3 * mostColumns / 2)
        --state.panels;
    for (;;) {
        state.cells = cornerOf(view, state.panels, state.rows, state.columns);
        findLines(state);
        if (state.lines.size() <= mostLines)
            break;
        if (state.columns > 4)
            --state.columns;
        else if (state.panels > 1)
            --state.panels;
        else
            --state.rows;
    }
    state.isWhole = std::int64_t(state.cells.size()) == view.elements();
}

/// Granules in the small cache, the most recent last.
void touch(std::vector<std::int64_t>& cached, std::int64_t granule, std::size_t room)
{
    std::erase(cached, granule);
    cached.push_back(granule);
    if (cached.size() > room)
        cached.erase(cached.begin());
}

void walkCorner(LayoutState& state)
{
    std::vector<int> order(state.cells.size());
    std::iota(order.begin(), order.end(), 0);
    if (state.asked.order == WalkOrder::FirstFastest) { // by the index backwards
        std::ranges::stable_sort(order, [&state](int a, int b) {
            const Sizes& x = state.cells[std::size_t(a)].index;
            const Sizes& y = state.cells[std::size_t(b)].index;
            return std::lexicographical_compare(x.rbegin(), x.rend(), y.rbegin(), y.rend());
        });
    }
    std::vector<std::int64_t> cached;
    int fetched = 0;
    for (const int cell : order) {
        const std::int64_t granule = state.granuleOf(state.cells[std::size_t(cell)]);
        const bool isFetched = std::ranges::find(cached, granule) == cached.end();
        fetched += isFetched;
        touch(cached, granule, LayoutState::cacheRoom);
        state.steps.push_back({cell, isFetched, fetched});
    }
}

OperationChip chipOf(const ViewStep& step, std::int64_t itemBytes, ByteStyle style)
{
    OperationChip chip;
    chip.text = plain(viewText(step.operation));
    chip.strides = plain(sizesText(step.view.stride));
    chip.isRefused = !step.ok;
    chip.isCopy = step.copied;
    chip.verdict = step.ok ? tr("view") : tr("refused");
    if (step.copied)
        chip.verdict = tr("copy %1").arg(plain(quantityText(double(step.written * itemBytes), Unit::Byte, style)));
    const OperationSpec* spec = findOperation(step.operation.name);
    chip.tip = step.ok ? tr("%1\nsize %2, stride %3, offset %4%5")
                             .arg(plain(spec->help), plain(sizesText(step.view.size)), chip.strides)
                             .arg(step.view.offset)
                             .arg(step.view.isContiguous() ? tr(", contiguous") : QString())
                       : tr("PyTorch refuses: %1").arg(plain(step.message));
    return chip;
}

void writeChips(LayoutState& state)
{
    const LayoutCase& asked = state.asked;
    state.base.text = plain(sizesText(asked.base.size));
    state.base.strides = plain(sizesText(asked.base.stride));
    state.base.verdict =
        plain(quantityText(double(asked.base.storage * asked.itemBytes()), Unit::Byte, state.byteStyle));
    state.base.tip = tr("The tensor before the first operation. Click for examples.");
    for (const ViewStep& step : asked.steps)
        state.chips.push_back(chipOf(step, asked.itemBytes(), state.byteStyle));
    const TensorView& view = asked.view;
    state.pytorch =
        plain(pytorchCode(asked.steps)) + QStringLiteral("  # .stride() %1").arg(plain(sizesText(view.stride)));
    state.numpy = plain(numpyCode(asked.base, asked.steps, asked.itemBytes()))
        + QStringLiteral("  # .strides %1 bytes").arg(plain(byteStridesText(view, asked.itemBytes())));
}

std::vector<ViewOperation> operationsOf(const LayoutCase& asked)
{
    std::vector<ViewOperation> operations;
    for (const ViewStep& step : asked.steps)
        operations.push_back(step.operation);
    return operations;
}

} // namespace

int LayoutState::cellOf(int line, int slot) const
{
    for (std::size_t i = 0; i < cells.size(); ++i) {
        if (cells[i].line == line && cells[i].slot == slot)
            return int(i);
    }
    return -1;
}

std::vector<std::int64_t> LayoutState::cachedAfter(int step) const
{
    std::vector<std::int64_t> cached;
    for (int i = 0; i <= step && i < int(steps.size()); ++i)
        touch(cached, granuleOf(cells[std::size_t(steps[std::size_t(i)].cell)]), cacheRoom);
    std::ranges::sort(cached);
    return cached;
}

QString LayoutState::granuleWord() const
{
    return isGpu ? tr("sector") : tr("line");
}

QString LayoutState::title() const
{
    if (!isValid)
        return tr("Layout");
    const QString size = plain(sizesText(asked.view.size));
    return isWhole ? tr("x: %1").arg(size) : tr("x: a corner of %1").arg(size);
}

QString LayoutState::refusal() const
{
    const auto refused = std::ranges::find_if(asked.steps, [](const ViewStep& step) { return !step.ok; });
    return refused == asked.steps.end() ? QString() : tr("refused: %1").arg(plain(refused->message));
}

QString LayoutState::cellWords(int cell) const
{
    if (cell < 0 || cell >= int(cells.size()))
        return {};
    const TensorCell& one = cells[std::size_t(cell)];
    const std::int64_t granule = granuleOf(one);
    QStringList others;
    int more = 0;
    for (std::size_t i = 0; i < cells.size(); ++i) {
        if (int(i) == cell || granuleOf(cells[i]) != granule)
            continue;
        if (others.size() < 4)
            others << indexText(cells[i].index);
        else
            ++more;
    }
    QString shared = others.isEmpty() ? tr("shared with no other element shown")
                                      : tr("with %1").arg(others.join(QStringLiteral(", ")));
    if (more > 0)
        shared += tr(" and %1 more").arg(more);
    return tr("%1: element %2 of the storage, byte %3, %4 %5, %6")
        .arg(indexText(one.index))
        .arg(one.element)
        .arg(one.element * asked.itemBytes())
        .arg(granuleWord())
        .arg(granule)
        .arg(shared);
}

QString LayoutState::stepWords(int step) const
{
    if (step < 0 || step >= int(steps.size()))
        return {};
    const TensorStep& now = steps[std::size_t(step)];
    const TensorCell& cell = cells[std::size_t(now.cell)];
    return tr("visit %1 of %2: %3, %4 %5 %6; %7 fetched so far")
        .arg(step + 1)
        .arg(steps.size())
        .arg(indexText(cell.index), granuleWord())
        .arg(granuleOf(cell))
        .arg(now.isFetched ? tr("is fetched") : tr("is cached"))
        .arg(now.fetched);
}

LayoutState readTensor(const Device& device, const Parameters& parameters, ByteStyle byteStyle)
{
    LayoutState state;
    state.byteStyle = byteStyle;
    auto asked = layoutCase(parameters);
    if (!asked)
        return state;
    state.isValid = true;
    state.asked = std::move(*asked);
    state.isGpu = device.isGpu();
    state.lineBytes = std::max<std::int64_t>(std::int64_t(device.lineBytes), 16);
    state.granuleBytes =
        device.isGpu() ? std::max<std::int64_t>(std::int64_t(device.sectorBytes), 16) : state.lineBytes;
    chooseCorner(state);
    walkCorner(state);
    writeChips(state);
    return state;
}

QString viewsWithout(const LayoutCase& asked, int index)
{
    std::vector<ViewOperation> operations = operationsOf(asked);
    if (index >= 0 && index < int(operations.size()))
        operations.erase(operations.begin() + index);
    return plain(viewsText(operations));
}

QString viewsWith(const LayoutCase& asked, int index, const QString& text)
{
    QStringList parts;
    const std::vector<ViewOperation> operations = operationsOf(asked);
    for (int i = 0; i < int(operations.size()); ++i)
        parts << (i == index ? text : plain(viewText(operations[std::size_t(i)])));
    if (index >= int(operations.size()))
        parts << text;
    parts.removeAll(QString());
    return parts.join(u';');
}

QString viewsMoved(const LayoutCase& asked, int from, int to)
{
    std::vector<ViewOperation> operations = operationsOf(asked);
    const int count = int(operations.size());
    if (from < 0 || from >= count)
        return plain(viewsText(operations));
    const ViewOperation moved = operations[std::size_t(from)];
    operations.erase(operations.begin() + from);
    operations.insert(operations.begin() + std::clamp(to, 0, count - 1), moved);
    return plain(viewsText(operations));
}

std::vector<OperationOffer> offersFor(const TensorView& view)
{
    const int rank = view.rank();
    const std::int64_t first = rank > 0 ? view.size.front() : 1, last = rank > 0 ? view.size.back() : 1;
    Sizes reversed(view.size.size()), ahead = view.size;
    std::iota(reversed.rbegin(), reversed.rend(), std::int64_t(0));
    ahead.insert(ahead.begin(), 2);
    const auto listed = [](const Sizes& sizes) {
        const std::string text = sizesText(sizes);
        return text.substr(1, text.size() - 2);
    };
    std::vector<std::string> texts;
    if (rank > 1)
        texts = {"transpose(0,1)", "permute(" + listed(reversed) + ")", "diagonal()", "flatten()", "movedim(0,-1)"};
    if (rank > 0) {
        texts.push_back("narrow(-1,0," + std::to_string(std::max<std::int64_t>(1, last / 2)) + ")");
        texts.push_back("select(0,0)");
        texts.push_back("slice(-1,none,none,2)");
        if (first > 1)
            texts.push_back("unfold(0," + std::to_string(std::min<std::int64_t>(first, 4)) + ",2)");
        texts.push_back("flip(0)");
        texts.push_back("sum_dim(0)");
    }
    texts.insert(texts.end(),
                 {"unsqueeze(0)", "squeeze()", "expand(" + listed(ahead) + ")", "view(-1)", "reshape(-1)",
                  "contiguous()", "clone()", "neg()"});
    if (rank == 4)
        texts.push_back("contiguous(channels_last)");
    std::vector<OperationOffer> offers;
    for (const std::string& text : texts) {
        const auto operations = parseViews(text);
        if (operations)
            offers.push_back(
                {plain(viewText(operations->front())), plain(findOperation(operations->front().name)->help)});
    }
    return offers;
}

} // namespace memscape
