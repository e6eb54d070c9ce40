// SPDX-License-Identifier: GPL-3.0-or-later
// What pages about memory have beyond other pages: the cursor on the timeline with who is alive at
// it, the search for what makes a step fit, predictions in two steps (the step at once, what would
// help as soon as nothing moves). One per page; it knows the page's picture and plot, never the
// document.
#pragma once

#include "app/document/predictor.h"
#include "app/pages/curves.h"
#include "app/pages/memory_plot.h"
#include "app/pages/moment_finder.h"
#include "app/pages/page_plot.h"
#include "app/pictures/picture.h"

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
    QString doctor, assumptions, caution;
    bool knowsDoctor = false; ///< it comes with the advice
};

class MemoryGuide : public QObject
{
    Q_OBJECT

public:
    /// Whether an experiment is about the memory of a network.
    static bool guides(const Experiment& experiment);

    MemoryGuide(const Experiment& experiment, Picture* picture, PagePlot* plot, QObject* parent);

    /// Asks for the prediction: without advice now, with it when nothing has moved for a moment.
    void request(Predictor& predictor, const Device& device, const Parameters& parameters);
    /// Nothing more will come by itself.
    bool rests() const { return !m_rest.isActive() && !m_finder.isBusy() && !m_fit.isBusy(); }

    /// For the predictor of these pages.
    static std::shared_ptr<const Prepared> prepare(const Record& prediction);
    /// The values that the page shows now; call before the picture gets them. `prepared`: what
    /// prepare() made of that prediction; null without one.
    void setPrediction(std::shared_ptr<const Prepared> prepared, ByteStyle bytes);
    const MemoryTimeline& timeline() const { return m_detail->timeline; }
    const QString& doctor() const { return m_doctor; } ///< what runs out of memory, in words
    /// When the peak is and its largest part: "The peak is 3.1 GiB, in the backward phase of head; …".
    QString peakSentence() const;
    const QString& caution() const { return m_detail->caution; } ///< what may make every number wrong
    const QString& assumptions() const { return m_detail->assumptions; } ///< about the model, in words
    const std::vector<TextbookFormula>& textbook() const { return m_detail->textbook; }
    /// From the first event to the last, bytes from zero.
    void dressAxes(AxisSpec& x, AxisSpec& y) const;
    /// Areas, and curves of other steps in their places, beside what every plot has.
    void dressCurves(std::vector<Curve>& curves, const CurveInput& input) const;
    void dressPlot(PlotView& view) const;
    std::vector<Marker> markers() const;
    /// What a run took, in the places of the predicted step, to the picture; null: nothing.
    void showMeasured(const Outcome* measured);

    int cursor() const; ///< the event; that of the peak until the user moves it
    void moveCursor(double event);
    void cursorKey(int key, Qt::KeyboardModifiers modifiers);
    void searchFit(bool on);

signals:
    void cursorMoved();

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    void showMoment(const MemoryMoment& moment);
    void showStep(const MemoryMoment& moment, const std::shared_ptr<const StepBlocks>& step);
    void askMoment();
    void endFit(std::optional<FitAnswer> answer);
    bool hasAdvice() const;

    const Experiment& m_experiment;
    Picture* m_picture;
    PagePlot* m_plot;
    Predictor m_fit;
    MomentFinder m_finder;
    QTimer m_rest;
    std::function<void()> m_ask; ///< what m_rest is for
    Device m_device;
    Parameters m_parameters;
    std::optional<Parameters> m_searching; ///< "Make it fit" runs for these
    std::shared_ptr<const MemoryDetail> m_detail; ///< never null
    MemoryPlot m_timelinePlot; ///< of its timeline
    QString m_doctor;
    int m_cursor = -1; ///< −1: at the peak
    ByteStyle m_bytes = ByteStyle::Binary;
};

} // namespace memscape
