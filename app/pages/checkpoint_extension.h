// SPDX-License-Identifier: GPL-3.0-or-later
// What the page of `checkpoint` has beyond other pages: the plane of memory and time in its plot, with a
// budget to drag and strategies to click; fields that know what each choice would give; words about why
// there is no schedule.
#pragma once

#include "app/pages/checkpoint_plane.h"
#include "app/pages/page_extension.h"
#include "app/pictures/checkpoint/checkpoint_picture.h"

namespace memscape {

class CheckpointExtension : public PageExtension
{
    Q_OBJECT

public:
    CheckpointExtension(const PageParts& parts, QObject* parent);

    bool drawsPredictedParameters() const override { return true; } // a schedule stays what it was solved for
    void setState(const ShownState& state) override;
    QString basis() const override { return m_basis; } ///< what kind of answer it is, and where the chain is from
    /// Why there is no schedule, with the budget that would do.
    std::optional<InspectorNote> note(bool isMeasured) override;

    /// The plane before the curve of memory; others only where they were swept.
    std::vector<SeriesGroup> groups(std::vector<SeriesGroup> own, bool isSwept) const override;
    bool draws(const QString& group) const override { return group == QLatin1String(planeKey); }
    bool drawPlot(const QString& group) override;
    /// The budget on the plane; on the curve of memory over time the picture's cursor.
    std::optional<std::vector<Marker>> markers(const QString& group, const SeriesAxis* axis) const override;
    bool moveMarker(const QString& key, double time) override;
    /// The budget for a place on the plane's x axis.
    QString markerText(const QString& key, double memory) const override;

private:
    void offer(const QStringList& curves, const QPoint& place);
    void setPrediction(const Record* prediction, const Parameters& parameters, ByteStyle bytes);
    void showFields(const Parameters& parameters) const;
    std::vector<Marker> cursorMarkers() const;
    QString leastBudget() const; ///< the parameter's text; empty when it is not the budget that is missing

    CheckpointPicture* m_picture;
    PlaneInput m_input;
    QString m_missing; ///< why there is no schedule, with what would do; empty when there is one
    QString m_basis;
};

/// Records of the same chain that were measured, whatever their strategy and budget.
std::vector<MeasuredSchedule> measuredSchedules(const std::vector<Record>& records, const Parameters& parameters);

} // namespace memscape
