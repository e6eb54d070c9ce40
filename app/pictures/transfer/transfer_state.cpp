// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pictures/transfer/transfer_state.h"

#include "app/pictures/common/json_values.h"
#include "app/settings/words.h"
#include "core/experiment/outcome.h"
#include "core/experiment/parameter.h"

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

constexpr std::size_t mostWays = 8, mostTransferLanes = 3, mostDrawn = 256;

std::optional<TransferWay> readWay(const Json& json)
{
    TransferWay way;
    if (!readLaneWay(json, way, mostTransferLanes, mostDrawn))
        return std::nullopt;
    way.hidden = number(json, "hidden", 0);
    way.chunk = whole(json, "chunk", 0, 0x1p53);
    way.fixed = number(json, "fixed", 0);
    way.perByte = number(json, "per_byte", 0);
    return way;
}

/// The measured time at these bytes.
std::optional<double> measuredTime(const Parameters& parameters, const Measurement* measured)
{
    const Series* const times = measured ? measured->findSeries("time") : nullptr;
    if (!times || times->x.key != "bytes" || !parameters.has("bytes"))
        return std::nullopt;
    for (std::size_t i = 0; i < times->x.values.size() && i < times->y.size(); ++i) {
        if (times->x.values[i] == parameters.number("bytes") && std::isfinite(times->y[i]))
            return times->y[i];
    }
    return std::nullopt;
}

} // namespace

int TransferState::draggedWay() const
{
    for (int i = int(ways.size()) - 1; i >= 0; --i) {
        if (ways[std::size_t(i)].chunk < bytes && ways[std::size_t(i)].perByte > 0)
            return i;
    }
    return -1;
}

std::int64_t TransferState::chunkEndingAt(double seconds) const
{
    const int way = draggedWay();
    if (way < 0)
        return chunk;
    const TransferWay& one = ways[std::size_t(way)];
    const double wanted = std::max(1.0, (seconds - one.fixed) / one.perByte);
    // Not so small that there are more chunks than the model takes.
    const double least = std::max(4096.0, double(bytes) / 65536), most = std::max(4096.0, double(bytes) / 2);
    const double power = std::exp2(std::round(std::log2(std::clamp(wanted, std::min(least, most), most))));
    return std::int64_t(power < least ? power * 2 : power);
}

QString TransferState::wayWords(const TransferWay& way) const
{
    QString text = tr("%1: %2").arg(way.label, secondsText(way.time));
    if (way.hidden > 0.001 * way.time)
        text += tr(", %1 hidden").arg(secondsText(way.hidden));
    if (way.measured)
        text += tr(", measured %1").arg(secondsText(*way.measured));
    return text;
}

QString TransferState::pieceWords(const TransferWay& way, const LanePiece& piece) const
{
    const QString chunks = piece.first == piece.last ? tr("chunk %1").arg(piece.first + 1)
                                                     : tr("chunks %1 to %2").arg(piece.first + 1).arg(piece.last + 1);
    return tr("%1, %2: from %3 to %4, %5")
        .arg(way.lanes[qsizetype(piece.lane)], chunks, secondsText(piece.begin), secondsText(piece.end),
             secondsText(piece.end - piece.begin));
}

QString TransferState::wordsAt(double seconds) const
{
    QStringList said;
    for (const TransferWay& way : ways) {
        QStringList busy;
        for (qsizetype lane = 0; lane < way.lanes.size(); ++lane) {
            if (std::ranges::any_of(way.pieces, [&](const LanePiece& piece) {
                    return qsizetype(piece.lane) == lane && piece.begin <= seconds && seconds < piece.end;
                }))
                busy << way.lanes[lane];
        }
        said << tr("%1: %2").arg(way.label,
                                 seconds >= way.time  ? tr("done")
                                     : busy.isEmpty() ? tr("waiting")
                                                      : busy.join(tr(" and ")));
    }
    return tr("After %1. %2").arg(secondsText(seconds), said.join(QStringLiteral("; ")));
}

TransferState readTransfer(const Parameters& parameters, const Prediction* predicted, const Measurement* measured,
                           ByteStyle style)
{
    TransferState state;
    state.byteStyle = style;
    if (!predicted)
        return state;
    const Json& detail = predicted->detail;
    state.bytes = whole(detail, "bytes", 0, 0x1p53);
    state.chunk = whole(detail, "chunk", 0, 0x1p53);
    state.bestChunk = whole(detail, "best_chunk", 0, 0x1p53);
    state.depth = int(whole(detail, "depth", 1, 8));
    state.serial = textOf(detail, "serial");
    for (const Json& json : listOf(detail, "ways")) {
        if (auto way = readWay(json); way && state.ways.size() < mostWays)
            state.ways.push_back(std::move(*way));
    }
    for (TransferWay& way : state.ways) {
        state.longest = std::max(state.longest, way.time);
        if (way.key == textOf(detail, "asked"))
            way.measured = measuredTime(parameters, measured);
    }
    const QString moved = state.bytesText(double(state.bytes));
    state.title = state.ways.size() == 1 ? tr("%1, moved").arg(moved)
                                         : tr("%1, moved in %2 ways").arg(moved).arg(state.ways.size());
    return state;
}

} // namespace memscape
