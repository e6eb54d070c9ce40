// SPDX-License-Identifier: GPL-3.0-or-later
// A picture explains an experiment where a curve is not enough: the lanes of a warp over sectors
// and lines, the levels of memory with the working set in them. It moves with the parameters and
// can be touched: what a person does to it comes out as an edit of a parameter.
//
// A picture draws from values only (device, parameters, prediction, measurement), never from a
// clock or a setting of its own, so the same values give the same picture on screen and in an
// export.
#pragma once

#include "app/pictures/common/parameter_changes.h"
#include "app/settings/theme.h"
#include "core/base/number.h"

#include <QWidget>

#include <string_view>

namespace memscape {

class Experiment;
class Parameters;
struct Device;
struct Outcome;
using Prediction = Outcome;
using Measurement = Outcome;

/// What a picture draws.
struct PictureValues
{
    const Experiment& experiment;
    const Device& device;
    const Parameters& parameters;
    const Prediction* predicted = nullptr; ///< null before the first and after one that failed
    const Measurement* measured = nullptr;
};

/// In px at the usual size of text.
struct PictureSize
{
    int height = 300;                        ///< that it likes to have
    int leastHeight = 200, leastWidth = 420; ///< that it needs
};

class Picture : public QWidget
{
    Q_OBJECT

public:
    explicit Picture(PictureSize size, QWidget* parent = nullptr);
    ~Picture() override;
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override;

    void setState(const PictureValues& values);

    /// Draws it into a rectangle of an export: nothing can be pressed there, nothing is under a pointer.
    void paintTo(QPainter& painter, const QRectF& rect, const Theme& theme) const;

    virtual QString title() const = 0;                  ///< "One warp, stride 4 (float32)"
    virtual QString summary() const = 0;                ///< in words, for screen readers
    virtual bool sharesHeight() const { return false; } ///< grows with the window, as its plot does
    /// It shows what the page's plot would, and more: the plot is folded away until it is wanted.
    virtual bool isPlot() const { return false; }
    virtual QString hint() const { return {}; } ///< what a hand can do here; for the line below it

    /// GB or GiB, as everywhere in the window.
    void setByteStyle(ByteStyle style);
    ByteStyle byteStyle() const { return m_byteStyle; }

    /// Why there is no prediction to draw, in words; empty while there is one. Before setState().
    void setProblem(const QString& problem);
    const QString& problem() const { return m_problem; }

signals:
    /// A parameter as text that parses: ("stride", "4"), ("working_set", "25165824").
    void parameterEdited(const QString& key, const QString& text);
    /// Several parameters in one step of the history, which is called that.
    void changesWanted(const memscape::ParameterChanges& changes, const QString& step);
    /// Another experiment at these parameters.
    void experimentWanted(const QString& experiment, const memscape::ParameterChanges& changes, const QString& step);
    /// The same while a handle is being dragged (an undo step merges these); ends with `false`.
    void editing(bool active);
    void hoverText(const QString& text); ///< what lies under the pointer; empty when nothing does

protected:
    /// Keeps what it needs of them; its words and what is drawn follow.
    virtual void read(const PictureValues& values) = 0;
    /// Everything but the background and the frame of the keyboard; `isScreen`: with what a hand can press, and what
    /// the pointer is over.
    virtual void draw(QPainter& painter, const QRectF& rect, const Theme& theme, bool isScreen) const = 0;
    /// What lies there, in words; empty where nothing does.
    virtual QString toolTipAt(QPointF) const { return {}; }
    /// Says what lies under the pointer at once, below the picture and beside the pointer.
    void tell(const QMouseEvent& event);
    /// A handle is held until the mouse is released: what it edits meanwhile is one step of the history.
    void hold();
    bool isHeld() const { return m_isHeld; }

    bool event(QEvent* event) override;
    void paintEvent(QPaintEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void leaveEvent(QEvent* event) override;
    void changeEvent(QEvent* event) override;
    void focusInEvent(QFocusEvent* event) override;
    void focusOutEvent(QFocusEvent* event) override;
    /// The frame that shows where the keyboard is; nothing while the focus came from the mouse.
    void paintFocusRing(QPainter& painter, const Theme& theme) const;
    /// The problem in the place of what can't be drawn.
    void paintProblem(QPainter& painter, const QRectF& rect, const Theme& theme) const;

private:
    PictureSize m_size;
    bool m_keyboardFocus = false, m_isHeld = false;
    QString m_problem;
    ByteStyle m_byteStyle = ByteStyle::Binary;
};

/// The picture of a page, null where there is none.
Picture* makePicture(std::string_view page, QWidget* parent = nullptr);
/// The keys of that picture, in a sentence; empty where it has none beyond Tab and Enter.
QString pictureShortcuts(std::string_view page);

} // namespace memscape
