// SPDX-License-Identifier: GPL-3.0-or-later
// A schedule in words: its units, its steps, its strategies.
#include "app/pictures/checkpoint/checkpoint_state.h"
#include "app/settings/words.h"
#include "core/base/number.h"

namespace memscape {

namespace {

QString stageName(const ScheduleState& state, int stage)
{
    return stage < state.stages.size() ? state.stages[stage] : QString();
}

QString whatStays(const ScheduleState& state, const ScheduleStep& step)
{
    const int i = step.operation.stage;
    switch (step.operation.kind) {
    case OperationKind::ForwardKeep: return tr("keeps its input x%1").arg(i);
    case OperationKind::ForwardDrop: return tr("discards its input x%1").arg(i);
    case OperationKind::ForwardSave: {
        const QString way = step.operation.option > 0 ? tr(", way %1").arg(step.operation.option + 1) : QString();
        return tr("saves x̄%1 for its backward%2").arg(i + 1).arg(way);
    }
    case OperationKind::Backward: return tr("uses up x̄%1 and x%2").arg(i + 1).arg(i);
    case OperationKind::Loss: return tr("of all %n stages", state.length);
    default: return {};
    }
}

} // namespace

QString ScheduleUnits::memory(double value) const
{
    if (isBytes)
        return memoryText(value, bytes);
    return tr("%1 units").arg(QString::fromStdString(quantityText(value, Unit::One, bytes, 6)));
}

QString ScheduleUnits::time(double value) const
{
    if (isSeconds)
        return QString::fromStdString(quantityText(value, Unit::Second));
    return tr("%1 units").arg(QString::fromStdString(quantityText(value, Unit::One, bytes, 6)));
}

QString ScheduleState::name(int step) const
{
    const ChainOperation& operation = steps[std::size_t(step)].operation;
    const int i = operation.stage;
    switch (operation.kind) {
    case OperationKind::Loss: return tr("loss");
    case OperationKind::Backward: return tr("backward %1").arg(i + 1);
    case OperationKind::DiscardValue: return tr("discard x%1").arg(i);
    case OperationKind::DiscardSaved: return tr("discard x̄%1").arg(i);
    default: break;
    }
    return steps[std::size_t(step)].isRecomputation ? tr("recompute %1").arg(i + 1) : tr("forward %1").arg(i + 1);
}

QString ScheduleState::words(int step) const
{
    if (step < 0 || std::size_t(step) >= steps.size())
        return {};
    const ScheduleStep& at = steps[std::size_t(step)];
    const int there = keptCount[std::size_t(step)];
    return tr("%1: %2 live, %3")
        .arg(name(step), units.memory(at.during), there == 1 ? tr("1 value kept") : tr("%1 values kept").arg(there));
}

QString ScheduleState::details(int step) const
{
    if (step < 0 || std::size_t(step) >= steps.size())
        return {};
    const ScheduleStep& at = steps[std::size_t(step)];
    QStringList lines{words(step)};
    QString what = whatStays(*this, at);
    if (const QString stage = stageName(*this, at.operation.stage);
        !stage.isEmpty() && at.operation.kind <= OperationKind::Backward && at.operation.kind != OperationKind::Loss)
        what = stage + QStringLiteral(", ") + what;
    if (!what.isEmpty())
        lines << what;
    lines << tr("step %1 of %2, %3 afterwards").arg(step + 1).arg(steps.size()).arg(units.memory(at.after));
    if (hasTimes())
        lines << tr("from %1 to %2, takes %3")
                     .arg(units.time(at.begin), units.time(at.end), units.time(at.end - at.begin));
    return lines.join(u'\n');
}

QString strategyLabel(const QString& key)
{
    if (key.startsWith(QStringLiteral("every:")))
        return tr("every %1").arg(key.mid(6));
    if (key == QStringLiteral("none"))
        return tr("store everything");
    if (key == QStringLiteral("sqrt"))
        return tr("√n");
    if (key == QStringLiteral("revolve"))
        return tr("Revolve");
    return key;
}

} // namespace memscape
