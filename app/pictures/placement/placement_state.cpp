// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pictures/placement/placement_state.h"

#include "app/pictures/common/json_values.h"
#include "app/settings/words.h"
#include "core/experiment/outcome.h"
#include "core/experiment/parameter.h"

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

constexpr std::size_t mostNodesDrawn = 400, mostPiecesDrawn = 1200, mostPlacedLanes = 5;

std::optional<PlacedNode> readNode(const Json& json, std::size_t index, bool trains)
{
    PlacedNode node;
    node.name = textOf(json, "name");
    if (node.name.isEmpty())
        return std::nullopt;
    node.kind = textOf(json, "kind");
    node.isOnHost = textOf(json, "place") == QLatin1String("host");
    node.isStreamed = textOf(json, "way") == QLatin1String("streamed");
    node.isPinned = member(json, "pinned") == true;
    node.isFixed = trains || member(json, "fixed") == true;
    node.weights = whole(json, "weights", 0, 0x1p53);
    node.bytes = whole(json, "bytes", 0, 0x1p53);
    node.seconds = number(json, "seconds", 0);
    for (const double input : numbers(member(json, "inputs"))) {
        if (input >= 0 && input < double(index))
            node.inputs.push_back(std::size_t(input));
    }
    return node;
}

/// Nothing where a number is missing or makes no sense.
std::optional<PlacedPiece> readPlacedPiece(const Json& json, std::size_t nodes)
{
    if (!json.is_array() || json.size() != 6 || !json[1].is_string())
        return std::nullopt;
    const auto value = [&](std::size_t i) { return json[i].is_number() ? json[i].get<double>() : std::nan(""); };
    PlacedPiece piece;
    piece.what = textOf(json[1]);
    piece.begin = value(2);
    piece.end = value(3);
    if (!(value(0) >= 0 && value(0) < double(mostPlacedLanes)) || !(piece.begin >= 0) || !(piece.end >= piece.begin)
        || !std::isfinite(piece.end) || !(value(4) >= 0 && value(4) < double(nodes))
        || !(value(5) >= 0 && value(5) < 0x1p53))
        return std::nullopt;
    piece.lane = std::size_t(value(0));
    piece.node = std::size_t(value(4));
    piece.bytes = std::int64_t(value(5));
    return piece;
}

/// Only lanes that have something to do, in their order.
void nameLanes(PlacementState& state, const Json& names)
{
    std::vector<std::size_t> rows(mostPlacedLanes, 0);
    std::vector<bool> isUsed(mostPlacedLanes, false);
    for (const PlacedPiece& piece : state.pieces)
        isUsed[piece.lane] = true;
    std::size_t lane = 0;
    for (const Json& name : names) {
        if (lane < mostPlacedLanes && isUsed[lane]) {
            rows[lane] = std::size_t(state.lanes.size());
            state.lanes << textOf(name);
        }
        ++lane;
    }
    for (; lane < mostPlacedLanes; ++lane)
        isUsed[lane] = false;
    std::erase_if(state.pieces, [&](const PlacedPiece& piece) { return !isUsed[piece.lane]; });
    for (PlacedPiece& piece : state.pieces)
        piece.lane = rows[piece.lane];
}

/// The measured time at the values of these parameters.
std::optional<double> placedTime(const Parameters& parameters, const Measurement* measured)
{
    const Series* const times = measured ? measured->findSeries("time") : nullptr;
    if (!times || !parameters.has(times->x.key))
        return std::nullopt;
    for (std::size_t i = 0; i < times->x.values.size() && i < times->y.size(); ++i) {
        if (times->x.values[i] == parameters.number(times->x.key) && std::isfinite(times->y[i]))
            return times->y[i];
    }
    return std::nullopt;
}

} // namespace

bool PlacedNode::computes() const
{
    return !QStringList{QStringLiteral("input"), QStringLiteral("cpu"), QStringLiteral("gpu"), QStringLiteral("item")}
                .contains(kind);
}

QString PlacementState::placed(std::size_t node, std::optional<bool> onHost) const
{
    const QString& name = nodes[node].name;
    QStringList all;
    for (const QString& word : QString(place).replace(u' ', u',').split(u',', Qt::SkipEmptyParts)) {
        if (word != QLatin1String("none") && !word.startsWith(name + u'@'))
            all << word;
    }
    if (onHost)
        all << name + (*onHost ? QStringLiteral("@host") : QStringLiteral("@device"));
    return all.isEmpty() ? QStringLiteral("none") : all.join(u',');
}

QString PlacementState::nodeWords(const PlacedNode& node) const
{
    QString text = tr("%1: %2 on the %3").arg(node.name, node.kind, node.isOnHost ? tr("host") : tr("device"));
    if (node.seconds > 0)
        text += tr(", %1").arg(secondsText(node.seconds));
    if (node.weights > 0)
        text += (node.isStreamed ? tr(", weights of %1 come up") : tr(", weights of %1 stay there"))
                    .arg(bytesText(double(node.weights)));
    if (node.isPinned)
        text += tr(", placed by hand");
    return text;
}

QString PlacementState::pieceWords(const PlacedPiece& piece) const
{
    QString text = tr("%1 of %2 in %3: from %4 to %5, %6")
                       .arg(piece.what, nodes[piece.node].name, lanes[qsizetype(piece.lane)], secondsText(piece.begin),
                            secondsText(piece.end), secondsText(piece.end - piece.begin));
    if (piece.isCopy())
        text += tr(", %1").arg(bytesText(double(piece.bytes)));
    return text;
}

QString PlacementState::copyWords(std::size_t node) const
{
    const auto copy = std::ranges::find_if(
        pieces, [&](const PlacedPiece& piece) { return piece.node == node && piece.what == QLatin1String("tensor"); });
    return copy == pieces.end()
        ? QString()
        : tr("%1, %2").arg(bytesText(double(copy->bytes)), secondsText(copy->end - copy->begin));
}

PlacementState readPlacement(const Parameters& parameters, const Prediction* predicted, const Measurement* measured,
                             ByteStyle style)
{
    PlacementState state;
    state.byteStyle = style;
    if (!predicted)
        return state;
    const Json& detail = predicted->detail;
    state.time = number(detail, "time", 0);
    state.peak = whole(detail, "peak", 0, 0x1p53);
    state.limit = whole(detail, "limit", 0, 0x1p53);
    state.serial = textOf(detail, "serial");
    state.trains = member(detail, "trains") == true;
    state.allNodes = std::size_t(whole(detail, "node_count", 0, 0x1p53));
    state.allSteps = std::size_t(whole(detail, "step_count", 0, 0x1p53));
    state.place = parameters.has("place") ? QString::fromStdString(parameters.text("place")) : QStringLiteral("none");
    if (!(state.time > 0) || !std::isfinite(state.time))
        return state;
    for (const Json& json : listOf(detail, "nodes")) {
        auto node = readNode(json, state.nodes.size(), state.trains);
        if (!node || state.nodes.size() == mostNodesDrawn)
            break; // later ones name earlier ones by their place
        state.nodes.push_back(std::move(*node));
    }
    for (const Json& json : listOf(detail, "pieces")) {
        if (state.pieces.size() == mostPiecesDrawn)
            break;
        if (const auto piece = readPlacedPiece(json, state.nodes.size()); piece && piece->end <= state.time * 1.0001)
            state.pieces.push_back(*piece);
    }
    nameLanes(state, listOf(detail, "lanes"));
    state.measured = placedTime(parameters, measured);
    state.title = tr("%1, %2").arg(textOf(detail, "subject"), state.secondsText(state.time));
    return state;
}

} // namespace memscape
