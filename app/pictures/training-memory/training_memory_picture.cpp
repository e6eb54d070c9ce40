// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pictures/training-memory/training_memory_picture.h"

#include "app/plots/plot_style.h"
#include "app/settings/words.h"
#include "core/base/number.h"
#include "core/experiment/experiment.h"

#include <QPainter>

#include <algorithm>

namespace memscape {

namespace {

/// What a person calls the value of a parameter; empty when there is no such parameter.
QString valueOf(const Schema& schema, const Parameters& parameters, const char* key)
{
    const ParameterSpec* spec = findParameter(schema, key);
    if (spec == nullptr)
        return {};
    for (const auto& [name, value] : parameters.values()) {
        if (name == key)
            return toQString(valueLabel(*spec, value));
    }
    return {};
}

bool readsText(const QString& family)
{
    return family.isEmpty() || family.contains(QStringLiteral("coder"));
}

/// "QLoRA", "ZeRO 3", "8 GPUs": what a plan adds to one device that trains every weight.
QStringList planOf(const Schema& schema, const Parameters& parameters)
{
    QStringList parts;
    if (parameters.has("adapter") && parameters.choice("adapter") != "none")
        parts << valueOf(schema, parameters, "adapter");
    double gpus = 1;
    for (const char* key : {"data_parallel", "tensor_parallel", "context_parallel", "pipeline_parallel"})
        gpus *= parameters.has(key) ? parameters.number(key) : 1;
    if (gpus <= 1)
        return parts;
    if (parameters.has("zero") && parameters.number("zero") > 0)
        parts << TrainingMemoryPicture::tr("ZeRO %1").arg(parameters.number("zero"));
    return parts << TrainingMemoryPicture::tr("%1 GPUs").arg(gpus, 0, 'f', 0);
}

QString titleOf(const MemoryState& memory, const Schema& schema, const Parameters& parameters)
{
    QStringList parts;
    QString model = memory.model.isEmpty() ? valueOf(schema, parameters, "model") : memory.model;
    if (model.contains(u'/')) // a path: the folder says more than config.json
        model = model.section(u'/', -2);
    parts << model;
    if (const QString batch = valueOf(schema, parameters, "batch"); !batch.isEmpty())
        parts << TrainingMemoryPicture::tr("batch %1").arg(batch);
    const char* length = findParameter(schema, "context") ? "context" : "sequence";
    if (readsText(memory.family))
        parts << valueOf(schema, parameters, length);
    for (const char* key : {"optimizer", "weight_precision", "precision"})
        parts << valueOf(schema, parameters, key);
    parts += planOf(schema, parameters);
    parts.removeAll(QString());
    return parts.join(QStringLiteral(" · "));
}

bool holds(const Schema& schema, const Parameters& parameters, const ParameterChanges& changes)
{
    return std::ranges::all_of(changes, [&](const auto& change) {
        const ParameterSpec* spec = findParameter(schema, change.first);
        if (spec == nullptr)
            return false;
        const auto wanted = parseValue(*spec, change.second);
        return wanted && std::ranges::any_of(parameters.values(), [&](const auto& now) {
                   return now.first == change.first && now.second == *wanted;
               });
    });
}

/// The texts of these parameters, or of all but these.
ParameterChanges textsOf(const Parameters& parameters, const ParameterChanges& of, bool those)
{
    ParameterChanges texts;
    for (const auto& [key, value] : parameters.values()) {
        const bool among = std::ranges::any_of(of, [&, name = key](const auto& one) { return one.first == name; });
        if (among == those)
            texts.emplace_back(key, valueText(value));
    }
    return texts;
}

/// What the longest context and the largest batch are that fit; empty where that is not asked.
QString reachOf(const Prediction& predicted, double positions, const Parameters& parameters)
{
    const Figure* context = findFigure(predicted.figures, "largest_context");
    const Figure* batch = findFigure(predicted.figures, "largest_batch");
    if (!batch || !batch->isNumber() || !parameters.has("context"))
        return {};
    const auto count = [](double value) { return QString::fromStdString(countText(value)); };
    if (!context && !(batch->number() > 0))
        return TrainingMemoryPicture::tr("No batch fits.");
    if (!context) {
        const Figure* const state = findFigure(predicted.figures, "kv_cache");
        const QString fits = TrainingMemoryPicture::tr("Up to batch %1 fits").arg(count(batch->number()));
        return fits + (state && state->number() > 0 ? TrainingMemoryPicture::tr(", however long the context.") : ".");
    }
    if (!context->isNumber())
        return {};
    const QString now = count(parameters.number("batch")), tokens = count(parameters.number("context"));
    const Figure* fits = findFigure(predicted.figures, "fits");
    const bool endsTheModel = fits && fits->isNumber() && fits->number() > 0
        && context->number() < parameters.number("context"); // more would fit than it has positions
    const QString first = endsTheModel
        ? TrainingMemoryPicture::tr("The model has %1 positions").arg(count(context->number()))
        : context->number() > 0 && context->number() == positions
        ? TrainingMemoryPicture::tr("At batch %1 all %2 positions of the model fit").arg(now, count(context->number()))
        : context->number() > 0
        ? TrainingMemoryPicture::tr("At batch %1 up to %2 tokens fit").arg(now, count(context->number()))
        : TrainingMemoryPicture::tr("At batch %1 no context fits").arg(now);
    return batch->number() > 0
        ? TrainingMemoryPicture::tr("%1, at %2 tokens up to batch %3.").arg(first, tokens, count(batch->number()))
        : TrainingMemoryPicture::tr("%1, at %2 tokens no batch does.").arg(first, tokens);
}

} // namespace

TrainingMemoryPicture::TrainingMemoryPicture(QWidget* parent, bool advises)
    : Picture(advises ? PictureSize{256, 206} : PictureSize{134, 132}, parent)
{
    m_state.advises = advises;
    setAccessibleName(tr("Memory budget"));
}

void TrainingMemoryPicture::read(const PictureValues& values)
{
    m_schema = &values.experiment.schema();
    m_state.advises = findParameter(*m_schema, "advice") != nullptr;
    if (m_state.view == TrainingMemoryView::Fit && !(values.parameters == m_parameters)) {
        m_state.view = TrainingMemoryView::Levers; // the answer was for other parameters
        m_state.memory.fit.reset();
    }
    m_parameters = values.parameters;
    if (values.predicted) {
        MemoryState next = readMemoryState(values.predicted->detail);
        if (!m_state.settled)
            next.levers = std::move(m_state.memory.levers);
        next.fit = std::move(m_state.memory.fit);
        m_state.memory = std::move(next);
    } else {
        m_state.memory = {};
    }
    m_state.isFilling = false;
    m_state.title = titleOf(m_state.memory, *m_schema, values.parameters);
    m_state.reach =
        values.predicted ? reachOf(*values.predicted, m_state.memory.positions, values.parameters) : QString();
    refreshApplied();
    m_state.firstCard =
        std::clamp(m_state.firstCard, 0, std::max(0, int(m_state.memory.levers.size() + m_state.applied.size()) - 1));
}

void TrainingMemoryPicture::addLever(const Json& lever)
{
    std::vector<LeverCard>& levers = m_state.memory.levers;
    if (!std::exchange(m_state.isFilling, true))
        levers.clear();
    LeverCard card = readLever(lever);
    const auto isBefore = [](double saving, const LeverCard& other) { return saving > other.saving; };
    levers.insert(std::upper_bound(levers.begin(), levers.end(), card.saving, isBefore), std::move(card));
    setAccessibleDescription(summary());
    update();
}

void TrainingMemoryPicture::setSettled(bool settled)
{
    m_state.isFilling = false;
    if (std::exchange(m_state.settled, settled) != settled)
        update();
}

void TrainingMemoryPicture::setFit(std::optional<FitAnswer> answer, bool searching)
{
    m_state.view = searching ? TrainingMemoryView::Searching
        : answer             ? TrainingMemoryView::Fit
                             : TrainingMemoryView::Levers;
    m_state.memory.fit = std::move(answer);
    m_state.firstCard = 0;
    m_current = 0;
    setAccessibleDescription(summary());
    update();
}

void TrainingMemoryPicture::refreshApplied()
{
    m_state.applied.clear();
    for (const AppliedLever& lever : m_made) {
        if (!holds(*m_schema, m_parameters, lever.card.changes))
            continue;
        m_state.applied.push_back(lever);
        m_state.applied.back().savingHolds = textsOf(m_parameters, lever.card.changes, false) == lever.others;
    }
}

TrainingMemoryState TrainingMemoryPicture::state() const
{
    TrainingMemoryState state = m_state;
    state.bytes = byteStyle();
    return state;
}

TrainingMemoryLayout TrainingMemoryPicture::layoutNow() const
{
    return layoutTrainingMemory(state(), QRectF(rect()));
}

QString TrainingMemoryPicture::title() const
{
    return m_state.title;
}

QString TrainingMemoryPicture::summary() const
{
    const TrainingMemoryState state = this->state();
    if (state.memory.empty() && !problem().isEmpty())
        return state.title + QStringLiteral(": ") + problem();
    QStringList parts;
    for (const MemoryPart& part : state.memory.parts)
        parts << part.label + u' ' + memoryText(part.bytes, state.bytes);
    QString text = state.title + QStringLiteral(": ") + parts.join(QStringLiteral(", ")) + QStringLiteral(". ")
        + neededText(state.memory, state.bytes) + QStringLiteral(". ");
    const auto& cards =
        state.view == TrainingMemoryView::Fit && state.memory.fit ? state.memory.fit->cards() : state.memory.levers;
    QStringList levers;
    for (std::size_t i = 0; i < std::min<std::size_t>(cards.size(), 6); ++i)
        levers << tr("%1 saves %2, %3")
                      .arg(cards[i].label, memoryText(cards[i].saving, state.bytes),
                           timeChangeText(cards[i].timeChange));
    return text + levers.join(QStringLiteral("; "));
}

void TrainingMemoryPicture::apply(const LeverCard& card)
{
    AppliedLever made{card, textsOf(m_parameters, card.changes, true), textsOf(m_parameters, card.changes, false),
                      true};
    std::erase_if(m_made, [&](const AppliedLever& one) { return one.card.changes == card.changes; });
    m_made.push_back(made);
    m_state.firstCard = 0;
    emit changesWanted(made.card.changes, made.card.label);
}

void TrainingMemoryPicture::takeBack(const AppliedLever& lever)
{
    const AppliedLever own = lever; // the list may change while the parameters do
    emit changesWanted(own.before, tr("Take back: %1").arg(own.card.label));
}

void TrainingMemoryPicture::showPage(int first)
{
    m_state.firstCard = std::max(0, first);
    update();
}

void TrainingMemoryPicture::activate(const MemoryButton& button)
{
    const TrainingMemoryState now = state();
    const TrainingMemoryLayout layout = layoutNow();
    const int shown = int(
        std::ranges::count_if(layout.buttons, [&](const MemoryButton& one) { return cardOf(now, one) != nullptr; }));
    switch (button.item) {
    case MemoryItem::Card:
        if (const LeverCard* card = cardOf(now, button))
            apply(*card);
        break;
    case MemoryItem::Applied:
        if (std::size_t(button.index) < now.applied.size())
            takeBack(now.applied[std::size_t(button.index)]);
        break;
    case MemoryItem::MakeItFit: emit fitWanted(true); break;
    case MemoryItem::Cancel:
    case MemoryItem::Back:
        emit fitWanted(false);
        setFit(std::nullopt, false);
        break;
    case MemoryItem::BatchSize:
        emit experimentWanted(QStringLiteral("batch-size"), batchChanges(), tr("Batch size of this model"));
        break;
    case MemoryItem::Previous: showPage(m_state.firstCard - std::max(1, shown)); break;
    case MemoryItem::Next: showPage(m_state.firstCard + std::max(1, shown)); break;
    }
}

/// The parameters that the experiment has too, all of the model's and the plan's.
ParameterChanges TrainingMemoryPicture::batchChanges() const
{
    ParameterChanges changes;
    const auto other = findExperiment("batch-size");
    for (const auto& [key, value] : m_parameters.values()) {
        if (other && findParameter((*other)->schema(), key))
            changes.emplace_back(key, valueText(value));
    }
    return changes;
}

void TrainingMemoryPicture::draw(QPainter& painter, const QRectF& rect, const Theme& theme, bool isScreen) const
{
    painter.setRenderHint(QPainter::Antialiasing);
    const TrainingMemoryState now = state();
    const TrainingMemoryLayout layout = layoutTrainingMemory(now, rect);
    const MemoryPen pen{painter,
                        now,
                        layout,
                        theme,
                        isScreen && hasFocus() && m_isByKeys ? m_current : -1,
                        isScreen ? m_pointer : QPointF(-1, -1),
                        isScreen};
    pen.bar();
    if (!now.memory.empty()) {
        pen.totals();
        pen.ranks();
        pen.heading();
        pen.buttons();
    } else {
        paintProblem(painter, rect, theme);
    }
}

} // namespace memscape
