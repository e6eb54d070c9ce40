// SPDX-License-Identifier: GPL-3.0-or-later
// What the page of `checkpoint` has beyond other pages: the plane of memory and time in its plot, with a
// budget to drag and strategies to click; fields that know what each choice would give; words about why
// there is no schedule. One per page; it knows the page's plot and form, never the document.
#pragma once

#include "app/pages/checkpoint_plane.h"
#include "app/pages/page_plot.h"
#include "app/pages/parameter_form.h"
#include "app/pictures/checkpoint_picture.h"
#include "core/experiment/experiment.h"
#include "core/experiment/record.h"

#include <QObject>

namespace memscape {

class CheckpointGuide : public QObject
{
    Q_OBJECT

public:
    static bool guides(const Experiment& experiment);

    CheckpointGuide(PagePlot* plot, ParameterForm* form, CheckpointPicture* picture, QObject* parent);

    /// The values that the page shows now; measured: records that answer for the same chain.
    void setPrediction(const Record* prediction, const Parameters& parameters, ByteStyle bytes);
    void setMeasured(std::vector<MeasuredSchedule> measured, const QString& measuredOn);
    /// The plane before the curve of memory; others only where they were swept.
    std::vector<SeriesGroup> groups(std::vector<SeriesGroup> own, bool isSwept) const;
    void dressPlane();
    std::vector<Marker> markers() const;
    /// The picture's cursor on the curve of memory over time; the other way round by moveCursor().
    std::vector<Marker> cursorMarkers() const;
    void moveCursor(double time);
    /// The parameter's text for a place on the plane's x axis.
    QString budgetAt(double memory) const;

    /// Why there is no schedule, with what would do; empty when there is one.
    const QString& missing() const { return m_missing; }
    QString leastBudget() const; ///< the parameter's text; empty when it is not the budget that is missing
    QString leastText() const;   ///< "2.1 GB"
    const QString& footing() const { return m_footing; } ///< what kind of answer it is, and where the chain is from

signals:
    void edited(const QString& key, const QString& text); ///< a strategy was clicked
    void cursorMoved();

private:
    void offer(const QStringList& curves, const QPoint& place);
    void showFields(const Parameters& parameters) const;

    PagePlot* m_plot;
    ParameterForm* m_form;
    CheckpointPicture* m_picture;
    PlaneInput m_input;
    QString m_missing, m_footing;
};

/// Records of the same chain that were measured, whatever their strategy and budget.
std::vector<MeasuredSchedule> measuredSchedules(const std::vector<Record>& records, const Parameters& parameters);

} // namespace memscape
