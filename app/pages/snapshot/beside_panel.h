// SPDX-License-Identifier: GPL-3.0-or-later
// A prediction beside the snapshot: model and plan are the parameters of Memory budget, in the same study, so what is
// moved here has moved there. The predicted step and its figures come from threads of their own.
#pragma once

#include "app/document/predictor.h"
#include "app/pages/background_work.h"
#include "app/pages/experiment_page.h"
#include "app/pages/fields/parameter_form.h"
#include "app/pages/moment_finder.h"
#include "app/pages/snapshot/plan_guess.h"

#include <QTimer>
#include <QWidget>

class QPushButton;
class QToolButton;

namespace memscape {

class BesidePanel : public QWidget
{
    Q_OBJECT

public:
    explicit BesidePanel(PageServices services, QWidget* parent = nullptr);

    /// Which snapshot guesses are made from; null: none.
    void setSnapshot(std::shared_ptr<const SnapshotDevice> device);
    /// Whether there is a prediction at all.
    void setOn(bool on);
    /// Of Memory budget, without sweep and advice.
    Parameters parameters() const;
    const Record* prediction() const { return m_isOn ? m_prediction.get() : nullptr; }
    /// Allocated bytes after each event of the predicted step; empty while not known.
    std::vector<double> step() const;
    ParameterForm* form() const { return m_form; }
    bool isBusy() const { return m_isOn && (m_timer.isActive() || m_predictor.isBusy() || m_finder.isBusy()); }
    void guess();
    std::string deviceId() const; ///< that it is predicted for

signals:
    void chosen(bool on); ///< by hand
    void changed();       ///< the prediction is another
    void openWanted();    ///< "open on Memory budget"

private:
    void build();
    void refresh();
    void ask();
    void edit(const QString& key, const QString& text);
    void apply(const std::vector<PlanGuess>& guesses);

    PageServices m_services;
    const Experiment& m_experiment;
    QToolButton* m_switch;
    QWidget* m_body;
    QPushButton* m_guess;
    QPushButton* m_open;
    QLabel* m_guessed;
    QLabel* m_problem;
    ParameterForm* m_form;
    Predictor m_predictor;
    MomentFinder m_finder;
    BackgroundWork m_work;
    QTimer m_timer; ///< once per turn of the event loop
    std::shared_ptr<const SnapshotDevice> m_snapshot;
    std::shared_ptr<const Record> m_prediction;
    std::shared_ptr<const StepBlocks> m_step;
    int m_gesture = 0;
    bool m_isOn = false;
};

} // namespace memscape
