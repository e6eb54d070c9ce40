// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/labs/curve_board.h"

#include "app/pages/cards/card.h"
#include "app/plots/ticks.h"
#include "app/settings/words.h"

#include <QKeyEvent>
#include <QLabel>
#include <QVBoxLayout>

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

/// Four to six decades in which the quantities of this program lie.
std::pair<double, double> wideRange(Unit unit)
{
    switch (unit) {
    case Unit::Second: return {1e-10, 1e-5};
    case Unit::Byte: return {1.0 * (1 << 10), 1e12};
    case Unit::BytePerSecond: return {1e8, 1e13};
    case Unit::FlopPerSecond: return {1e8, 1e15};
    case Unit::Hertz: return {1e6, 1e10};
    case Unit::One: break;
    }
    return {1e-2, 1e4};
}

} // namespace

CurveBoard::CurveBoard(QWidget* parent)
    : QWidget(parent)
    , m_plot(new PlotView(this))
    , m_note(toneLabel({}, "dim", this))
    , m_status(toneLabel({}, "dim", this))
{
    m_note->setContentsMargins(20, 12, 20, 0);
    m_status->setObjectName(QStringLiteral("statusLine"));
    m_status->setContentsMargins(20, 0, 20, 6);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(4);
    column->addWidget(m_note);
    column->addWidget(m_plot, 1);
    column->addWidget(m_status);
    m_plot->setObjectName(QStringLiteral("curveBoard"));
    m_plot->setPen(true);
    m_plot->setEmptyText(tr("Draw here: press and drag from left to right."));
    m_plot->installEventFilter(this);
    connect(m_plot, &PlotView::penMoved, this, &CurveBoard::stroke);
    connect(m_plot, &PlotView::penLifted, this, [this] { emit drawn(values()); });
    setFocusProxy(m_plot);
}

void CurveBoard::setQuestion(const LabQuestion& question, const std::vector<LabValue>& x)
{
    std::vector<double> asked;
    for (const LabValue& one : x)
        asked.push_back(one.isWord() ? double(asked.size()) : one.number());
    const bool isSame = m_question && m_question->key == question.key && m_drawing.asked() == asked;
    if (isSame || asked.empty() || std::ranges::any_of(asked, [](double one) { return !std::isfinite(one); }))
        return;
    m_question = question;
    m_drawing = CurveDrawing(asked);
    m_point = 0;
    m_predicted.reset();
    m_measured.reset();
    AxisSpec& across = m_across = {};
    AxisSpec& up = m_up = {};
    across.label = toQString(question.xLabel);
    across.unit = unitFromText(question.xUnit).value_or(Unit::One);
    across.log = !m_drawing.isLogX() ? 0 : across.unit == Unit::Byte ? 2 : 10;
    if (x.front().isWord())
        for (const LabValue& one : x)
            across.names << toQString(one.word());
    const double low = m_drawing.x().front(), high = m_drawing.x().back();
    if (across.log)
        across.range = {low / std::pow(high / low, 0.03), high * std::pow(high / low, 0.03)};
    up.label = toQString(question.yLabel);
    up.unit = question.unit;
    up.log = 10;
    up.range = wideRange(question.unit);
    m_plot->setAxes(across, up);
    const QString title = tr("%1 by %2").arg(up.label, across.label);
    m_plot->setTitle(capitalized(title));
    std::vector<Band> places;
    for (const double one : asked)
        places.push_back({one, one, {}});
    m_plot->setBands(places);
    refresh();
}

void CurveBoard::setValues(const std::vector<double>& y)
{
    const std::vector<double> now = m_drawing.values();
    const bool isSame = std::equal(now.begin(), now.end(), y.begin(), y.end(), [](double a, double b) {
        return (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= 1e-9 * std::abs(b);
    });
    if (isSame)
        return; // the strokes between the points stay
    m_drawing.setValues(y);
    refresh();
}

void CurveBoard::setLocked(bool locked)
{
    m_isLocked = locked;
    m_plot->setPen(!locked);
    refresh();
}

void CurveBoard::setOthers(const std::optional<Series>& predicted, const std::optional<Series>& measured)
{
    m_predicted = predicted;
    m_measured = measured;
    AxisSpec up = m_up;
    if (m_measured)
        up.range.reset(); // nothing is told any more
    m_plot->setAxes(m_across, up);
    refresh();
}

void CurveBoard::setNote(const QString& text)
{
    m_note->setText(text);
    m_note->setVisible(!text.isEmpty());
}

QString CurveBoard::note() const
{
    return m_note->text();
}

void CurveBoard::stroke(QPointF from, QPointF to)
{
    m_drawing.stroke(from.x(), from.y(), to.x(), to.y());
    refresh();
}

/// Indices of the points that count, from the left.
std::vector<std::size_t> CurveBoard::inOrder() const
{
    std::vector<std::size_t> order(m_drawing.asked().size());
    for (std::size_t i = 0; i < order.size(); ++i)
        order[i] = i;
    std::ranges::sort(order, [&](std::size_t a, std::size_t b) { return m_drawing.asked()[a] < m_drawing.asked()[b]; });
    return order;
}

bool CurveBoard::key(int key, bool fine)
{
    const auto order = inOrder();
    if (m_isLocked || order.empty())
        return false;
    if (key == Qt::Key_Left || key == Qt::Key_Right) {
        m_point = key == Qt::Key_Left ? (m_point > 0 ? m_point - 1 : 0) : std::min(m_point + 1, order.size() - 1);
        refresh();
        return true;
    }
    if (key != Qt::Key_Up && key != Qt::Key_Down)
        return false;
    const PlotRange range = m_plot->range();
    double y = m_drawing.values()[order[m_point]];
    if (!std::isfinite(y)) { // beside its neighbour, or in the middle
        const auto all = m_drawing.values();
        y = m_point > 0 ? all[order[m_point - 1]] : nan;
        if (!std::isfinite(y))
            y = std::sqrt(range.yLow * range.yHigh);
    } else {
        y *= std::pow(range.yHigh / range.yLow, (key == Qt::Key_Up ? 1 : -1) * (fine ? 0.002 : 0.02));
    }
    m_drawing.setValue(order[m_point], y);
    refresh();
    emit drawn(values());
    return true;
}

bool CurveBoard::eventFilter(QObject* watched, QEvent* event)
{
    if (watched == m_plot && event->type() == QEvent::KeyPress) {
        const auto* pressed = static_cast<QKeyEvent*>(event);
        const bool isPlain = !(pressed->modifiers() & (Qt::ControlModifier | Qt::AltModifier | Qt::MetaModifier));
        if (isPlain && key(pressed->key(), pressed->modifiers() & Qt::ShiftModifier))
            return true;
    }
    return QWidget::eventFilter(watched, event);
}

void CurveBoard::refresh()
{
    if (!m_question)
        return;
    std::vector<Curve> curves;
    const auto add = [&](const std::optional<Series>& series, CurveRole role, const QString& name) {
        if (!series)
            return;
        Curve curve;
        curve.key = name;
        curve.name = name;
        curve.role = role;
        curve.x = series->x.values;
        curve.y = series->y;
        curve.low = series->low;
        curve.high = series->high;
        curves.push_back(std::move(curve));
    };
    add(m_predicted, CurveRole::Predicted, tr("predicted"));
    add(m_measured, CurveRole::Measured, tr("measured"));
    const std::vector<double> y = values();
    const auto take = [](Curve& curve, const std::vector<double>& xs, const std::vector<double>& ys) {
        for (std::size_t i = 0; i < xs.size(); ++i)
            if (std::isfinite(ys[i])) {
                curve.x.push_back(xs[i]);
                curve.y.push_back(ys[i]);
            }
    };
    Curve line;
    line.key = QStringLiteral("line");
    line.name = m_isLocked ? tr("yours (locked)") : tr("yours");
    line.role = CurveRole::Drawn;
    Curve points = line;
    points.key = QStringLiteral("points");
    points.listed = false;
    take(line, m_drawing.x(), m_drawing.y());
    take(points, m_drawing.asked(), y);
    curves.push_back(std::move(line));
    curves.push_back(std::move(points));
    m_plot->setCurves(std::move(curves));
    const auto order = inOrder();
    const std::size_t current = order[std::min(m_point, order.size() - 1)];
    const double x = m_drawing.asked()[current];
    m_plot->setMarkers(
        m_isLocked ? std::vector<Marker>()
                   : std::vector<Marker>{{QStringLiteral("point"), x, axisValueText(m_plot->xAxis(), x), false}});
    QStringList texts, missing;
    for (const std::size_t i : order) {
        const QString at = axisValueText(m_plot->xAxis(), m_drawing.asked()[i]);
        if (std::isfinite(y[i]))
            texts << tr("%1 at %2").arg(axisValueText(m_plot->yAxis(), y[i]), at);
        else
            missing << at;
    }
    if (!missing.isEmpty())
        texts << tr("not drawn at %1").arg(missing.join(QStringLiteral(", ")));
    m_status->setText((m_isLocked ? tr("Yours: %1") : tr("Drag to draw; ← → choose a point, ↑ ↓ move it. %1."))
                          .arg(capitalized(texts.join(QStringLiteral(" · ")))));
}

} // namespace memscape
