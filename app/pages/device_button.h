// SPDX-License-Identifier: GPL-3.0-or-later
// The device of a page as a menu button: live devices, calibrated files, the catalogue, and the two
// ways to get more of them.
#pragma once

#include "app/workers/devices.h"
#include "core/experiment/experiment.h"

#include <QMenu>
#include <QToolButton>

namespace memscape {

class DeviceButton : public QToolButton
{
    Q_OBJECT

public:
    explicit DeviceButton(DeviceDirectory& devices, QWidget* parent = nullptr);

    void setDevice(const std::string& id);
    /// Of the page: the menu says where it is not measured.
    void setExperiment(const Experiment& experiment) { m_experiment = &experiment; }
    /// Whether the device can be measured now.
    void setCalibrationPossible(bool possible) { m_calibrationPossible = possible; }

signals:
    void picked(const QString& id);
    void commandWanted();   ///< "Add device from command…"
    void fileWanted();      ///< "Open device file…"
    void calibrateWanted(); ///< the device of the page
    void forgetWanted();    ///< its calibration

private:
    void fillMenu();
    void addSearch();
    void addActions();
    QList<QAction*> search(const QString& typed);
    void addSection(const QString& title, DeviceSource source);
    void addEntry(QMenu& menu, const DeviceEntry& entry);
    void refresh();

    DeviceDirectory& m_devices;
    QMenu m_menu;
    const Experiment* m_experiment = nullptr;
    std::string m_id;
    bool m_calibrationPossible = false;
};

} // namespace memscape
