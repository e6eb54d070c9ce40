// SPDX-License-Identifier: GPL-3.0-or-later
// A number: slider below, value at the right that can be typed with a unit ("24 MiB") or as a
// sweep.
#pragma once

#include "app/pages/fields/parameter_field.h"

#include <vector>

class QLineEdit;

namespace memscape {

class QuietSlider;

class NumberField : public ParameterField
{
    Q_OBJECT

public:
    explicit NumberField(const ParameterSpec& spec, QWidget* parent = nullptr);

    void display(const ParameterValue& value, const std::optional<Sweep>& sweep) override;
    /// The meaning of 0 at present, where it depends on other parameters; else the spec's word.
    void setZeroText(const QString& text);

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    void buildSlider();
    void sliderMoved(int position);
    void commit();
    void showText();
    void describeSlider();
    QString restText() const;    ///< while it is not edited: "24 MiB", "1 to 128, 8 values"
    QString editingText() const; ///< what parses back to the same value or sweep

    std::vector<double> m_stops;
    QLineEdit* m_edit;
    QuietSlider* m_slider;
    double m_value = 0;
    std::optional<Sweep> m_sweep;
    QString m_zeroText;
};

} // namespace memscape
