// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/memory_guide.h"

#include "app/pictures/budget_picture.h"
#include "app/pictures/moment_picture.h"
#include "core/experiment/experiment.h"

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

bool MemoryGuide::guides(const Experiment& experiment)
{
    return experiment.id() == "training-memory" || experiment.id() == "inference-memory";
}

MemoryGuide::MemoryGuide(const Experiment& experiment, Picture* picture, PagePlot* plot,
                         QObject* parent)
    : QObject(parent)
    , m_experiment(experiment)
    , m_picture(picture)
    , m_plot(plot)
    , m_detail(nothing())
{
    m_rest.setSingleShot(true);
    m_rest.setInterval(adviceRest);
    connect(&m_rest, &QTimer::timeout, this, [this] {
        if (m_ask)
            m_ask();
    });
    connect(&m_finder, &MomentFinder::found, this, &MemoryGuide::showStep);
    connect(&m_fit, &Predictor::predicted, this,
            [this](const std::shared_ptr<const Record>& record) {
                if (m_searching)
                    endFit(readMemoryState(record->predicted->detail).fit);
            });
    connect(&m_fit, &Predictor::failed, this, [this](const Error& error) {
        endFit(std::nullopt);
        m_plot->setHoverText(QString::fromStdString(error.text()));
    });
    if (auto* budget = qobject_cast<BudgetPicture*>(picture))
        connect(budget, &BudgetPicture::fitWanted, this, &MemoryGuide::searchFit);
    if (auto* moment = qobject_cast<MomentPicture*>(picture)) {
        connect(moment, &MomentPicture::cursorKey, this, &MemoryGuide::cursorKey);
        connect(moment, &MomentPicture::cursorWanted, this, &MemoryGuide::moveCursor);
        plot->view()->installEventFilter(this); // its arrow keys move the cursor here
    }
}

bool MemoryGuide::hasAdvice() const
{
    return findParameter(m_experiment.schema(), adviceKey) != nullptr;
}

void MemoryGuide::request(Predictor& predictor, const Device& device, const Parameters& parameters)
{
    m_device = device;
    if (m_searching && !(parameters == m_parameters))
        endFit(std::nullopt); // the answer would be for other parameters
    m_parameters = parameters;
    if (!hasAdvice()) {
        predictor.request(m_experiment.id(), device, parameters);
        return;
    }
    if (auto* budget = qobject_cast<BudgetPicture*>(m_picture))
        budget->setSettled(false);
    m_ask = [this, &predictor] {
        if (auto* budget = qobject_cast<BudgetPicture*>(m_picture))
            budget->setSettled(true);
        predictor.request(m_experiment.id(), m_device, withAdvice(m_parameters, "levers"),
                          Predictor::Kind::Refinement);
    };
    m_rest.start();
    predictor.request(m_experiment.id(), device, withAdvice(parameters, "none"));
}

MemoryDetail::MemoryDetail(const Json& detail)
    : timeline(readTimeline(part(detail, "timeline")))
    , peak(readMoment(part(detail, "peak")))
    , textbook(readTextbook(part(detail, "textbook")))
{
    const MemoryState state = readMemoryState(detail);
    doctor = state.doctor;
    knowsDoctor = state.fits || !doctor.isEmpty();
    caution = state.caution;
    assumptions =
        QStringList(state.assumptions.begin(), state.assumptions.end()).join(QStringLiteral("; "));
}

std::shared_ptr<const Prepared> MemoryGuide::prepare(const Record& prediction)
{
    static const Json none;
    return std::make_shared<const MemoryDetail>(
        prediction.predicted ? prediction.predicted->detail : none);
}

void MemoryGuide::setPrediction(std::shared_ptr<const Prepared> prepared, ByteStyle bytes)
{
    m_bytes = bytes;
    auto detail = std::dynamic_pointer_cast<const MemoryDetail>(std::move(prepared));
    if (!detail)
        detail = nothing();
    const auto last = [](const MemoryTimeline& line) {
        return line.event.empty() ? -1 : line.event.back();
    };
    if (detail->timeline.event.empty() || last(detail->timeline) != last(m_detail->timeline))
        m_cursor = -1; // another step: its moments are others
    m_detail = std::move(detail);
    m_timelinePlot = memoryPlot(timeline(), bytes);
    if (m_detail->knowsDoctor) // until it is known the last one stays
        m_doctor = m_detail->doctor;
    auto* picture = qobject_cast<MomentPicture*>(m_picture);
    if (picture)
        picture->setTimeline(timeline());
    if (m_cursor < 0)
        showMoment(m_detail->peak);
    if (m_cursor >= 0 || (picture && !timeline().event.empty())) // the picture wants the blocks too
        askMoment();
}

void MemoryGuide::showMeasured(const Outcome* measured)
{
    auto* picture = qobject_cast<MomentPicture*>(m_picture);
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

void MemoryGuide::dressAxes(AxisSpec& x, AxisSpec& y) const
{
    if (timeline().event.size() > 1)
        x.range = std::pair(timeline().event.front(), timeline().event.back());
    y.log = 0;
    y.fromZero = true;
}

void MemoryGuide::dressCurves(std::vector<Curve>& curves, const CurveInput& input) const
{
    const auto align = [this](Curve& curve, const Outcome& of) {
        curve =
            alignedCurve(std::move(curve), readTimeline(part(of.detail, "timeline")), timeline());
    };
    for (Curve& curve : curves) {
        if (input.measured
            && (curve.role == CurveRole::Measured || curve.role == CurveRole::MeasuredVariant))
            align(curve, *input.measured);
        if (const Outcome* pinned = pinnedOutcomeOf(curve, input))
            align(curve, *pinned);
    }
    curves.insert(curves.begin(), m_timelinePlot.areas.begin(), m_timelinePlot.areas.end());
}

void MemoryGuide::dressPlot(PlotView& view) const
{
    view.setPhases(m_timelinePlot.phases);
    view.setLines(m_timelinePlot.lines);
    view.setCallouts(m_timelinePlot.callouts);
}

QString MemoryGuide::peakSentence() const
{
    const MemoryMoment& peak = m_detail->peak;
    if (peak.live.empty())
        return {};
    const LiveTensor& most = peak.live.front();
    const QString where = peak.module.isEmpty() ? QString() : tr(" of %1").arg(peak.module);
    return tr("The peak is %1, in the %2 phase%3; the largest part, %4, is %5.")
        .arg(memoryText(peak.allocated, m_bytes), peak.phase, where, memoryText(most.bytes, m_bytes),
             most.count > 1 ? tr("%1 tensors of %2").arg(most.count).arg(placeText({}, most.module, most.name))
                            : placeText({}, most.module, most.name));
}

int MemoryGuide::cursor() const
{
    return m_cursor >= 0 ? m_cursor : timeline().peak;
}

std::vector<Marker> MemoryGuide::markers() const
{
    if (cursor() < 0 || timeline().event.empty())
        return {};
    return {{QString::fromLatin1(cursorMarker), double(cursor()),
             m_cursor < 0 ? tr("peak") : tr("event %1").arg(m_cursor), true}};
}

void MemoryGuide::moveCursor(double event)
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
    emit cursorMoved();
}

void MemoryGuide::cursorKey(int key, Qt::KeyboardModifiers modifiers)
{
    if (timeline().event.empty())
        return;
    const double first = timeline().event.front(), last = timeline().event.back();
    const double step =
        modifiers & Qt::ShiftModifier ? std::max(1.0, std::round((last - first) / 100)) : 1;
    switch (key) {
    case Qt::Key_Left:
        return moveCursor(cursor() - step);
    case Qt::Key_Right:
        return moveCursor(cursor() + step);
    case Qt::Key_Home:
        return moveCursor(first);
    case Qt::Key_End:
        return moveCursor(last);
    case Qt::Key_P:
        return moveCursor(timeline().peak);
    default:
        return;
    }
}

void MemoryGuide::askMoment()
{
    if (auto* picture = qobject_cast<MomentPicture*>(m_picture))
        picture->setPending(true);
    m_finder.request(m_device, m_parameters, std::size_t(cursor()));
}

void MemoryGuide::showStep(const MemoryMoment& moment, const std::shared_ptr<const StepBlocks>& step)
{
    if (auto* picture = qobject_cast<MomentPicture*>(m_picture))
        picture->setStep(step);
    showMoment(moment);
}

void MemoryGuide::showMoment(const MemoryMoment& moment)
{
    if (auto* picture = qobject_cast<MomentPicture*>(m_picture)) {
        picture->setByteStyle(m_bytes);
        picture->setMoment(moment, moment.event >= 0 && moment.event == timeline().peak);
    } else if (m_cursor >= 0) {
        QStringList largest;
        for (std::size_t i = 0; i < std::min<std::size_t>(moment.live.size(), 4); ++i)
            largest << placeText({}, moment.live[i].module, moment.live[i].name) + u' '
                    + memoryText(moment.live[i].bytes, m_bytes);
        m_plot->setHoverText(tr("Event %1, %2: %3 alive. Largest: %4")
                                 .arg(moment.event)
                                 .arg(placeText(moment.phase, moment.module, moment.name),
                                      memoryText(moment.allocated, m_bytes),
                                      largest.join(QStringLiteral(", "))));
    }
}

void MemoryGuide::searchFit(bool on)
{
    auto* budget = qobject_cast<BudgetPicture*>(m_picture);
    if (budget == nullptr)
        return;
    if (!on) {
        m_searching.reset();
        return;
    }
    m_searching = m_parameters;
    budget->setFit(std::nullopt, true);
    m_fit.request(m_experiment.id(), m_device, withAdvice(m_parameters, "fit"));
}

void MemoryGuide::endFit(std::optional<FitAnswer> answer)
{
    m_searching.reset();
    if (auto* budget = qobject_cast<BudgetPicture*>(m_picture))
        budget->setFit(std::move(answer), false);
}

bool MemoryGuide::eventFilter(QObject* watched, QEvent* event)
{
    if (event->type() == QEvent::KeyPress) {
        const auto* key = static_cast<QKeyEvent*>(event);
        if (isCursorKey(key->key())
            && !(key->modifiers() & (Qt::ControlModifier | Qt::AltModifier))) {
            cursorKey(key->key(), key->modifiers());
            return true;
        }
    }
    return QObject::eventFilter(watched, event);
}

} // namespace memscape
