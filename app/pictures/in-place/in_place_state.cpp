// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pictures/in-place/in_place_state.h"

#include "app/pictures/common/json_values.h"
#include "app/settings/words.h"
#include "core/experiment/experiment.h"

#include <QStringList>

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

constexpr std::size_t mostTensors = 8; ///< of a record; a prediction has up to four
constexpr double mostBytes = 0x1p60;

std::optional<TensorRole> roleOf(const std::string& name)
{
    if (name == "input")
        return TensorRole::Input;
    if (name == "result")
        return TensorRole::Result;
    if (name == "factor")
        return TensorRole::Factor;
    return name == "copy" ? std::optional(TensorRole::Copy) : std::nullopt;
}

/// A number of bytes; 0 for anything else.
double bytesOf(const Json& object, const char* key)
{
    const double value = number(object, key, 0);
    return value >= 0 && value <= mostBytes ? value : 0;
}

std::vector<ShownTensor> tensorsOf(const Json& way)
{
    std::vector<ShownTensor> tensors;
    for (const Json& one : listOf(way, "tensors")) {
        const auto role = roleOf(words(one, "name"));
        const double bytes = bytesOf(one, "bytes");
        if (role && bytes > 0 && tensors.size() < mostTensors)
            tensors.push_back({*role, bytes, isTrue(one, "overwrites"), isTrue(one, "before"), isTrue(one, "after"),
                               isTrue(one, "saved"), isTrue(one, "was_saved"), isTrue(one, "owned"),
                               textOf(one, "why")});
    }
    return tensors;
}

double figureOf(const Outcome& outcome, const std::string& key)
{
    const Figure* figure = findFigure(outcome.figures, key);
    const double value = figure ? figure->number() : 0;
    return value >= 0 && value <= mostBytes ? value : 0;
}

/// What was measured at that size, not at another one of the same sweep.
std::optional<double> measuredAt(const Outcome* measured, const std::string& key, double bytes)
{
    const Series* series = measured ? measured->findSeries(key) : nullptr;
    if (series == nullptr || series->x.key != "bytes")
        return std::nullopt;
    for (std::size_t i = 0; i < std::min(series->x.values.size(), series->y.size()); ++i) {
        if (series->x.values[i] == bytes && std::isfinite(series->y[i]))
            return series->y[i];
    }
    return std::nullopt;
}

QString labelOf(const Experiment& experiment, const Parameters& parameters, const char* key)
{
    return QString::fromStdString(valueLabel(*findParameter(experiment.schema(), key), parameters.choice(key)));
}

QString withoutStop(QString text)
{
    while (text.endsWith(u'.'))
        text.chop(1);
    return text;
}

} // namespace

bool ShownTensor::isThere(InPlaceMoment moment) const
{
    return moment == InPlaceMoment::Before ? isGiven : moment == InPlaceMoment::During || staysAlive;
}

bool ShownTensor::isKeptForBackward(InPlaceMoment moment) const
{
    if (!isThere(moment))
        return false;
    const bool byNow = moment == InPlaceMoment::After || role == TensorRole::Copy;
    return wasSaved || (isSaved && byNow);
}

QString ShownTensor::symbol(InPlaceMoment moment) const
{
    switch (role) {
    case TensorRole::Input: return QStringLiteral("x");
    case TensorRole::Result:
        return overwrites && moment == InPlaceMoment::Before ? QStringLiteral("x") : QStringLiteral("y");
    case TensorRole::Factor: return tr("factor");
    case TensorRole::Copy: return tr("copy of x");
    }
    return {};
}

double InPlaceWay::total(InPlaceMoment moment) const
{
    if (moment != InPlaceMoment::Before)
        return moment == InPlaceMoment::During ? peak : kept;
    double bytes = 0;
    for (const ShownTensor& tensor : tensors)
        bytes += tensor.isGiven ? tensor.bytes : 0;
    return bytes;
}

double InPlaceWay::keptForBackward() const
{
    double bytes = 0;
    for (const ShownTensor& tensor : tensors)
        bytes += tensor.isKeptForBackward(InPlaceMoment::After) ? tensor.bytes : 0;
    return bytes;
}

QString InPlaceWay::symbolsForBackward() const
{
    QStringList symbols;
    for (const ShownTensor& tensor : tensors) {
        if (tensor.isKeptForBackward(InPlaceMoment::After))
            symbols << tensor.symbol(InPlaceMoment::After);
    }
    return symbols.join(QStringLiteral(", "));
}

double InPlaceState::most() const
{
    double bytes = 1;
    for (const InPlaceWay& way : ways) {
        double tensors = 0, parts = 0;
        for (const ShownTensor& tensor : way.tensors)
            tensors += tensor.bytes;
        for (const MovedPart& part : way.parts)
            parts += part.bytes;
        bytes = std::max({bytes, tensors, parts});
    }
    return bytes;
}

QString InPlaceState::bytes(double value) const
{
    return QString::fromStdString(quantityText(value, Unit::Byte, byteStyle));
}

QString InPlaceState::exact(double value) const
{
    return tr("%1 (%2 B)").arg(bytes(value), QString::fromStdString(countText(value)));
}

QString InPlaceState::title() const
{
    return tr("%1 · %2").arg(subject, hasGradients ? tr("gradients on") : tr("gradients off"));
}

QString InPlaceState::verdict() const
{
    if (!isAllowed) {
        QString text = tr("PyTorch refuses it %1: “%2”.").arg(at, withoutStop(error));
        text += u' '
            + (destroys.isEmpty()      ? tr("Reason: %1.").arg(rule)
                   : isRefusedAtCall() ? tr("It would destroy %1.").arg(destroys)
                                       : tr("It destroys %1.").arg(destroys));
        return text;
    }
    const auto compared = [this](double InPlaceWay::*what) {
        const double less = ways[0].*what - ways[1].*what;
        return less > 0 ? tr("%1 less").arg(bytes(less)) : less < 0 ? tr("%1 more").arg(bytes(-less)) : tr("as much");
    };
    const QString atPeak = compared(&InPlaceWay::peak), afterwards = compared(&InPlaceWay::kept);
    QString text = atPeak == afterwards ? tr("In place takes %1 at the peak and afterwards").arg(atPeak)
                                        : tr("In place takes %1 at the peak, %2 afterwards").arg(atPeak, afterwards);
    text += tr(" and moves %1").arg(compared(&InPlaceWay::moved));
    for (const ShownTensor& tensor : ways[1].tensors) {
        if (tensor.role == TensorRole::Copy)
            return text + tr(": autograd copies x before it is overwritten, because backward reads x.");
    }
    return text + tr(": %1.").arg(rule);
}

QString InPlaceState::backward() const
{
    if (!hasGradients)
        return tr("Gradients are off: nothing is kept for backward.");
    const auto kept = [this](const InPlaceWay& way) {
        const double saved = way.keptForBackward();
        return saved > 0 ? tr("%1 (%2)").arg(bytes(saved), way.symbolsForBackward()) : tr("none of these tensors");
    };
    if (!isAllowed)
        return tr("For backward, autograd keeps %1 out of place.").arg(kept(ways[0]));
    return tr("For backward, autograd keeps %1 out of place, %2 in place.").arg(kept(ways[0]), kept(ways[1]));
}

QString InPlaceState::tensorWords(int way, InPlaceMoment moment, const ShownTensor& tensor) const
{
    const QString lead =
        tr("%1, %2: %3, %4").arg(wayName(way), momentName(moment), tensor.symbol(moment), exact(tensor.bytes));
    const bool isLater = moment != InPlaceMoment::Before;
    if (way == 1 && isLater && !isAllowed && !hasForm)
        return tr("%1: would take as much, but %2").arg(lead, rule);
    if (way == 1 && isLater && isRefusedAtCall())
        return tensor.overwrites ? tr("%1: refused at the call; it would destroy %2").arg(lead, destroys)
                                 : tr("%1: refused at the call").arg(lead);
    if (way == 1 && isLater && !isAllowed && tensor.overwrites)
        return tr("%1: the write destroys %2; it also counts up the tensor's version, by which backward notices")
            .arg(lead, destroys);
    if (tensor.overwrites && moment == InPlaceMoment::Before)
        return tr("%1: about to be overwritten").arg(lead);
    if (tensor.overwrites && moment == InPlaceMoment::During)
        return tr("%1: the first part of the buffer holds y already, the rest still x").arg(lead);
    if (moment == InPlaceMoment::During && tensor.role == TensorRole::Result)
        return tr("%1: a buffer of its own, half of it written").arg(lead);
    if (moment == InPlaceMoment::During && tensor.role == TensorRole::Input)
        return tr("%1: being read").arg(lead);
    if (moment == InPlaceMoment::Before && tensor.role == TensorRole::Input && !tensor.isOwned && !tensor.wasSaved)
        return tr("%1: about to be read").arg(lead);
    return tr("%1: %2").arg(lead, tensor.why);
}

QString InPlaceState::partWords(int way, const MovedPart& part) const
{
    const QString lead = tr("%1: %2 %3").arg(wayName(way), exact(part.bytes), moveName(part.move));
    switch (part.move) {
    case Move::Read: return tr("%1 from memory, where nothing stays in a cache").arg(lead);
    case Move::Fetched:
        return tr("%1 only to be overwritten: an ordinary store of a processor fetches its line first").arg(lead);
    case Move::Written: return tr("%1 to memory, where nothing stays in a cache").arg(lead);
    }
    return lead;
}

QString wayName(int way)
{
    return way == 0 ? tr("out of place") : tr("in place");
}

QString moveName(Move move)
{
    return move == Move::Read ? tr("read") : move == Move::Fetched ? tr("fetched") : tr("written");
}

QString shortMomentName(InPlaceMoment moment)
{
    return moment == InPlaceMoment::Before ? tr("before") : moment == InPlaceMoment::During ? tr("peak") : tr("after");
}

QString momentName(InPlaceMoment moment)
{
    switch (moment) {
    case InPlaceMoment::Before: return tr("before");
    case InPlaceMoment::During: return tr("while it runs");
    case InPlaceMoment::After: return tr("afterwards");
    }
    return {};
}

InPlaceState readInPlace(const Experiment& experiment, const Parameters& parameters, const Outcome* predicted,
                         const Outcome* measured, ByteStyle style)
{
    InPlaceState state;
    state.byteStyle = style;
    state.hasGradients = parameters.flag("gradients");
    state.subject = tr("%1 · input: %2")
                        .arg(labelOf(experiment, parameters, "operation"), labelOf(experiment, parameters, "input"));
    if (predicted == nullptr)
        return state;
    const Json& detail = predicted->detail;
    state.isAllowed = isTrue(detail, "allowed", true);
    state.error = textOf(detail, "error");
    state.at = textOf(detail, "at");
    state.rule = textOf(detail, "rule");
    state.destroys = textOf(detail, "destroys");
    state.hasForm = state.isAllowed || !state.destroys.isEmpty();
    for (std::size_t i = 0; i < state.ways.size(); ++i) {
        const std::string name = i == 0 ? "out" : "in";
        const Json& way = member(detail, name.c_str());
        const Json& moved = member(way, "moved");
        InPlaceWay& shown = state.ways[i];
        shown.tensors = tensorsOf(way);
        shown.peak = figureOf(*predicted, name + "_peak");
        shown.kept = figureOf(*predicted, name + "_kept");
        shown.moved = figureOf(*predicted, name + "_moved");
        for (const auto& [key, move] : {std::pair{"read", Move::Read}, std::pair{"fetched", Move::Fetched},
                                        std::pair{"written", Move::Written}}) {
            if (const double bytes = bytesOf(moved, key); bytes > 0)
                shown.parts.push_back({move, bytes});
        }
        shown.measuredPeak = measuredAt(measured, name + "_peak", parameters.number("bytes"));
    }
    return state;
}

} // namespace memscape
