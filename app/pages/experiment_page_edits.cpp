// SPDX-License-Identifier: GPL-3.0-or-later
// What people do to an experiment's page: edits of parameters from the form, the picture, the plot and
// the command line, and which of them are one step of the history.
#include "app/pages/experiment_page.h"

#include "app/pages/fields/slider_stops.h"
#include "app/pages/fields/text_field.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

constexpr int keyRepeatWindow = 600; ///< ms within which edits of one parameter are one undo step

} // namespace

Result<void> ExperimentPage::setText(const QString& key, const QString& text)
{
    const ParameterSpec* spec = findParameter(m_experiment.schema(), key.toStdString());
    if (spec == nullptr)
        return fail("parameter.unknown", "no parameter \"" + key.toStdString() + "\"");
    auto values = parseSweep(*spec, text.toStdString());
    if (!values)
        return fail(values.error());
    StudyDocument& document = m_services.document;
    if (values->size() > 1) {
        document.setSweep(m_id, Sweep{spec->key, std::move(*values)});
        return {};
    }
    Parameters now = document.parameters(m_id);
    if (now.sweep() && now.sweep()->key == spec->key) {
        now.setSweep(std::nullopt);
        now.set(spec->key, values->front());
        document.setParameters(m_id, now, tr("End sweep"));
        return {};
    }
    MEMSCAPE_TRY(next, changedWithImplied(m_experiment, now, spec->key, text.toStdString()));
    document.setParameter(m_id, spec->key, next, gestureFor(key));
    return {};
}

void ExperimentPage::proposeText(const QString& key, const QString& text)
{
    auto* field = qobject_cast<TextField*>(m_inspector->form()->field(key));
    if (field != nullptr)
        field->propose(text);
}

Result<void> ExperimentPage::setTexts(const ParameterChanges& changes, const QString& step)
{
    Parameters next = parameters();
    for (const auto& [key, text] : changes) {
        const ParameterSpec* spec = findParameter(m_experiment.schema(), key);
        if (spec == nullptr)
            return fail("parameter.unknown", "no parameter \"" + key + "\"");
        MEMSCAPE_TRY(value, parseValue(*spec, text));
        if (next.sweep() && next.sweep()->key == key)
            next.setSweep(std::nullopt);
        next.set(key, value);
    }
    m_services.document.setParameters(m_id, next, step);
    return {};
}

void ExperimentPage::editText(const QString& key, const QString& text)
{
    // What a field or a picture reports parses; were it not so, the field shows why.
    static_cast<void>(setText(key, text));
}

void ExperimentPage::setEditing(bool active)
{
    m_dragging = active;
    m_gesture = active ? m_services.document.newGesture() : 0;
    m_gestureKey.clear();
}

int ExperimentPage::gestureFor(const QString& key)
{
    if (!m_dragging) {
        const bool goesOn =
            m_gesture != 0 && key == m_gestureKey && m_lastEdit.isValid() && m_lastEdit.elapsed() < keyRepeatWindow;
        if (!goesOn)
            m_gesture = m_services.document.newGesture();
    }
    m_gestureKey = key;
    m_lastEdit.start();
    return m_gesture;
}

void ExperimentPage::markerMoved(const QString& key, double x)
{
    if (m_extension->moveMarker(key, x))
        return;
    if (const QString text = m_extension->markerText(key, x); !text.isEmpty()) {
        if (!m_dragging)
            setEditing(true);
        return editText(key, text);
    }
    const ParameterSpec* spec = findParameter(m_experiment.schema(), key.toStdString());
    const SeriesAxis* shownAxis = currentAxis();
    if (spec == nullptr || shownAxis == nullptr)
        return;
    if (!m_dragging)
        setEditing(true);
    const SeriesAxis axis = *shownAxis; // an edit may bring another prediction
    if (spec->kind == ParameterKind::Choice) {
        const int last = int(spec->choices.size()) - 1;
        const int index = std::clamp(int(std::lround(x)), 0, std::min(last, int(axis.names.size()) - 1));
        for (const ChoiceValue& choice : spec->choices) {
            if (choice.label == axis.names[std::size_t(index)] || choice.key == axis.names[std::size_t(index)])
                editText(key, QString::fromStdString(choice.key));
        }
        return;
    }
    if (spec->kind == ParameterKind::Text) {
        if (!axis.names.empty()) {
            const int index = std::clamp(int(std::lround(x)), 0, int(axis.names.size()) - 1);
            editText(key, QString::fromStdString(axis.names[std::size_t(index)]));
        }
        return;
    }
    const std::vector<double> stops = sliderStops(*spec);
    const double value = stops[std::size_t(nearestStop(stops, x))];
    editText(key, QString::fromStdString(numberText(value)));
}

void ExperimentPage::chooseLog(Qt::Axis axis, bool on)
{
    const std::string which = axis == Qt::XAxis ? "logX." : "logY.";
    std::string group;
    if (m_prediction)
        group = currentGroup(seriesGroups(*m_prediction->predicted)).key.toStdString();
    m_services.document.setViewSetting(m_id, which + group, Json(on));
}

} // namespace memscape
