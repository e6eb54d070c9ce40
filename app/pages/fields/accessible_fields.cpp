// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/fields/accessible_fields.h"

#include "app/pages/fields/quiet_widgets.h"

#include <QAbstractItemView>
#include <QAccessibleWidget>

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

/// "pattern: strided", with its list as its only child.
class ListInterface : public QAccessibleWidget
{
public:
    explicit ListInterface(QComboBox* box)
        : QAccessibleWidget(box, QAccessible::ComboBox)
    { }

    QString text(QAccessible::Text what) const override
    {
        if (what == QAccessible::Name)
            return box()->accessibleName().isEmpty()
                ? box()->currentText()
                : QStringLiteral("%1: %2").arg(box()->accessibleName(), box()->currentText());
        return what == QAccessible::Value ? box()->currentText() : QAccessibleWidget::text(what);
    }

    QAccessible::State state() const override
    {
        QAccessible::State state = QAccessibleWidget::state();
        state.expandable = state.hasPopup = true;
        state.expanded = box()->view()->isVisible();
        return state;
    }

    int childCount() const override { return 1; }
    QAccessibleInterface* child(int index) const override
    {
        return index == 0 ? QAccessible::queryAccessibleInterface(box()->view()) : nullptr;
    }
    int indexOfChild(const QAccessibleInterface* child) const override
    {
        return child != nullptr && child->object() == box()->view() ? 0 : -1;
    }

    QStringList actionNames() const override { return {showMenuAction(), pressAction()}; }
    void doAction(const QString& action) override
    {
        if (!actionNames().contains(action))
            return QAccessibleWidget::doAction(action);
        if (box()->view()->isVisible())
            box()->hidePopup();
        else
            box()->showPopup();
    }

private:
    QComboBox* box() const { return static_cast<QComboBox*>(widget()); }
};

/// In the quantity's own unit; a step is the way to the next stop.
class SliderInterface : public QAccessibleWidget, public QAccessibleValueInterface
{
public:
    explicit SliderInterface(QuietSlider* slider)
        : QAccessibleWidget(slider, QAccessible::Slider)
    { }

    void* interface_cast(QAccessible::InterfaceType type) override
    {
        return type == QAccessible::ValueInterface ? static_cast<QAccessibleValueInterface*>(this)
                                                   : QAccessibleWidget::interface_cast(type);
    }

    QVariant currentValue() const override { return valueAt(slider()->value()); }
    QVariant minimumValue() const override { return valueAt(slider()->minimum()); }
    QVariant maximumValue() const override { return valueAt(slider()->maximum()); }
    QVariant minimumStepSize() const override
    {
        const int next = std::min(slider()->value() + 1, slider()->maximum());
        return valueAt(next) - valueAt(std::max(next - 1, slider()->minimum()));
    }
    void setCurrentValue(const QVariant& value) override
    {
        int nearest = slider()->minimum();
        const auto distance = [&](int position) { return std::fabs(valueAt(position) - value.toDouble()); };
        for (int position = nearest; position <= slider()->maximum(); ++position) {
            if (distance(position) < distance(nearest))
                nearest = position;
        }
        slider()->setValue(nearest);
    }

private:
    double valueAt(int position) const { return slider()->valueAt ? slider()->valueAt(position) : position; }
    QuietSlider* slider() const { return static_cast<QuietSlider*>(widget()); }
};

/// Kept by Qt from the first event on, when a field has neither its name nor its values yet.
QAccessibleInterface* fieldInterface(const QString& name, QObject* object)
{
    if (name == QLatin1String("QComboBox")) {
        auto* box = qobject_cast<QComboBox*>(object);
        if (box != nullptr && !box->isEditable())
            return new ListInterface(box);
    }
    if (name == QLatin1String("QSlider")) {
        auto* slider = dynamic_cast<QuietSlider*>(object);
        if (slider != nullptr)
            return new SliderInterface(slider);
    }
    return nullptr;
}

} // namespace

void installAccessibleFields()
{
    static const bool installed = [] {
        QAccessible::installFactory(fieldInterface);
        return true;
    }();
    static_cast<void>(installed);
}

} // namespace memscape
