// SPDX-License-Identifier: GPL-3.0-or-later
// The right side of a lab: the live page of the experiment that a step asks, with a study and runs of its own, so that
// nothing of a lab gets into the study of the window. What the lab fixes stays as it is; what is free is the student's.
// Before a prediction is locked there is a cover instead of the page: prediction and measurement stay hidden.
#pragma once

#include "app/document/study_document.h"
#include "app/pages/experiment_page.h"
#include "core/lab/lab_attempt.h"

#include <QWidget>

class QLabel;
class QVBoxLayout;

namespace memscape {

/// The step whose experiment is shown beside `step`: its own; of a locked prediction the measurement that it opened;
/// else the last one before. Null: none may be shown.
const LabStep* stagedStep(const LabAttempt& attempt, const LabStep& step);

class LabStage : public QWidget
{
    Q_OBJECT

public:
    explicit LabStage(PageServices window, QWidget* parent = nullptr);
    ~LabStage() override;

    /// Puts the page on the stage as the attempt has it. The same step again: only its run and answers anew.
    void show(const LabAttempt& attempt, const LabStep& step);
    void clear();

    ExperimentPage* page() const { return m_page; } ///< null under the cover
    const StudyDocument& document() const { return m_document; }
    RunController& runs() { return m_runs; }
    /// Whether the student may change that parameter.
    bool isFree(const std::string& key) const;
    void setDevice(const std::string& id); ///< where the student chooses it
    /// Null, or why the shown step cannot be measured now.
    QString obstacle() const;
    void measure();

signals:
    void measured(const std::string& step, const memscape::Record& record);
    /// Free parameters of a tune or fix step, changed on the page: by key, as text.
    void chosen(const std::string& step, const memscape::Json& parameters);
    /// A fixed parameter was changed, and put back.
    void putBack(const QString& parameter);

protected:
    void resizeEvent(QResizeEvent* event) override;

private:
    void fit();
    void build(const LabStep& step);
    void fillDocument(const LabAttempt& attempt);
    void listRecorded(const Device& device);
    void documentChanged(const ChangeEvent& event);
    void dressFields();
    Json freeTexts() const;

    PageServices m_window;
    StudyDocument m_document;
    RunController m_runs;
    QVBoxLayout* m_column;
    ExperimentPage* m_page = nullptr;
    std::optional<LabStep> m_step; ///< that is staged
    std::string m_experiment;
    Parameters m_fixed;    ///< of the step, free ones at their start
    std::string m_reading; ///< parameter of the axis, which reads a measured curve off; empty: fixed, too
    Json m_run;            ///< which run the document holds, as text of its provenance
    bool m_isFilling = false;
};

} // namespace memscape
