// SPDX-License-Identifier: GPL-3.0-or-later
// The page of any experiment in the registry: header, picture over plot, inspector. A new
// experiment gets all of it from its schema and its outcomes, without a line here; it may add a
// picture (app/pictures/).
//
// A page holds no numbers of its own. It reads the study, requests a prediction whenever parameters
// or device change (once per turn of the event loop, and not while it is hidden), and shows beside
// it the points that are arriving, or the record that was clicked, or the newest one that answers
// the same question. A measurement made with other parameters is drawn hollow and never compared.
#pragma once

#include "app/document/predictor.h"
#include "app/document/study_document.h"
#include "app/pages/basis_predictions.h"
#include "app/pages/cards/inspector.h"
#include "app/pages/curves.h"
#include "app/pages/improvement_finder.h"
#include "app/pages/page_extension.h"
#include "app/pages/page_header.h"
#include "app/pages/page_plot.h"
#include "app/pages/page_services.h"
#include "app/pages/page_visit.h"
#include "app/pages/records/records_strip.h"
#include "app/pages/records/shown_measurement.h"
#include "app/pages/table_claims.h"
#include "app/pictures/common/picture.h"
#include "app/settings/settings.h"

#include <QElapsedTimer>
#include <QTimer>
#include <QVariantMap>
#include <QWidget>

class QSplitter;

namespace memscape {

class ExperimentPage : public QWidget
{
    Q_OBJECT

public:
    /// `page`: the id of a further page of the experiment (document/pages.h); empty for its own.
    ExperimentPage(const Experiment& experiment, PageServices services, QWidget* parent = nullptr,
                   const std::string& page = {});

    const Experiment& experiment() const { return m_experiment; }
    const std::string& pageId() const { return m_info.id; }
    QString title() const;
    QString question() const;
    PageHeader* header() const { return m_header; }
    PagePlot* plot() const { return m_plot; }
    Picture* picture() const { return m_picture; } ///< null where there is none
    /// Where the keyboard belongs at first: the plot, or the picture in its place.
    QWidget* stage() const;
    RecordsStrip* strip() const { return m_strip; }
    Inspector* inspector() const { return m_inspector; }
    QSplitter* splitter() const { return m_splitter; }

    std::string deviceId() const;
    Parameters parameters() const;
    Parameters standard() const; ///< what the page of its device opens with
    ByteStyle byteStyle() const { return m_services.settings.byteStyle(); }
    /// The prediction that is on screen; null before the first and after one that failed.
    const Record* prediction() const { return m_prediction.get(); }
    /// What is on screen as one record: prediction, and the measurement when it belongs to it.
    std::optional<Record> shownRecord() const;
    /// Records that an export of this page holds: the shown one and the pinned ones.
    std::vector<Record> exportRecords() const;

    /// The setting as lines for other programs ("pytorch", "deepspeed"), where the experiment has some.
    std::vector<Snippet> snippets() const;

    void measure();
    /// Only the point that is selected on the curve; the whole page where its curve is no sweep.
    void measurePoint();
    void calibrate();
    /// Shows this record as the measurement until parameters change what is asked; −1: automatic.
    void chooseRecord(int index);
    /// As a click on it in the list or the strip: one without a measurement is put on the page.
    void showRecord(int index);
    /// Keeps the present prediction as a record that is drawn beside what comes next.
    void pinPrediction();
    void useRecord(int index); ///< its parameters and device, as one step each
    /// Sets a parameter from text (a value or a sweep); what does not parse is refused.
    Result<void> setText(const QString& key, const QString& text);
    /// As if the user had typed it into the form: what is refused stays there, with the reason.
    void proposeText(const QString& key, const QString& text);
    void resetParameters();
    /// Several parameters as one step of the history; nothing changes when one is refused.
    Result<void> setTexts(const ParameterChanges& changes, const QString& step);
    /// Does what is due now, without waiting for the event loop: for exports and tests.
    void updateNow();
    bool upToDate() const;
    /// Looks for what would change the answer most, and for claims of the table; upToDate() does not wait for that.
    bool isSeeking() const { return m_improvements.isBusy() || m_tableClaims.isBusy(); }
    PageExtension* extension() const { return m_extension; }
    /// Zoom of each plot of the page, as far as the user zoomed: for the next session, not the
    /// study.
    QVariantMap zooms() const { return m_zooms; }
    void setZooms(const QVariantMap& zooms);

signals:
    void updated();                                    ///< something on the page changed
    void pageWanted(const memscape::PageVisit& visit); ///< as one step of the history

protected:
    void showEvent(QShowEvent* event) override;
    void changeEvent(QEvent* event) override;
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    enum Dirty { Inputs = 1, Outputs = 2 };

    void build();
    void fitInspector();
    void connectAll();
    void connectPredictor();
    void documentChanged(const ChangeEvent& event);
    void schedule(int what);
    void refreshInputs();
    void buildStrip();
    std::optional<std::size_t> baseline() const;
    std::vector<FigureRow> figuresBeside(std::vector<FigureRow> rows) const;
    QString predictionName() const;
    std::vector<SeriesGroup> plotGroups(const Outcome& outcome) const;
    void refreshOutputs();
    void refreshPlot(const ShownMeasurement& shown);
    void refreshFold();
    CurveInput curveInput(const ShownMeasurement& shown) const;
    void rememberZoom();
    void restoreZoom(const QString& group);
    void refreshAnswer(const ShownMeasurement& shown);
    void refreshInspector(const ShownMeasurement& shown);
    std::vector<Claim> claimsBeside(const ShownMeasurement& shown) const;
    bool wantsCalibration() const;
    QString staleCalibration(const ShownMeasurement& shown) const;
    QString extentText() const;
    InspectorNote noteFor(const ShownMeasurement& shown) const;
    InspectorNote refusal(const Error& error) const;
    QString waysOut(const Error& error) const;
    ShownMeasurement shown() const;
    std::vector<PinnedOutcome> pinnedOutcomes(const ShownMeasurement& shown) const;
    const SeriesAxis* currentAxis() const;
    std::optional<double> currentX() const;
    std::vector<Marker> markers() const;
    void editText(const QString& key, const QString& text);
    void setEditing(bool active);
    int gestureFor(const QString& key);
    void markerMoved(const QString& key, double x);
    void chooseLog(Qt::Axis axis, bool on);
    SeriesGroup currentGroup(const std::vector<SeriesGroup>& groups) const;
    void applyLogChoice(const SeriesGroup& group, AxisSpec& x, AxisSpec& y) const;
    const Device* device() const;

    const Experiment& m_experiment;
    std::string m_id; ///< of the experiment
    PageInfo m_info;  ///< its own page, or a further one
    PageServices m_services;
    Predictor m_predictor;
    BasisPredictions m_bases;
    ImprovementFinder m_improvements;
    TableClaims m_tableClaims;
    PageHeader* m_header;
    Picture* m_picture;
    PagePlot* m_plot;
    Inspector* m_inspector;
    RecordsStrip* m_strip = nullptr; ///< of the records, under the plot
    QSplitter* m_splitter;
    PageExtension* m_extension = nullptr;
    std::vector<Claim> m_claims; ///< of the prediction
    QTimer m_timer;
    int m_dirty = Inputs | Outputs;
    std::shared_ptr<const Record> m_prediction;
    std::optional<Error> m_predictionError;
    bool m_isStopped = false; ///< by hand: what is shown answers for other parameters
    QTimer m_longWait;
    int m_chosen = -1;
    QVariantMap m_zooms;   ///< by the key of the series group
    QString m_zoomOf;      ///< group whose zoom the plot shows
    double m_textUnit = 0; ///< plotUnit() that the inspector was made for
    bool m_dragging = false;
    int m_gesture = 0;
    QString m_gestureKey;
    QElapsedTimer m_lastEdit;
};

} // namespace memscape
