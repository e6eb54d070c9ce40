// SPDX-License-Identifier: GPL-3.0-or-later
// What the picture shows and what a hand does to it.
#include "app/pictures/precision/precision_picture.h"

#include "app/pictures/common/json_values.h"
#include "app/plots/plot_style.h"
#include "core/experiment/outcome.h"

#include <QKeyEvent>
#include <QMouseEvent>

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

/// A measured histogram out of a record; nothing when it holds none.
std::optional<MagnitudeHistogram> histogramFrom(const Measurement* measured)
{
    if (measured == nullptr)
        return {};
    const Json& json = member(measured->detail, "histogram");
    const Json& shares = member(json, "shares");
    if (!shares.is_array() || shares.empty() || shares.size() > 4096)
        return {};
    // std::fmin takes the known one of a number and a not-a-number.
    const double first = std::fmax(-2000, std::fmin(2000, number(json, "first", histogramFirst)));
    return MagnitudeHistogram{int(first), numbers(shares, 0), number(json, "zeros", 0)};
}

QString valueWords(double value)
{
    return QString::number(value, 'g', 8);
}

} // namespace

PrecisionPicture::PrecisionPicture(QWidget* parent)
    : Picture({310, 230}, parent)
{
    setAccessibleName(tr("Bits of a value, and gradients over the range of a format"));
}

void PrecisionPicture::read(const PictureValues& values)
{
    m_asked = precisionCase(values.parameters);
    m_assumed = histogramOf(m_asked.gradients, histogramFirst, histogramBars);
    m_measured = histogramFrom(values.measured);
}

QString PrecisionPicture::title() const
{
    return tr("%1 in each format").arg(valueWords(m_asked.value));
}

LostShares PrecisionPicture::lost() const
{
    const NumberFormat& format = numberFormat(m_asked.format);
    return m_measured ? lostShares(format, *m_measured, m_asked.lossScale)
                      : lostShares(format, m_asked.gradients, m_asked.lossScale);
}

QString PrecisionPicture::lostText() const
{
    const LostShares shares = lost();
    const auto text = [](double share) {
        if (share < 5e-5)
            return share > 0 ? QStringLiteral("< 0.01 %") : QStringLiteral("0 %");
        return QString::fromStdString(percentText(share, 3));
    };
    return tr("%1 become zero · %2 keep fewer bits · %3 overflow")
        .arg(text(shares.underflow), text(shares.subnormal), text(shares.overflow));
}

QString PrecisionPicture::summary() const
{
    const NumberFormat& format = numberFormat(m_asked.format);
    return tr("%1 stores %2 as %3. %4 gradients times %5: %6.")
        .arg(QString::fromUtf8(format.label.data(), qsizetype(format.label.size())), valueWords(m_asked.value),
             QString::fromStdString(numberText(rounded(format, m_asked.value))),
             m_measured ? tr("Measured") : tr("Assumed"), QString::fromStdString(numberText(m_asked.lossScale)),
             lostText());
}

void PrecisionPicture::setValue(double value)
{
    if (std::isfinite(value) && value != m_asked.value)
        emit parameterEdited(QStringLiteral("value"), QString::fromStdString(numberText(value)));
}

void PrecisionPicture::setScale(double scale)
{
    scale = std::clamp(scale, 1.0, 0x1p40);
    if (scale != m_asked.lossScale)
        emit parameterEdited(QStringLiteral("loss_scale"), QString::fromStdString(numberText(scale)));
}

void PrecisionPicture::drag(const QPointF& at, const PrecisionLayout& layout)
{
    if (m_handle == Handle::Value) {
        // Four digits: what a hand can mean.
        const double magnitude = std::exp2(layout.lineAt(at.x()));
        const double step = std::pow(10, std::floor(std::log10(magnitude)) - 3);
        setValue(std::copysign(std::round(magnitude / step) * step, m_asked.value));
    } else {
        setScale(std::exp2(std::round(layout.barsAt(at.x()) + m_grip))); // powers of two, as scalers
    }
}

void PrecisionPicture::mousePressEvent(QMouseEvent* event)
{
    const PrecisionLayout layout = layoutPrecision(QRectF(rect()), plotUnit());
    const QPointF at = event->position();
    if (event->button() != Qt::LeftButton)
        return;
    if (layout.line.contains(at) || layout.bars.contains(at)) {
        m_handle = layout.line.contains(at) ? Handle::Value : Handle::Scale;
        m_grip = std::log2(m_asked.lossScale) - layout.barsAt(at.x());
        hold();
        return drag(at, layout);
    }
    for (const FormatRow& row : layout.rows) {
        const NumberFormat& format = numberFormat(row.format);
        for (const BitCell& cell : row.cells) {
            if (cell.bit >= 0 && cell.rect.contains(at))
                return setValue(decode(format, encode(format, m_asked.value) ^ std::uint64_t(1) << cell.bit));
        }
        if (row.label.contains(at))
            return emit parameterEdited(QStringLiteral("format"),
                                        QString::fromUtf8(format.key.data(), qsizetype(format.key.size())));
    }
}

QString PrecisionPicture::toolTipAt(QPointF at) const
{
    const PrecisionLayout layout = layoutPrecision(QRectF(rect()), plotUnit());
    if (layout.line.contains(at))
        return tr("drag along the line to change the value");
    for (const FormatRow& row : layout.rows) {
        if (!row.area.contains(at))
            continue;
        const NumberFormat& format = numberFormat(row.format);
        return tr("%1: from %2 to %3, steps of %4 near the value; a click on a bit turns it")
            .arg(QString::fromUtf8(format.label.data(), qsizetype(format.label.size())))
            .arg(format.smallestSubnormal(), 0, 'g', 3)
            .arg(format.largest(), 0, 'g', 6)
            .arg(format.spacing(m_asked.value), 0, 'g', 3);
    }
    if (!layout.bars.contains(at))
        return {};
    const int bar = int(std::floor(layout.barsAt(at.x()) - std::log2(m_asked.lossScale)));
    const auto index = std::size_t(std::max(0, bar - shown().first));
    const double share = index < shown().shares.size() ? shown().shares[index] : 0;
    return tr("gradients of 2^%1 to 2^%2: %3; drag to move the loss scale")
        .arg(bar)
        .arg(bar + 1)
        .arg(QString::fromStdString(percentText(share, 3)));
}

void PrecisionPicture::mouseMoveEvent(QMouseEvent* event)
{
    const PrecisionLayout layout = layoutPrecision(QRectF(rect()), plotUnit());
    if (isHeld())
        return drag(event->position(), layout);
    const QPointF at = event->position();
    const bool isHandle = layout.line.contains(at) || layout.bars.contains(at);
    setCursor(isHandle ? Qt::SizeHorCursor : Qt::ArrowCursor);
    tell(*event);
}

void PrecisionPicture::keyPressEvent(QKeyEvent* event)
{
    const NumberFormat& format = numberFormat(m_asked.format);
    const double step = format.spacing(m_asked.value);
    switch (event->key()) {
    case Qt::Key_Left: return setValue(rounded(format, m_asked.value) - step);
    case Qt::Key_Right: return setValue(rounded(format, m_asked.value) + step);
    case Qt::Key_Up: return setScale(m_asked.lossScale * 2);
    case Qt::Key_Down: return setScale(m_asked.lossScale / 2);
    default: Picture::keyPressEvent(event);
    }
}

} // namespace memscape
