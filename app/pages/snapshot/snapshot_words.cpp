// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/snapshot/snapshot_words.h"

#include "app/pages/byte_words.h"
#include "app/pictures/training-memory/memory_state.h"
#include "app/settings/words.h"
#include "core/snapshot/predicted_snapshot.h"

#include <algorithm>

namespace memscape {

namespace {

QString fromView(std::string_view text)
{
    return QString::fromUtf8(text.data(), qsizetype(text.size()));
}

/// "0.31 s" between two moments; empty where the trace has no times.
QString durationText(const SnapshotDevice& device, std::size_t from, std::size_t to)
{
    if (isPredicted(device.snapshot()))
        return {};
    const Lifetimes& lifetimes = device.lifetimes();
    const std::int64_t start = lifetimes.timeAt(from), end = lifetimes.timeAt(to);
    if (start <= 0 || end <= start)
        return {};
    return toQString(quantityText(double(end - start) * 1e-6, Unit::Second));
}

QString lifeText(const SnapshotDevice& device, const Lifetime& life)
{
    const std::size_t events = device.lifetimes().events();
    const bool stays = life.end > events;
    if (life.begin == 0 && stays)
        return tr("alive from before the trace to its end");
    const QString time = durationText(device, life.begin, std::min<std::size_t>(life.end, events));
    const QString span = time.isEmpty() ? QString() : QStringLiteral(" (%1)").arg(time);
    if (stays)
        return tr("alive since event %1%2").arg(eventsText(life.begin), span);
    if (life.begin == 0)
        return tr("from before the trace, freed by event %1").arg(eventsText(life.end));
    return tr("alive from event %1 to %2%3").arg(eventsText(life.begin), eventsText(life.end), span);
}

} // namespace

QString fileSizeText(std::uint64_t bytes)
{
    return toQString(quantityText(double(bytes), Unit::Byte, ByteStyle::Decimal));
}

QString eventsText(std::size_t count)
{
    return toQString(countText(double(count)));
}

QString torchText(const Snapshot& snapshot)
{
    if (isPredicted(snapshot))
        return tr("predicted");
    if (snapshot.run && !snapshot.run->torch.empty())
        return tr("PyTorch %1").arg(toQString(snapshot.run->torch));
    return snapshot.settings.is_null() ? tr("PyTorch before 2.1") : tr("PyTorch 2.1 or newer");
}

QString categoryName(Category category)
{
    return fromView(categoryText(category));
}

QString lifetimeName(const SnapshotDevice& device, LifetimeId lifetime)
{
    const Snapshot& snapshot = device.snapshot();
    const Lifetime& life = device.lifetimes()[lifetime];
    if (snapshot.run && life.label != noLabel && life.label < snapshot.run->labels.size()) {
        const SnapshotLabel& label = snapshot.run->labels[life.label];
        QStringList parts;
        for (const TextId text : {label.module, label.name ? label.name : label.operation}) {
            if (!snapshot.texts[text].empty())
                parts << fromView(snapshot.texts[text]);
        }
        if (!parts.isEmpty())
            return parts.join(QStringLiteral(" · "));
    }
    const StackMeaning& meaning = device.categories().meaningOf(life.stack);
    for (const FrameId frame : {meaning.line, meaning.operation, meaning.module}) {
        if (frame != ~0u)
            return toQString(snapshot.frameText(frame));
    }
    return {};
}

QString lifetimeText(const SnapshotDevice& device, LifetimeId lifetime, ByteStyle bytes)
{
    const Lifetime& life = device.lifetimes()[lifetime];
    const Category category = device.categories().of(lifetime);
    const QString name = lifetimeName(device, lifetime);
    QString size = memoryText(double(life.size), bytes);
    if (life.requested > 0 && life.requested != life.size)
        size += tr(" for %1 asked for").arg(memoryText(double(life.requested), bytes));
    const QString how = fromView(categorySourceText(device.categories().sourceOf(lifetime)));
    const QString what =
        category == Category::Unknown ? tr("of unknown use") : tr("%1 by %2").arg(categoryName(category), how);
    return tr("%1%2, %3, %4")
        .arg(name.isEmpty() ? QString() : name + QStringLiteral(": "), size, what, lifeText(device, life));
}

QString stackText(const Snapshot& snapshot, StackId stack, int most)
{
    QStringList lines;
    for (const FrameId frame : snapshot.stacks[stack]) {
        const std::string_view file = snapshot.frameFile(frame);
        if (file.empty() || file == "??")
            continue;
        if (lines.size() == most) {
            lines << QStringLiteral("…");
            break;
        }
        lines << toQString(snapshot.frameText(frame));
    }
    return lines.join(u'\n');
}

QString momentText(const SnapshotDevice& device, std::size_t moment)
{
    const std::size_t events = device.lifetimes().events();
    QString text = moment == 0 ? tr("the start of the trace")
        : moment >= events     ? tr("the end, after %1 events").arg(eventsText(events))
                               : tr("event %1 of %2").arg(eventsText(moment), eventsText(events));
    if (moment == 0 || events == 0)
        return text;
    if (const auto step = device.steps().stepOf(moment - 1); step)
        text += tr(", step %1").arg(device.steps().steps[*step].index);
    if (const auto phase = device.categories().phaseOf(moment - 1))
        text += QStringLiteral(", ") + fromView(phaseText(*phase));
    return text;
}

QString rangeText(const SnapshotDevice& device, const EventRange& range)
{
    if (range.first == 0 && range.last >= device.lifetimes().events())
        return tr("the whole trace");
    const auto& steps = device.steps().steps;
    const auto step = std::ranges::find_if(
        steps, [&](const SnapshotStep& one) { return one.first == range.first && one.last == range.last; });
    if (step != steps.end())
        return tr("step %1").arg(step->index);
    return tr("events %1 to %2").arg(eventsText(range.first), eventsText(range.last));
}

} // namespace memscape
