// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/fields/number_field.h"

#include "app/pages/fields/quiet_widgets.h"
#include "app/pages/fields/slider_stops.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QSignalBlocker>

#include <algorithm>

namespace memscape {

NumberField::NumberField(const ParameterSpec& spec, QWidget* parent)
    : ParameterField(spec, parent)
    , m_stops(sliderStops(spec))
    , m_edit(new QLineEdit(this))
    , m_slider(new QuietSlider(Qt::Horizontal, this))
{
    const QString name = QString::fromStdString(spec.label);
    m_edit->setObjectName(QStringLiteral("value"));
    m_edit->setProperty("role", "value");
    m_edit->setAlignment(Qt::AlignRight);
    m_edit->setAccessibleName(tr("%1, value").arg(name));
    m_edit->setAccessibleDescription(QString::fromStdString(spec.help));
    m_edit->installEventFilter(this);
    label()->setBuddy(m_edit);
    connect(m_edit, &QLineEdit::editingFinished, this, &NumberField::commit);

    auto* row = new QHBoxLayout;
    row->setSpacing(8);
    row->addWidget(label());
    row->addWidget(m_edit, 1);
    column()->insertLayout(0, row);
    buildSlider();
}

void NumberField::buildSlider()
{
    m_slider->setObjectName(QStringLiteral("slider"));
    m_slider->setAccessibleName(QString::fromStdString(spec().label));
    m_slider->valueAt = [this](int position) { return m_stops[std::size_t(position)]; };
    m_slider->setRange(0, int(m_stops.size()) - 1);
    m_slider->setSingleStep(1);
    m_slider->setPageStep(spec().scale == Scale::Log2 ? 4 : std::max(1, int(m_stops.size()) / 10));
    describeSlider();
    connect(m_slider, &QSlider::valueChanged, this, &NumberField::sliderMoved);
    connect(m_slider, &QSlider::sliderPressed, this, [this] { emit editing(true); });
    connect(m_slider, &QSlider::sliderReleased, this, [this] { emit editing(false); });
    column()->insertWidget(1, m_slider);
}

void NumberField::display(const ParameterValue& value, const std::optional<Sweep>& sweep)
{
    const bool own = sweep && sweep->key == spec().key;
    m_sweep = own ? sweep : std::nullopt;
    m_value = std::holds_alternative<double>(value) ? std::get<double>(value) : 0;
    const QSignalBlocker quiet(m_slider);
    m_slider->setValue(nearestStop(m_stops, m_value));
    describeSlider();
    clearError();
    showText();
}

void NumberField::setZeroText(const QString& text)
{
    if (std::exchange(m_zeroText, text) != text && errorText().isEmpty())
        showText();
}

bool NumberField::eventFilter(QObject* watched, QEvent* event)
{
    if (watched == m_edit && event->type() == QEvent::FocusIn && errorText().isEmpty()) {
        m_edit->setText(editingText());
        QMetaObject::invokeMethod(m_edit, &QLineEdit::selectAll, Qt::QueuedConnection);
    } else if (watched == m_edit && event->type() == QEvent::KeyPress
               && static_cast<QKeyEvent*>(event)->key() == Qt::Key_Escape) {
        clearError();
        m_edit->setText(editingText());
        m_edit->selectAll();
        return true;
    }
    return ParameterField::eventFilter(watched, event);
}

void NumberField::sliderMoved(int position)
{
    m_sweep.reset();
    m_value = m_stops[std::size_t(position)];
    describeSlider();
    clearError();
    showText();
    emit edited(key(), QString::fromStdString(numberText(m_value)));
}

void NumberField::commit()
{
    if (m_edit->isModified() && m_edit->text() != editingText()) {
        m_edit->setModified(false);
        if (!offer(m_edit->text()))
            return;
    } else if (m_edit->isModified()) {
        clearError(); // what was refused in between is gone
    }
    if (errorText().isEmpty())
        showText();
}

/// "24 MiB; the arrow keys go to 20 MiB and 28 MiB, between 4 KiB and 4 GiB. Size of the array."
void NumberField::describeSlider()
{
    const auto words = [this](double value) { return QString::fromStdString(valueLabel(spec(), value, byteStyle())); };
    const int last = int(m_stops.size()) - 1, at = m_slider->value();
    m_slider->setAccessibleDescription(tr("%1; the arrow keys go to %2 and %3, between %4 and %5. %6")
                                           .arg(words(m_value), words(m_stops[std::size_t(std::max(0, at - 1))]),
                                                words(m_stops[std::size_t(std::min(last, at + 1))]),
                                                words(m_stops.front()), words(m_stops.back()),
                                                QString::fromStdString(spec().help)));
}

void NumberField::showText()
{
    m_edit->setText(m_edit->hasFocus() && m_edit->isModified() ? editingText() : restText());
    m_edit->setCursorPosition(0);
}

QString NumberField::restText() const
{
    if (!m_sweep && m_value == 0 && !m_zeroText.isEmpty())
        return m_zeroText;
    if (!m_sweep)
        return QString::fromStdString(valueLabel(spec(), m_value, byteStyle()));
    const auto& values = m_sweep->values;
    return tr("%1 … %2 (%n values)", nullptr, int(values.size()))
        .arg(QString::fromStdString(valueLabel(spec(), values.front(), byteStyle())),
             QString::fromStdString(valueLabel(spec(), values.back(), byteStyle())));
}

QString NumberField::editingText() const
{
    if (m_sweep) {
        QStringList parts;
        for (const ParameterValue& value : m_sweep->values)
            parts << QString::fromStdString(valueText(value));
        return parts.join(u',');
    }
    if (spec().unit != Unit::One) {
        for (const ByteStyle style : {byteStyle(), ByteStyle::Binary, ByteStyle::Decimal}) {
            const std::string friendly = quantityText(m_value, spec().unit, style);
            const auto back = parseQuantity(friendly, spec().unit);
            if (back && *back == m_value)
                return QString::fromStdString(friendly);
        }
    }
    return QString::fromStdString(numberText(m_value));
}

} // namespace memscape
