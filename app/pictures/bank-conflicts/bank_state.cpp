// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pictures/bank-conflicts/bank_state.h"

#include "app/pictures/common/json_values.h"
#include "app/settings/words.h"

#include <QStringList>

#include <algorithm>
#include <set>

namespace memscape {

namespace {

constexpr int mostLanes = 64;
constexpr int mostWords = 1 << 24; ///< of a document that was written by hand

int wholeUpTo(const Json& object, const char* key, int most = mostWords)
{
    return int(whole(object, key, -1, most));
}

QString counted(int count, const QString& one, const QString& many)
{
    return QStringLiteral("%1 %2").arg(count).arg(count == 1 ? one : many);
}

/// False when a lane is not one.
bool readLane(BankState& state, const Json& json)
{
    PicturedLane lane;
    lane.element = wholeUpTo(json, "element");
    lane.row = wholeUpTo(json, "row");
    lane.column = wholeUpTo(json, "column");
    lane.address = wholeUpTo(json, "address");
    lane.word = wholeUpTo(json, "word");
    lane.words = wholeUpTo(json, "words", 4);
    lane.phase = wholeUpTo(json, "phase", mostLanes);
    lane.wavefront = wholeUpTo(json, "wavefront", state.wavefronts - 1);
    for (const int value :
         {lane.element, lane.row, lane.column, lane.address, lane.word, lane.phase, lane.wavefront, lane.words - 1}) {
        if (value < 0)
            return false;
    }
    state.lanes.push_back(lane);
    return true;
}

void readCures(BankState& state, const Json& cures)
{
    for (const Json& json : cures) {
        BankCure cure{
            textOf(json, "key"), textOf(json, "label"), wholeUpTo(json, "wavefronts"), number(json, "bytes", 0), {}};
        const Json& parameters = member(json, "parameters");
        if (!parameters.is_object() || cure.wavefronts < 1)
            continue;
        for (const auto& [key, value] : parameters.items()) {
            if (value.is_string())
                cure.parameters.emplace_back(key, value.get<std::string>());
        }
        state.cures.push_back(std::move(cure));
    }
}

void findLines(BankState& state)
{
    std::set<int> lines;
    for (const PicturedLane& lane : state.lanes)
        lines.insert(lane.word / state.banks);
    // A few more, so that one sees that the banks go on.
    for (int line = 0; lines.size() < 4; ++line)
        lines.insert(line);
    state.lines.assign(lines.begin(), lines.end());
}

} // namespace

int BankState::lineOf(int word) const
{
    const auto found = std::ranges::lower_bound(lines, word / banks);
    return found != lines.end() && *found == word / banks ? int(found - lines.begin()) : -1;
}

bool BankState::isPadding(int word) const
{
    const qint64 pitch = qint64(columns + padding) * width;
    return padding > 0 && pitch > 0 && qint64(word) * 4 % pitch >= qint64(columns) * width;
}

int BankState::servedBefore(int wavefront) const
{
    return int(std::ranges::count_if(lanes, [&](const PicturedLane& lane) { return lane.wavefront < wavefront; }));
}

int BankState::servedIn(int wavefront) const
{
    return servedBefore(wavefront + 1) - servedBefore(wavefront);
}

int BankState::banksBusyIn(int wavefront) const
{
    std::set<int> busy;
    for (const PicturedLane& lane : lanes) {
        for (int i = 0; lane.wavefront == wavefront && i < lane.words; ++i)
            busy.insert((lane.word + i) % banks);
    }
    return int(busy.size());
}

QString BankState::phaseWords(int wavefront) const
{
    int phase = -1, phases = 0, first = -1, last = -1;
    for (const PicturedLane& lane : lanes) {
        phases = std::max(phases, lane.phase + 1);
        if (lane.wavefront == wavefront)
            phase = lane.phase;
    }
    for (std::size_t i = 0; i < lanes.size(); ++i) {
        if (lanes[i].phase != phase)
            continue;
        first = first < 0 ? int(i) : first;
        last = int(i);
    }
    if (phases < 2 || phase < 0)
        return {};
    return tr("lanes %1 to %2, phase %3 of %4").arg(first).arg(last).arg(phase + 1).arg(phases);
}

int BankState::chosenCure() const
{
    for (std::size_t i = 0; i < cures.size(); ++i) {
        const QString& key = cures[i].key;
        const bool isMeant = key == QLatin1String("none") ? padding == 0 && granule == 0
            : key == QLatin1String("padding")             ? padding == 1 && granule == 0
            : key == QLatin1String("xor16")               ? padding == 0 && granule == 16
                                                          : padding == 0 && granule == std::max(width, 4);
        if (isMeant)
            return int(i);
    }
    return -1;
}

QString BankState::title() const
{
    const QString verb = isWrite ? tr("writes") : tr("reads");
    const QString what = pattern == QLatin1String("row") ? tr("a row of a tile")
        : pattern == QLatin1String("column")             ? tr("a column of a tile")
        : pattern == QLatin1String("random")             ? tr("random elements")
        : stride == 0                                    ? tr("one element, all lanes")
                                                         : tr("with stride %1").arg(stride);
    return tr("A warp %1 %2 · %3 B · %4")
        .arg(verb, what)
        .arg(width)
        .arg(counted(wavefronts, tr("wavefront"), tr("wavefronts")));
}

QString BankState::bytesText(double value) const
{
    return QString::fromStdString(quantityText(value, Unit::Byte, byteStyle));
}

QString BankState::words(int wavefront) const
{
    if (empty())
        return {};
    const int served = servedIn(wavefront), before = servedBefore(wavefront);
    const int waiting = int(lanes.size()) - before - served;
    const int busy = banksBusyIn(wavefront);
    return tr("wavefront %1 of %2: %3 open, %4 served, %5 waiting")
        .arg(wavefront + 1)
        .arg(wavefronts)
        .arg(counted(busy, tr("bank"), tr("banks")), counted(served, tr("lane"), tr("lanes")))
        .arg(waiting);
}

QString BankState::laneWords(int index) const
{
    if (index < 0 || index >= int(lanes.size()))
        return {};
    const PicturedLane& lane = lanes[std::size_t(index)];
    const int bank = lane.word % banks;
    const QString in =
        lane.words == 1 ? tr("bank %1").arg(bank) : tr("banks %1 to %2").arg(bank).arg(bank + lane.words - 1);
    return tr("lane %1: element %2 (row %3, column %4), bytes %5 to %6, %7; served in wavefront %8 of %9")
        .arg(index)
        .arg(lane.element)
        .arg(lane.row)
        .arg(lane.column)
        .arg(lane.address)
        .arg(lane.address + width - 1)
        .arg(in)
        .arg(lane.wavefront + 1)
        .arg(wavefronts);
}

QString BankState::wordWords(int word) const
{
    QStringList who;
    int first = wavefronts, last = -1;
    for (std::size_t i = 0; i < lanes.size(); ++i) {
        if (touches(lanes[i], word)) {
            who << QString::number(i);
            first = std::min(first, lanes[i].wavefront);
            last = std::max(last, lanes[i].wavefront);
        }
    }
    const QString place = tr("word %1 at byte %2, bank %3").arg(word).arg(word * 4).arg(word % banks);
    if (who.isEmpty())
        return isPadding(word) ? tr("%1: padding").arg(place) : tr("%1: no lane accesses it").arg(place);
    const QString lanesText = who.size() == int(lanes.size()) ? tr("all lanes, a broadcast")
        : who.size() == 1                                     ? tr("lane %1").arg(who.front())
                                                              : tr("lanes %1").arg(who.join(QStringLiteral(", ")));
    if (first < last)
        return tr("%1: for %2, in wavefronts %3 to %4").arg(place, lanesText).arg(first + 1).arg(last + 1);
    return tr("%1: for %2, in wavefront %3").arg(place, lanesText).arg(first + 1);
}

BankState readBanks(const Json& detail)
{
    BankState state;
    const Json &tile = member(detail, "tile"), &request = member(detail, "request");
    state.width = wholeUpTo(tile, "width", 16);
    state.columns = wholeUpTo(tile, "columns");
    state.padding = wholeUpTo(tile, "padding");
    state.granule = wholeUpTo(tile, "swizzle");
    state.bytes = number(tile, "bytes", 0);
    state.pattern = textOf(request, "pattern");
    state.stride = wholeUpTo(request, "stride");
    state.isWrite = textOf(request, "operation") == QLatin1String("write");
    state.wavefronts = wholeUpTo(request, "wavefronts", 4 * mostLanes);
    state.degree = wholeUpTo(request, "degree", mostLanes);
    const Json& lanes = listOf(detail, "lanes");
    if (state.width < 1 || state.columns < 1 || state.padding < 0 || state.granule < 0 || state.stride < 0
        || state.wavefronts < 1 || lanes.empty() || lanes.size() > std::size_t(mostLanes))
        return {};
    for (const Json& lane : lanes) {
        if (!readLane(state, lane))
            return {};
    }
    readCures(state, listOf(detail, "cures"));
    state.notHere = textOf(detail, "not_here");
    findLines(state);
    return state;
}

} // namespace memscape
