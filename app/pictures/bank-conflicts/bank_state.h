// SPDX-License-Identifier: GPL-3.0-or-later
// What the picture of `bank-conflicts` shows: the lanes of a warp, the rows of 32 banks that they reach,
// and which lane is served in which wavefront. Read from the detail of a prediction; see
// core/experiments/bank-conflicts/bank_conflicts_detail.cpp.
#pragma once

#include "core/base/json.h"
#include "core/base/number.h"

#include <QString>

#include <utility>
#include <vector>

namespace memscape {

struct PicturedLane
{
    int element = 0, row = 0, column = 0; ///< of the tile
    int address = 0;                      ///< B
    int word = 0;                         ///< the first it touches
    int words = 1;
    int phase = 0, wavefront = 0;
};

/// The same lanes with another tile.
struct BankCure
{
    QString key, label;
    int wavefronts = 0;
    double bytes = 0;
    std::vector<std::pair<std::string, std::string>> parameters;
};

struct BankState
{
    QString pattern; ///< "strided"
    int stride = 0, width = 4, columns = 32, padding = 0, granule = 0;
    bool isWrite = false;
    int banks = 32, wavefronts = 0, degree = 0;
    double bytes = 0; ///< of the tile
    std::vector<PicturedLane> lanes;
    std::vector<int> lines; ///< rows of banks with words that are asked for, ascending
    std::vector<BankCure> cures;
    QString notHere; ///< what the device lacks
    ByteStyle byteStyle = ByteStyle::Binary;

    bool empty() const { return lanes.empty(); }
    int lineOf(int word) const; ///< index into `lines`
    bool touches(const PicturedLane& lane, int word) const
    {
        return word >= lane.word && word < lane.word + lane.words;
    }
    /// Whether the word lies in the padding behind a row.
    bool isPadding(int word) const;
    int servedBefore(int wavefront) const; ///< lanes
    int servedIn(int wavefront) const;
    int banksBusyIn(int wavefront) const;
    /// "lanes 8 to 15, phase 2 of 4"; empty when all lanes are taken together.
    QString phaseWords(int wavefront) const;
    /// Index into `cures` of the tile as it is; −1 when it is another.
    int chosenCure() const;

    QString title() const;
    QString words(int wavefront) const; ///< what happens in it
    QString laneWords(int lane) const;
    QString wordWords(int word) const; ///< lanes that access it
    QString bytesText(double value) const;
};

BankState readBanks(const Json& detail);

} // namespace memscape
