// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/memory_extension.h"

#include "app/pictures/training-memory/moment_picture.h"
#include "app/pictures/training-memory/training_memory_picture.h"
#include "app/settings/words.h"
#include "core/experiments/memory/memory_difference.h"
#include "core/report/memory_tables.h"

#include <QKeyEvent>

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

constexpr int adviceRest = 180; ///< ms without a change after which advice is asked for
constexpr auto adviceKey = "advice";

Parameters withAdvice(const Parameters& parameters, const char* how)
{
    Parameters own = parameters;
    own.set(adviceKey, std::string(how));
    return own;
}

const Json& part(const Json& object, const char* key)
{
    static const Json none;
    return object.is_object() && object.contains(key) ? object.at(key) : none;
}

std::shared_ptr<const MemoryDetail> nothing()
{
    static const auto detail = std::make_shared<const MemoryDetail>(Json());
    return detail;
}

} // namespace

MemoryExtension::MemoryExtension(const PageParts& parts, QObject* parent)
    : PageExtension(parts, parent)
    , m_detail(nothing())
{
    parts.predictor.setPreparation(&MemoryExtension::prepare);
    parts.form->leaveOut(QString::fromLatin1(adviceKey)); // the page itself requests what it shows
    m_rest.setSingleShot(true);
    m_rest.setInterval(adviceRest);
    connect(&m_rest, &QTimer::timeout, this, [this] {
        if (m_ask)
            m_ask();
    });
    connect(&m_finder, &MomentFinder::found, this, &MemoryExtension::showStep);
    connect(&m_fit, &Predictor::predicted, this, [this](const std::shared_ptr<const Record>& record) {
        if (m_searching)
            endFit(readMemoryState(record->predicted->detail).fit);
    });
    connect(&m_fit, &Predictor::failed, this, [this](const Error& error) {
        endFit(std::nullopt);
        m_parts.plot->setHoverText(QString::fromStdString(error.text()));
    });
    if (auto* budget = qobject_cast<TrainingMemoryPicture*>(parts.picture)) {
        connect(budget, &TrainingMemoryPicture::fitWanted, this, &MemoryExtension::searchFit);
        connect(&parts.predictor, &Predictor::found, budget, &TrainingMemoryPicture::addLever);
    }
    if (auto* moment = qobject_cast<MomentPicture*>(parts.picture)) {
        connect(moment, &MomentPicture::cursorKey, this, &MemoryExtension::cursorKey);
        connect(moment, &MomentPicture::cursorWanted, this, &MemoryExtension::moveCursor);
        parts.plot->view()->installEventFilter(this); // its arrow keys move the cursor here
    }
}

bool MemoryExtension::hasAdvice() const
{
    return findParameter(m_parts.experiment.schema(), adviceKey) != nullptr;
}

void MemoryExtension::request(const Device& device, const Parameters& parameters)
{
    m_device = device;
    if (m_searching && !(parameters == m_parameters))
        endFit(std::nullopt); // the answer would be for other parameters
    m_parameters = parameters;
    if (!hasAdvice()) {
        m_parts.predictor.request(m_parts.experiment.id(), device, parameters);
        return;
    }
    if (auto* budget = qobject_cast<TrainingMemoryPicture*>(m_parts.picture))
        budget->setSettled(false);
    m_ask = [this] {
        if (auto* budget = qobject_cast<TrainingMemoryPicture*>(m_parts.picture))
            budget->setSettled(true);
        m_parts.predictor.request(m_parts.experiment.id(), m_device, withAdvice(m_parameters, "levers"),
                                  Predictor::Kind::Refinement);
    };
    m_rest.start();
    m_parts.predictor.request(m_parts.experiment.id(), device, withAdvice(parameters, "none"));
}

MemoryDetail::MemoryDetail(const Json& detail)
    : timeline(readTimeline(part(detail, "timeline")))
    , peak(readMoment(part(detail, "peak")))
    , textbook(readTextbook(part(detail, "textbook")))
{
    const MemoryState state = readMemoryState(detail);
    outOfMemory = state.outOfMemory;
    knowsWhatFits = state.fits || !outOfMemory.isEmpty();
    caution = state.caution;
    available = state.available;
    if (!state.ranks.totals.empty())
        rank = MemoryExtension::tr(" on rank %1 of %2").arg(state.ranks.fullest).arg(state.ranks.totals.size());
    assumptions = QStringList(state.assumptions.begin(), state.assumptions.end()).join(QStringLiteral("; "));
}

std::shared_ptr<const Prepared> MemoryExtension::prepare(const Record& prediction)
{
    static const Json none;
    return std::make_shared<const MemoryDetail>(prediction.predicted ? prediction.predicted->detail : none);
}

void MemoryExtension::setState(const ShownState& state)
{
    m_bytes = state.bytes;
    auto detail = state.prediction ? std::dynamic_pointer_cast<const MemoryDetail>(state.prepared) : nullptr;
    if (!detail)
        detail = nothing();
    const auto last = [](const MemoryTimeline& line) { return line.event.empty() ? -1 : line.event.back(); };
    if (detail->timeline.event.empty() || last(detail->timeline) != last(m_detail->timeline))
        m_cursor = -1; // another step: its moments are others
    m_detail = std::move(detail);
    m_missingTime = state.prediction && state.prediction->predicted
        ? toQString(missingTime(state.prediction->predicted->figures))
        : QString();
    m_timelinePlot = memoryPlot(timeline(), m_bytes);
    if (m_detail->knowsWhatFits) // until it is known the last one stays
        m_outOfMemory = m_detail->outOfMemory;
    auto* picture = qobject_cast<MomentPicture*>(m_parts.picture);
    if (picture)
        picture->setTimeline(timeline());
    if (m_cursor < 0)
        showMoment(m_detail->peak);
    if (m_cursor >= 0 || (picture && !timeline().event.empty())) // the picture needs the blocks too
        askMoment();
    showMeasured(state.measured);
    m_differences = differencesOf(state);
}

QString MemoryExtension::differencesOf(const ShownState& state)
{
    if (!state.prediction || !state.prediction->predicted || !state.measured)
        return {};
    QStringList lines;
    for (const PhaseDifference& phase : phaseDifferences(state.prediction->predicted->detail, state.measured->detail))
        lines << tr("%1: %2").arg(toQString(phase.phase), toQString(differenceText(phase, state.bytes)));
    return lines.isEmpty() ? QString() : tr("The measured peaks. %1.").arg(lines.join(QStringLiteral("; ")));
}

void MemoryExtension::showMeasured(const Outcome* measured)
{
    auto* picture = qobject_cast<MomentPicture*>(m_parts.picture);
    if (picture == nullptr)
        return;
    Curve curve;
    const Series* series = measured ? measured->findSeries(timelineKey) : nullptr;
    if (series) {
        curve.x = series->x.values;
        curve.y = series->y;
        curve = alignedCurve(std::move(curve), readTimeline(part(measured->detail, "timeline")), timeline());
    }
    picture->setMeasured(std::move(curve));
}

void MemoryExtension::dressAxes(AxisSpec& x, AxisSpec& y) const
{
    if (timeline().event.size() > 1)
        x.range = std::pair(timeline().event.front(), timeline().event.back());
    y.log = 0;
    y.fromZero = true;
}

void MemoryExtension::dressCurves(std::vector<Curve>& curves, const CurveInput& input) const
{
    const auto align = [this](Curve& curve, const Outcome& of) {
        curve = alignedCurve(std::move(curve), readTimeline(part(of.detail, "timeline")), timeline());
    };
    for (Curve& curve : curves) {
        if (input.measured && (curve.role == CurveRole::Measured || curve.role == CurveRole::MeasuredVariant))
            align(curve, *input.measured);
        if (const Outcome* pinned = pinnedOutcomeOf(curve, input))
            align(curve, *pinned);
    }
    curves.insert(curves.begin(), m_timelinePlot.areas.begin(), m_timelinePlot.areas.end());
}

void MemoryExtension::dressPlot(PlotView& view) const
{
    view.setTitle(tr("One training step, byte by byte"));
    view.setPhases(m_timelinePlot.phases);
    view.setCallouts(m_timelinePlot.callouts);
}

std::vector<HorizontalLine> MemoryExtension::limits(const SeriesGroup& group) const
{
    const bool isOfPeak = std::ranges::find(group.series, "peak_allocated") != group.series.end();
    if (!m_detail->available || !(isOfPeak || group.key == QLatin1String(timelineKey)))
        return {};
    const double bytes = *m_detail->available;
    return {{bytes, tr("%1 for PyTorch on this device").arg(memoryText(bytes, m_bytes)), true}};
}

QString MemoryExtension::basis() const
{
    return m_detail->assumptions.isEmpty() ? QString() : tr("assumed of the model: %1").arg(m_detail->assumptions);
}

std::optional<InspectorNote> MemoryExtension::note(bool isMeasured)
{
    if (isMeasured && !m_differences.isEmpty())
        return InspectorNote{m_differences};
    if (isMeasured || (m_outOfMemory.isEmpty() && m_missingTime.isEmpty()))
        return std::nullopt;
    QStringList lines;
    if (!m_outOfMemory.isEmpty())
        lines << tr("Out of memory: %1.").arg(m_outOfMemory);
    if (!m_missingTime.isEmpty())
        lines << m_missingTime.section(QStringLiteral(" ("), 0, 0) + u'.'; // what to do is the button's
    InspectorNote note{lines.join(u'\n')};
    const QString link = QStringLiteral("link_bandwidth");
    if (m_missingTime.contains(link) && m_parts.form->field(link))
        note.actions.push_back({tr("Give the link's bandwidth"), [this, link] { m_parts.form->reveal(link); }});
    return note;
}

QString MemoryExtension::answer() const
{
    const MemoryMoment& peak = m_detail->peak;
    if (peak.live.empty())
        return {};
    const LiveTensor& most = peak.live.front();
    const QString where = peak.module.isEmpty() ? QString() : tr(" of %1").arg(peak.module);
    return tr("The peak is %1%2, in the %3 phase%4; the largest part, %5, is %6.")
        .arg(memoryText(peak.allocated, m_bytes), m_detail->rank, peak.phase, where, memoryText(most.bytes, m_bytes),
             most.count > 1 ? tr("%1 tensors of %2").arg(most.count).arg(placeText({}, most.module, most.name))
                            : placeText({}, most.module, most.name));
}

int MemoryExtension::cursor() const
{
    return m_cursor >= 0 ? m_cursor : timeline().peak;
}

std::optional<std::vector<Marker>> MemoryExtension::markers(const QString&, const SeriesAxis* axis) const
{
    if (!axis || axis->key != "event")
        return std::nullopt;
    if (cursor() < 0 || timeline().event.empty())
        return std::vector<Marker>();
    return std::vector<Marker>{{QString::fromLatin1(cursorMarker), double(cursor()),
                                m_cursor < 0 ? tr("peak") : tr("event %1").arg(m_cursor), true}};
}

bool MemoryExtension::moveMarker(const QString& key, double event)
{
    if (key != QLatin1String(cursorMarker))
        return false;
    moveCursor(event);
    return true;
}

void MemoryExtension::moveCursor(double event)
{
    if (timeline().event.empty() || !std::isfinite(event))
        return;
    const double last = timeline().event.back();
    m_cursor = int(std::lround(std::clamp(event, timeline().event.front(), last)));
    if (m_cursor == timeline().peak)
        m_cursor = -1;
    if (m_cursor < 0)
        showMoment(m_detail->peak);
    else
        askMoment();
    emit markersChanged();
}

void MemoryExtension::cursorKey(int key, Qt::KeyboardModifiers modifiers)
{
    if (timeline().event.empty())
        return;
    const double first = timeline().event.front(), last = timeline().event.back();
    const double step = modifiers & Qt::ShiftModifier ? std::max(1.0, std::round((last - first) / 100)) : 1;
    switch (key) {
    case Qt::Key_Left: return moveCursor(cursor() - step);
    case Qt::Key_Right: return moveCursor(cursor() + step);
    case Qt::Key_Home: return moveCursor(first);
    case Qt::Key_End: return moveCursor(last);
    case Qt::Key_P: return moveCursor(timeline().peak);
    default: return;
    }
}

void MemoryExtension::askMoment()
{
    if (auto* picture = qobject_cast<MomentPicture*>(m_parts.picture))
        picture->setPending(true);
    m_finder.request(m_device, m_parameters, std::size_t(cursor()));
}

void MemoryExtension::showStep(const MemoryMoment& moment, const std::shared_ptr<const StepBlocks>& step)
{
    if (auto* picture = qobject_cast<MomentPicture*>(m_parts.picture))
        picture->setStep(step);
    showMoment(moment);
}

void MemoryExtension::showMoment(const MemoryMoment& moment)
{
    if (auto* picture = qobject_cast<MomentPicture*>(m_parts.picture)) {
        picture->setByteStyle(m_bytes);
        picture->setMoment(moment, moment.event >= 0 && moment.event == timeline().peak);
    } else if (m_cursor >= 0) {
        QStringList largest;
        for (std::size_t i = 0; i < std::min<std::size_t>(moment.live.size(), 4); ++i)
            largest << placeText({}, moment.live[i].module, moment.live[i].name) + u' '
                    + memoryText(moment.live[i].bytes, m_bytes);
        m_parts.plot->setHoverText(tr("Event %1, %2: %3 alive. Largest: %4")
                                       .arg(moment.event)
                                       .arg(placeText(moment.phase, moment.module, moment.name),
                                            memoryText(moment.allocated, m_bytes), largest.join(QStringLiteral(", "))));
    }
}

void MemoryExtension::searchFit(bool on)
{
    auto* budget = qobject_cast<TrainingMemoryPicture*>(m_parts.picture);
    if (budget == nullptr)
        return;
    if (!on) {
        m_searching.reset();
        return;
    }
    m_searching = m_parameters;
    budget->setFit(std::nullopt, true);
    m_fit.request(m_parts.experiment.id(), m_device, withAdvice(m_parameters, "fit"));
}

void MemoryExtension::endFit(std::optional<FitAnswer> answer)
{
    m_searching.reset();
    if (auto* budget = qobject_cast<TrainingMemoryPicture*>(m_parts.picture))
        budget->setFit(std::move(answer), false);
}

bool MemoryExtension::eventFilter(QObject* watched, QEvent* event)
{
    if (event->type() == QEvent::KeyPress) {
        const auto* key = static_cast<QKeyEvent*>(event);
        if (isCursorKey(key->key()) && !(key->modifiers() & (Qt::ControlModifier | Qt::AltModifier))) {
            cursorKey(key->key(), key->modifiers());
            return true;
        }
    }
    return QObject::eventFilter(watched, event);
}

} // namespace memscape
