// SPDX-License-Identifier: GPL-3.0-or-later
// What pages about memory have beyond other pages: the cursor on the timeline with the tensors alive at it, the search
// for what makes a step fit, predictions in two steps (the step at once, what would help as soon as nothing moves).
#pragma once

#include "app/pages/memory_plot.h"
#include "app/pages/moment_finder.h"
#include "app/pages/page_extension.h"

#include <QTimer>

#include <functional>

namespace memscape {

/// All that these pages draw, read from a record beside the window's thread.
struct MemoryDetail : Prepared
{
    explicit MemoryDetail(const Json& detail);

    MemoryTimeline timeline;
    MemoryMoment peak;
    std::vector<TextbookFormula> textbook;
    QString outOfMemory; ///< what does not fit, in words
    QString assumptions, caution;
    std::optional<double> available; ///< B for PyTorch on the device
    QString rank;                    ///< " on rank 0 of 4": of a pipeline
    bool knowsWhatFits = false;      ///< that comes with the advice
};

class MemoryExtension : public PageExtension
{
    Q_OBJECT

public:
    MemoryExtension(const PageParts& parts, QObject* parent);

    /// Asks for the prediction: without advice now, with it when nothing has moved for a moment.
    void request(const Device& device, const Parameters& parameters) override;
    bool rests() const override { return !m_rest.isActive() && !m_finder.isBusy() && !m_fit.isBusy(); }

    bool claimsComeLater() const override { return true; }
    bool dependsOnRates() const override { return false; }
    void setState(const ShownState& state) override;
    const MemoryTimeline& timeline() const { return m_detail->timeline; }
    /// When the peak is and its largest part: "The peak is 3.1 GiB, in the backward phase of head; …".
    QString answer() const override;
    QString caution() const override { return m_detail->caution; }
    QString basis() const override;
    std::vector<TextbookFormula> textbook() const override { return m_detail->textbook; }
    /// Which rank is the fullest, of one; what they send, if they send nothing.
    std::optional<InspectorNote> note(bool isMeasured) override;

    bool draws(const QString& group) const override { return group == QLatin1String(timelineKey); }
    /// From the first event to the last, bytes from zero.
    void dressAxes(AxisSpec& x, AxisSpec& y) const override;
    /// Areas, and curves of other steps in their places, beside what every plot has.
    void dressCurves(std::vector<Curve>& curves, const CurveInput& input) const override;
    void dressPlot(PlotView& view) const override;
    /// What the device has for PyTorch, over peaks.
    std::vector<HorizontalLine> limits(const SeriesGroup& group) const override;
    std::optional<std::vector<Marker>> markers(const QString& group, const SeriesAxis* axis) const override;
    bool moveMarker(const QString& key, double event) override;

    int cursor() const; ///< the event; that of the peak until the user moves it
    void moveCursor(double event);
    void cursorKey(int key, Qt::KeyboardModifiers modifiers);
    void searchFit(bool on);

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    static std::shared_ptr<const Prepared> prepare(const Record& prediction);
    /// What a run took, in the places of the predicted step, to the picture; null: nothing.
    void showMeasured(const Outcome* measured);
    /// Phase by phase how the run differs from the prediction, and by what; empty without both.
    static QString differencesOf(const ShownState& state);
    void showMoment(const MemoryMoment& moment);
    void showStep(const MemoryMoment& moment, const std::shared_ptr<const StepBlocks>& step);
    void askMoment();
    void endFit(std::optional<FitAnswer> answer);
    bool hasAdvice() const;

    Predictor m_fit;
    MomentFinder m_finder;
    QTimer m_rest;
    std::function<void()> m_ask; ///< what m_rest is for
    Device m_device;
    Parameters m_parameters;
    std::optional<Parameters> m_searching;        ///< "Make it fit" runs for these
    std::shared_ptr<const MemoryDetail> m_detail; ///< never null
    MemoryPlot m_timelinePlot;                    ///< of its timeline
    QString m_outOfMemory;
    QString m_missingTime; ///< what is not known of the device
    QString m_differences;
    int m_cursor = -1; ///< −1: at the peak
    ByteStyle m_bytes = ByteStyle::Binary;
};

} // namespace memscape
