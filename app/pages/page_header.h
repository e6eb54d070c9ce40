// SPDX-License-Identifier: GPL-3.0-or-later
// The top of a page: its name and question, the device, Measure (Stop while it measures), Export.
#pragma once

#include "app/document/pages.h"
#include "app/pages/device_button.h"
#include "app/pages/run_controller.h"

#include <QFrame>

class QLabel;
class QMenu;
class QPushButton;

namespace memscape {

class PageHeader : public QFrame
{
    Q_OBJECT

public:
    PageHeader(const Experiment& experiment, const PageInfo& page, DeviceDirectory& devices, RunController& runs,
               QWidget* parent = nullptr);

    void setDevice(const std::string& id);
    DeviceButton* device() const { return m_device; }
    QPushButton* measureButton() const { return m_measure; }
    /// The menu of Export, filled by the window's actions.
    void setExportMenu(QMenu* menu);
    /// The question's answer below it, and what would change it as rich text whose links are assignments
    /// ("stride=2"); empty: none.
    void setAnswer(const QString& sentence, const QString& changes);
    QString answer() const;
    QString changes() const;
    /// A sentence below the question, in the colour of warnings; empty: none. With `offersCalibration` a link follows.
    void setCaution(const QString& text, bool offersCalibration = false);
    QString caution() const;

signals:
    void measureWanted();
    void changeWanted(const QString& key, const QString& value);
    void calibrationWanted();

private:
    void refresh();

    std::string m_experiment;
    std::string m_deviceId;
    RunController& m_runs;
    DeviceButton* m_device;
    QPushButton* m_measure;
    QPushButton* m_export;
    QLabel* m_answer;
    QLabel* m_changes;
    QLabel* m_caution;
};

} // namespace memscape
