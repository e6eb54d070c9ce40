// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pictures/attention/attention_state.h"

#include "app/pictures/common/json_values.h"
#include "app/settings/words.h"

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

constexpr int mostCells = 16; ///< across and down

/// The versions of flash attention that ran, each once: a sweep may have several, and one that failed its
/// check was left out for an older one.
QString measuredVersions(const Json& measured)
{
    QStringList versions;
    const Json& points = member(measured, "points");
    for (const Json& point : points.is_array() ? points : Json::array()) {
        const qint64 version = whole(member(member(point, "flash"), "method"), "version", 0, 0x1p53);
        const QString text = tr("v%1").arg(version);
        if (version > 0 && !versions.contains(text))
            versions += text;
    }
    return versions.join(u", ");
}

/// " · flash v7, measured v8".
QString versionsOf(const Json& flash, const Json& measured)
{
    const qint64 version = whole(flash, "version", 0, 0x1p53);
    const QString ran = measuredVersions(measured);
    QString text = version > 0 ? tr(" · flash v%1").arg(version) : QString();
    return ran.isEmpty() || version <= 0 ? text : text + tr(", measured %1").arg(ran);
}

QString titleOf(const AttentionState& state, const Json& shape)
{
    QString title = tr("Sequence %1 · %2 heads · head dimension %3 · %4")
                        .arg(state.queries)
                        .arg(state.heads)
                        .arg(state.headDim)
                        .arg(textOf(shape, "dtype"));
    return state.isCausal ? title + tr(" · causal") : title;
}

void readChip(AttentionState& state, const Json& chip)
{
    state.chipBytes = number(chip, "bytes", 0);
    state.chipUsed = number(chip, "tiles", 0);
    state.chipLevel = textOf(chip, "level");
    const Json& parts = member(chip, "parts");
    for (const Json& part : parts.is_array() ? parts : Json::array())
        state.parts.push_back({textOf(part, "name"), whole(part, "rows", 0, 0x1p53), whole(part, "columns", 0, 0x1p53),
                               number(part, "bytes", 0)});
}

/// As many cells as there are tiles, or as many as can be distinguished.
void layGrid(AttentionState& state)
{
    const auto tiles = [](qint64 length, qint64 tile) { return (length + tile - 1) / tile; };
    const qint64 down = tiles(state.queries, state.tileQueries);
    const qint64 across = tiles(state.keys, state.tileKeys);
    state.rows = int(std::min<qint64>(down, mostCells));
    state.columns = int(std::min<qint64>(across, mostCells));
    state.tilesPerRow = double(down) / state.rows;
    state.tilesPerColumn = double(across) / state.columns;
    for (int row = 0; row < state.rows; ++row) {
        for (int column = 0; column < state.columns; ++column) {
            if (!state.isHidden(row, column))
                state.steps.push_back({row, column});
        }
    }
}

} // namespace

bool AttentionState::isHidden(int row, int column) const
{
    if (!isCausal)
        return false;
    const double lastQuery = double(row + 1) / rows * double(queries) - 1;
    const double firstKey = double(column) / columns * double(keys);
    return firstKey > lastQuery + double(keys - queries);
}

double AttentionState::flashSoFar(int step) const
{
    if (empty())
        return 0;
    int furthest = 0, inRow = 0, ofRow = 0;
    for (int i = 0; i < int(steps.size()); ++i) {
        const TileStep& one = steps[std::size_t(i)];
        if (i <= step)
            furthest = std::max(furthest, one.column + 1);
        if (one.row == steps[std::size_t(step)].row) {
            ++ofRow;
            inRow += i <= step ? 1 : 0;
        }
    }
    const double rowShare = (steps[std::size_t(step)].row + double(inRow) / std::max(1, ofRow)) / rows;
    return flashBytes / 2 * (rowShare + double(furthest) / columns);
}

int AttentionState::exampleAt(int step) const
{
    if (empty() || maxima.empty())
        return -1;
    const double share = double(steps[std::size_t(step)].column + 1) / columns;
    return std::clamp(int(std::lround(share * double(maxima.size()))) - 1, 0, int(maxima.size()) - 1);
}

QString AttentionState::bytes(double value) const
{
    return QString::fromStdString(quantityText(value, Unit::Byte, byteStyle));
}

QString AttentionState::words(int step) const
{
    if (empty() || step < 0 || step >= int(steps.size()))
        return {};
    const TileStep& at = steps[std::size_t(step)];
    const qint64 query = qint64(double(at.row) / rows * double(queries));
    const qint64 key = qint64(double(at.column) / columns * double(keys));
    return tr("queries from %1, keys from %2: %3 × %4 scores are computed, used and discarded on the chip; memory "
              "traffic so far %5, standard attention %6")
        .arg(query)
        .arg(key)
        .arg(tileQueries)
        .arg(tileKeys)
        .arg(bytes(flashSoFar(step)), hasStandard ? bytes(standardSoFar(step)) : tr("is not selected"));
}

int AttentionState::stepAt(int row, int column) const
{
    int best = -1;
    for (int i = 0; i < int(steps.size()); ++i) {
        const TileStep& one = steps[std::size_t(i)];
        if (one.row < row || (one.row == row && one.column <= column))
            best = i;
    }
    return std::max(best, empty() ? -1 : 0);
}

AttentionState readAttention(const Json& detail, const Json& measured)
{
    AttentionState state;
    const Json& shape = member(detail, "shape");
    state.batch = whole(shape, "batch", 0, 0x1p53);
    state.heads = whole(shape, "heads", 0, 0x1p53);
    state.queries = whole(shape, "queries", 0, 0x1p53);
    state.keys = whole(shape, "keys", 0, 0x1p53);
    state.headDim = whole(shape, "head_dim", 0, 0x1p53);
    state.isCausal = isTrue(shape, "causal");
    const Json &standard = member(detail, "standard"), &flash = member(detail, "flash");
    state.hasStandard = standard.is_object();
    state.hasFlash = flash.is_object();
    const double element = number(shape, "element_bytes", 2);
    state.scoreBytes =
        number(standard, "score_bytes", double(state.heads) * double(state.queries) * double(state.keys) * element);
    state.standardBytes = number(standard, "hbm_bytes", 0);
    state.flashBytes = number(flash, "hbm_bytes", 0);
    state.logBytes = number(flash, "log_sum_exp_bytes", 0);
    const Json& tile = member(flash, "tile");
    state.tileQueries = std::max<qint64>(whole(tile, "queries", 0, 0x1p53), 1);
    state.tileKeys = std::max<qint64>(whole(tile, "keys", 0, 0x1p53), 1);
    readChip(state, member(detail, "on_chip"));
    const Json& softmax = member(detail, "softmax");
    state.maxima = numbers(member(softmax, "maximum"), 0);
    state.sums = numbers(member(softmax, "sum"), 0);
    state.factors = numbers(member(softmax, "rescale"), 0);
    if (state.queries <= 0 || state.keys <= 0 || state.sums.size() != state.maxima.size()
        || state.factors.size() != state.maxima.size())
        return {};
    state.title = titleOf(state, shape) + versionsOf(flash, measured);
    layGrid(state);
    return state;
}

} // namespace memscape
