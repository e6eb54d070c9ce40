// SPDX-License-Identifier: GPL-3.0-or-later
// What the page of one experiment has beyond other pages: plots of its own, a cursor, notes, an answer in
// several steps. The base adds nothing; an experiment that needs more gets a subclass and a row in
// page_extension.cpp. One per page; it knows the page's parts, never the document.
#pragma once

#include "app/document/predictor.h"
#include "app/pages/cards/inspector.h"
#include "app/pages/curves.h"
#include "app/pages/page_plot.h"
#include "app/pictures/common/picture.h"
#include "core/experiment/experiment.h"
#include "core/experiment/record.h"

#include <QObject>

#include <optional>

namespace memscape {

/// The parts of a page that an extension works with; they outlive it.
struct PageParts
{
    const Experiment& experiment;
    Picture* picture; ///< null where the page has none
    PagePlot* plot;
    ParameterForm* form;
    Predictor& predictor;
};

/// What the page shows now.
struct ShownState
{
    const Record* prediction;                 ///< null before the first and after one that failed
    std::shared_ptr<const Prepared> prepared; ///< what the predictor's preparation made of it
    const Parameters& parameters;
    ByteStyle bytes;
    const std::vector<Record>& records; ///< of the study
    const Outcome* measured;            ///< what was measured for these parameters; null: nothing
    QString measuredOn;                 ///< "measured on Xeon"
};

class PageExtension : public QObject
{
    Q_OBJECT

public:
    PageExtension(const PageParts& parts, QObject* parent);

    /// Asks for the prediction of these parameters.
    virtual void request(const Device& device, const Parameters& parameters);
    /// Nothing more will come by itself.
    virtual bool rests() const { return true; }
    /// The first answer has no verdicts: those of the last prediction stay until they come.
    virtual bool claimsComeLater() const { return false; }
    /// Predictions from other rates (catalogue, calibration) differ, so that they are worth a curve each.
    virtual bool dependsOnRates() const { return true; }
    /// The picture stays what was predicted until the next prediction is there.
    virtual bool drawsPredictedParameters() const { return false; }
    /// Comes before the picture and the plot get the same.
    virtual void setState(const ShownState&) { }

    virtual QString answer() const { return {}; }  ///< of a further page: the sentence under its title
    virtual QString caution() const { return {}; } ///< what may make every number wrong
    virtual QString basis() const { return {}; }   ///< lines about the prediction's basis
    virtual std::vector<TextbookFormula> textbook() const { return {}; }
    /// What keeps the page from its answer, with what would help; nothing while there is one.
    virtual std::optional<InspectorNote> note(bool /*isMeasured*/) { return std::nullopt; }

    /// The plots to choose from, of those that the outcome's series make.
    virtual std::vector<SeriesGroup> groups(std::vector<SeriesGroup> own, bool /*isSwept*/) const { return own; }
    /// It draws this plot, wholly or in part: the page offers no axes and no datasheet for it.
    virtual bool draws(const QString& /*group*/) const { return false; }
    /// Draws a plot that is no curve of the outcome; false: the page draws it and asks the next three.
    virtual bool drawPlot(const QString& /*group*/) { return false; }
    virtual void dressAxes(AxisSpec&, AxisSpec&) const { }
    virtual void dressCurves(std::vector<Curve>&, const CurveInput&) const { }
    virtual void dressPlot(PlotView&) const { }
    /// Lines over a plot whose values may not pass them.
    virtual std::vector<HorizontalLine> limits(const SeriesGroup& /*group*/) const { return {}; }

    /// Instead of the marker of a parameter; nothing: that one. `axis`: of the plot's x, null without one.
    virtual std::optional<std::vector<Marker>> markers(const QString& /*group*/, const SeriesAxis* /*axis*/) const
    {
        return std::nullopt;
    }
    /// True when that marker is the extension's own.
    virtual bool moveMarker(const QString& /*key*/, double /*x*/) { return false; }
    /// The text of the parameter `key` for a place on the plot; empty: as the axis says.
    virtual QString markerText(const QString& /*key*/, double /*x*/) const { return {}; }

signals:
    void edited(const QString& key, const QString& text); ///< a parameter, as text that parses
    void markersChanged();

protected:
    const PageParts m_parts;
};

/// That of the experiment's page; never null.
PageExtension* makePageExtension(const PageParts& parts, QObject* parent);

} // namespace memscape
