// SPDX-License-Identifier: GPL-3.0-or-later
// A curve as it is drawn by hand: samples over the stretch between the first and the last x that is asked for, even in
// the logarithm where all x are positive. A stroke replaces what it passes over; where several x are asked for, y there
// is what counts. Pure values.
#pragma once

#include <vector>

namespace memscape {

class CurveDrawing
{
public:
    /// `asked`: at least one x, finite, any order; `logY`: between two samples y runs straight in its logarithm.
    explicit CurveDrawing(std::vector<double> asked = {}, bool logY = true);

    /// A piece of a stroke; one beside all samples sets the nearest.
    void stroke(double fromX, double fromY, double toX, double toY);
    /// Given values at the x asked for; the curve runs straight between those that are finite.
    void setValues(const std::vector<double>& y);
    void setValue(std::size_t index, double y);
    void clear();

    const std::vector<double>& asked() const { return m_asked; }
    /// At each x asked for; NaN where nothing is drawn.
    std::vector<double> values() const;
    const std::vector<double>& x() const { return m_x; }
    const std::vector<double>& y() const { return m_y; }
    bool isLogX() const { return m_isLogX; }
    bool isEmpty() const;

private:
    std::size_t nearestSample(double x) const;
    double nearest(std::size_t index) const; ///< what is drawn close by; NaN for nothing
    double between(double a, double b, double share) const;

    std::vector<double> m_asked, m_x, m_y;
    bool m_isLogX = false, m_logY = true;
};

} // namespace memscape
