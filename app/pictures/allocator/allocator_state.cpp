// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pictures/allocator/allocator_state.h"

#include "app/pictures/common/json_values.h"
#include "app/settings/words.h"
#include "core/experiments/allocator/allocator.h"

#include <algorithm>

namespace memscape {

namespace {

constexpr int keptEvery = 256;        ///< requests
constexpr std::size_t mostCards = 12; ///< of a record; a prediction has ten

QString groupedCount(double count)
{
    return QString::fromStdString(countText(count));
}

QString phaseName(Phase phase)
{
    return QString::fromLatin1(phaseText(phase).data(), qsizetype(phaseText(phase).size()));
}

ElsewhereCard elsewhereCard(const Json& json, const std::string& chosen)
{
    ElsewhereCard card;
    card.key = textOf(json, "key");
    card.label = textOf(json, "label");
    card.missing = textOf(json, "missing");
    card.isKnown = card.missing.isEmpty();
    card.reserved = number(json, "peak_reserved", 0);
    card.unusable = std::clamp(number(json, "unusable", 0), 0.0, 1.0);
    card.isRefused = json.contains("refused");
    card.isChosen = card.key.toStdString() == chosen;
    return card;
}

/// The setting of a record, with its limits.
Result<PolicySetting> settingInRecord(const Json& json)
{
    MEMSCAPE_TRY(setting, readSetting(words(json, "key")));
    if (const double limit = number(json, "limit", 0); limit > 0 && limit < 0x1p60)
        setting.options.deviceLimit = std::int64_t(limit);
    if (const double fraction = number(json, "fraction", 0); fraction > 0 && fraction < 0x1p60)
        setting.options.fractionLimit = std::int64_t(fraction);
    return setting;
}

QString neighbourName(const AllocatorState& state, const PolicySegment& segment, std::size_t block, int step)
{
    const auto at = std::ptrdiff_t(block) + step;
    if (at < 0 || at >= std::ptrdiff_t(segment.blocks.size()))
        return tr("the segment's end");
    const PolicyBlock& other = segment.blocks[std::size_t(at)];
    return other.block == noBlock ? tr("%1 free").arg(state.bytes(double(other.size)))
                                  : toQString(state.trace->nameOf(other.block));
}

} // namespace

Result<AllocatorWalk> AllocatorWalk::of(std::shared_ptr<const RequestTrace> trace, const PolicySetting& setting)
{
    AllocatorWalk walk;
    MEMSCAPE_TRY(policy, makePolicy(setting, *trace));
    walk.m_trace = std::move(trace);
    walk.m_setting = setting;
    walk.m_kept[0] = policy->clone();
    walk.m_policy = std::move(policy);
    return walk;
}

void AllocatorWalk::go(int request)
{
    const auto kept = std::prev(m_kept.upper_bound(request));
    if (m_next > request || kept->first > m_next) {
        m_policy = kept->second->clone();
        m_next = kept->first;
    }
    for (; m_next < request; ++m_next) {
        if (m_next % keptEvery == 0 && m_kept.count(m_next) == 0)
            m_kept[m_next] = m_policy->clone();
        const Request& one = m_trace->requests[std::size_t(m_next)];
        m_policy->play(one, m_trace->blocks[one.block]);
    }
}

const AllocatorMoment& AllocatorWalk::at(int request)
{
    if (m_moment.request == request)
        return m_moment;
    go(request);
    const Request& one = m_trace->requests[std::size_t(request)];
    const std::vector<PolicySegment> before =
        m_moment.request == request - 1 ? std::move(m_moment.segments) : m_policy->segments();
    m_moment.act = m_policy->play(one, m_trace->blocks[one.block]);
    ++m_next;
    m_moment.request = request;
    m_moment.segments = m_policy->segments();
    m_moment.counts = m_policy->counts();
    m_moment.words.clear();
    for (const std::string& line : actText(*m_trace, std::size_t(request), m_moment.act, m_setting, before))
        m_moment.words << toQString(line);
    return m_moment;
}

QString AllocatorState::bytes(double value) const
{
    return QString::fromStdString(quantityText(value, Unit::Byte, byteStyle));
}

QString AllocatorState::requestName(int request) const
{
    const Request& one = trace->requests[std::size_t(request)];
    const RequestedBlock& block = trace->blocks[one.block];
    const QString name = one.block == noBlock ? QString() : toQString(trace->nameOf(one.block));
    switch (one.kind) {
    case RequestKind::Allocate: return tr("allocate %2 · %1").arg(name, bytes(double(block.bytes)));
    case RequestKind::Free: return tr("free %2 · %1").arg(name, bytes(double(block.bytes)));
    case RequestKind::Record: return tr("another stream uses it · %1").arg(name);
    case RequestKind::Synchronize: return tr("synchronize()");
    case RequestKind::EmptyCache: return tr("empty_cache()");
    }
    return {};
}

QString AllocatorState::header(int request) const
{
    return tr("Request %1 of %2 · %3 · %4")
        .arg(groupedCount(request + 1), groupedCount(count()), phaseName(trace->requests[std::size_t(request)].phase),
             requestName(request));
}

QString AllocatorState::blockWords(const AllocatorMoment& moment, std::size_t segment, std::size_t block) const
{
    const PolicySegment& in = moment.segments[segment];
    const PolicyBlock& one = in.blocks[block];
    const QString beside =
        tr("between %1 and %2").arg(neighbourName(*this, in, block, -1), neighbourName(*this, in, block, 1));
    const QString where = tr("segment of %1, %2").arg(bytes(double(in.size)), toQString(in.kind));
    if (one.block == noBlock)
        return tr("%1 free, %2; %3").arg(bytes(double(one.size)), beside, where);
    const RequestedBlock& asked = trace->blocks[one.block];
    int age = 0;
    for (int i = moment.request; i >= 0; --i, ++age) {
        const Request& request = trace->requests[std::size_t(i)];
        if (request.kind == RequestKind::Allocate && request.block == one.block)
            break;
    }
    const auto category = categoryText(asked.category);
    QString words =
        tr("%1, %2: %3")
            .arg(toQString(trace->nameOf(one.block)), QString::fromLatin1(category.data(), qsizetype(category.size())),
                 bytes(double(asked.bytes)));
    if (one.size > asked.bytes)
        words += tr(" in a block of %1").arg(bytes(double(one.size)));
    words += age == 0 ? tr("; made now") : tr("; made %1 requests ago").arg(groupedCount(age));
    if (one.isPending)
        words += tr("; freed, another stream still uses it");
    return words + QStringLiteral("; ") + beside + QStringLiteral("; ") + where;
}

AllocatorState readAllocator(const Outcome* predicted, ByteStyle style)
{
    AllocatorState state;
    state.byteStyle = style;
    if (predicted == nullptr)
        return state;
    const Json& detail = predicted->detail;
    const Json& trace = member(detail, "trace");
    const Json& setting = member(detail, "setting");
    state.title = QStringLiteral("%1 · %2").arg(textOf(trace, "title"), textOf(setting, "label"));
    for (const Json& one : listOf(detail, "elsewhere"))
        if (state.cards.size() < mostCards)
            state.cards.push_back(elsewhereCard(one, memscape::words(setting, "key")));
    if (const double bound = number(detail, "bound", 0); bound > 0)
        state.cards.push_back({{}, tr("perfect packing (bound)"), bound, 0, true, false, false, {}});
    state.scale = qint64(number(detail, "scale", 1));
    if (!trace.contains("requests")) {
        state.missing = tr("%1 requests are too many to be drawn.").arg(groupedCount(number(trace, "count", 0)));
        return state;
    }
    auto requests = requestsFromJson(JsonReader(trace, "detail.trace"));
    const auto policy = settingInRecord(setting);
    if (!requests || !policy) {
        state.missing = toQString(!requests ? requests.error().text() : policy.error().text());
        return state;
    }
    state.trace = std::make_shared<const RequestTrace>(std::move(*requests));
    auto walk = AllocatorWalk::of(state.trace, *policy);
    if (!walk) {
        state.missing = toQString(walk.error().text());
        return state;
    }
    state.walk = std::make_shared<AllocatorWalk>(std::move(*walk));
    state.last = state.count() - 1;
    for (const ElsewhereCard& card : state.cards)
        if (card.isChosen && card.isRefused)
            for (const Json& one : listOf(detail, "elsewhere"))
                if (textOf(one, "key") == card.key)
                    state.last = std::clamp(int(number(one, "refused", state.last)), 0, state.count() - 1);
    state.peak = std::clamp(int(number(member(detail, "peak"), "request", 0)), 0, std::max(0, state.last));
    return state;
}

} // namespace memscape
