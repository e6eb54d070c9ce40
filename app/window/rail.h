// SPDX-License-Identifier: GPL-3.0-or-later
// The left rail: the pages in their groups, and at the foot the device of the page and whether it is
// calibrated. Groups without a page are not shown.
#pragma once

#include "app/document/pages.h"
#include "app/workers/devices.h"
#include "core/experiment/experiment.h"

#include <QFrame>
#include <QHash>

class QButtonGroup;
class QLabel;
class QPushButton;
class QScrollArea;
class QVBoxLayout;

namespace memscape {

class Rail : public QFrame
{
    Q_OBJECT

public:
    Rail(const std::vector<const Experiment*>& experiments, DeviceDirectory& devices, QWidget* parent = nullptr);

    void setPage(const QString& experiment);
    void setDevice(const std::string& id);
    /// While something is being measured nothing can be calibrated.
    void setBusy(bool busy);
    QPushButton* button(const QString& experiment) const { return m_buttons.value(experiment); }

signals:
    void pageWanted(const QString& experiment);
    void calibrateWanted();

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;
    void changeEvent(QEvent* event) override;
    void showEvent(QShowEvent* event) override;

private:
    void fitWidth();
    void scrollToChosen();
    QWidget* makeDeviceCard();
    void addPage(const PageInfo& page);
    void addGroup(const std::string& group, const QString& title, const std::vector<PageInfo>& pages);
    void refreshDevice();

    DeviceDirectory& m_devices;
    std::string m_device;
    bool m_busy = false;
    QButtonGroup* m_group;
    QVBoxLayout* m_list = nullptr; ///< of the pages; it scrolls where the window is low
    QScrollArea* m_scroll;
    QHash<QString, QPushButton*> m_buttons;
    QLabel* m_name;
    QLabel* m_details;
    QLabel* m_state;
    QPushButton* m_calibrate;
};

} // namespace memscape
