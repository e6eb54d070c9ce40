// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pictures/loading/loading_state.h"

#include "app/pictures/common/json_values.h"
#include "app/settings/words.h"
#include "core/experiment/outcome.h"

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

constexpr std::size_t mostLoadingWays = 2, mostLoadingLanes = 3, mostLoadingDrawn = 512;

std::optional<LoadingWay> readLoadingWay(const Json& json)
{
    LoadingWay way;
    if (!readLaneWay(json, way, mostLoadingLanes, mostLoadingDrawn))
        return std::nullopt;
    for (const Json& step : listOf(json, "steps"))
        way.steps << textOf(step);
    way.steps.resize(way.lanes.size());
    way.alone = numbers(listOf(json, "alone"));
    way.alone.resize(std::size_t(way.lanes.size()), 0);
    return way;
}

double amountOf(const Json& detail, const char* key)
{
    const double value = number(detail, key, 0);
    return std::isfinite(value) ? std::clamp(value, 0.0, 0x1p62) : 0;
}

} // namespace

const LoadingWay& LoadingState::askedWay() const
{
    for (const LoadingWay& way : ways) {
        if (way.key == asked)
            return way;
    }
    return ways.front();
}

double LoadingState::passed(const LoadingWay& way, const char* step, double seconds) const
{
    const qsizetype lane = way.steps.indexOf(QLatin1String(step));
    if (lane < 0 || chunks <= 0)
        return 0;
    double done = 0;
    for (const LanePiece& piece : way.pieces) {
        if (qsizetype(piece.lane) != lane || seconds <= piece.begin)
            continue;
        const double share =
            piece.end > piece.begin ? std::min(1.0, (seconds - piece.begin) / (piece.end - piece.begin)) : 1;
        done += share * double(piece.last - piece.first + 1);
    }
    return std::min(1.0, done / double(chunks));
}

LoadingLevels LoadingState::levelsAt(double seconds) const
{
    const LoadingWay& way = askedWay();
    const double time = seconds < 0 ? way.time : seconds;
    const bool hasConversion = way.steps.contains(QStringLiteral("convert")),
               hasCopy = way.steps.contains(QStringLiteral("copy"));
    const double read = passed(way, "read", time);
    const double convert = hasConversion ? passed(way, "convert", time) : read;
    const double copy = hasCopy ? passed(way, "copy", time) : 0;
    LoadingLevels levels;
    levels.unread = bytes * (1 - read);
    // What buffers hold has been read and has not yet gone on.
    const double after = hasConversion ? convert : hasCopy ? copy : 0;
    if (!isMapped)
        levels.process += bytes * (readsInPlace ? read : std::max(0.0, read - after));
    if (hasConversion)
        levels.process += converted * (convertsInPlace ? convert : std::max(0.0, convert - copy));
    levels.process = std::min(levels.process, std::max(hostMemory, 0.0));
    levels.pageCache = isWarm ? pageCache : pageCache * read;
    levels.gpu = converted * copy;
    return levels;
}

double LoadingState::fullest() const
{
    return std::max({bytes, hostMemory + pageCache, gpus > 0 ? converted : 0.0, 1.0});
}

QString LoadingState::wayWords(const LoadingWay& way) const
{
    QString text = tr("%1: %2").arg(way.label, secondsText(way.time));
    if (way.measured)
        text += tr(", measured %1").arg(secondsText(*way.measured));
    return text;
}

QString LoadingState::wordsAt(double seconds) const
{
    const LoadingLevels levels = levelsAt(seconds);
    QString text = tr("After %1: %2 of %3 are read; %4 in the loader's memory, %5 in the page cache")
                       .arg(secondsText(seconds), bytesText(bytes - levels.unread), bytesText(bytes),
                            bytesText(levels.process), bytesText(levels.pageCache));
    if (gpus > 0)
        text += tr("; %1 of %2 on the GPU").arg(bytesText(levels.gpu), bytesText(converted));
    return text + u'.';
}

LoadingState readLoading(const Prediction* predicted, const Measurement* measured, ByteStyle style)
{
    LoadingState state;
    state.byteStyle = style;
    if (!predicted)
        return state;
    const Json& detail = predicted->detail;
    state.bytes = amountOf(detail, "bytes");
    state.converted = amountOf(detail, "converted_bytes");
    state.hostMemory = amountOf(detail, "host_memory");
    state.pageCache = amountOf(detail, "page_cache");
    state.chunk = whole(detail, "chunk", 0, 0x1p53);
    state.chunks = whole(detail, "chunks", 0, 0x1p53);
    state.depth = int(whole(detail, "depth", 1, 8));
    state.gpus = int(whole(detail, "gpus", 0, 64));
    state.medium = textOf(detail, "medium");
    state.bottleneck = textOf(detail, "bottleneck");
    state.asked = textOf(detail, "asked");
    state.serial = textOf(detail, "serial");
    state.readsInPlace = isTrue(detail, "reads_in_place");
    state.convertsInPlace = isTrue(detail, "converts_in_place");
    state.isMapped = isTrue(detail, "is_mapped");
    for (const Json& json : listOf(detail, "ways")) {
        if (auto way = readLoadingWay(json); way && state.ways.size() < mostLoadingWays)
            state.ways.push_back(std::move(*way));
    }
    if (!(state.bytes > 0) || state.chunks <= 0)
        state.ways.clear();
    if (state.ways.empty())
        return state;
    for (const LoadingWay& way : state.ways)
        state.longest = std::max(state.longest, way.time);
    state.isWarm = state.askedWay().lanes.contains(QStringLiteral("page cache"));
    const Figure* const time = measured ? findFigure(measured->figures, "time") : nullptr;
    for (LoadingWay& way : state.ways) {
        if (way.key == state.asked && time && time->isNumber() && std::isfinite(time->number()))
            way.measured = time->number();
    }
    state.title = tr("%1: %2 from %3").arg(textOf(detail, "model"), state.bytesText(state.bytes), state.medium);
    return state;
}

} // namespace memscape
