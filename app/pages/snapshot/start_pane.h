// SPDX-License-Identifier: GPL-3.0-or-later
// What stands in the place of the views while no snapshot is there: how to record one, how far the opening is, or why
// a file could not be opened and what helps.
#pragma once

#include "core/base/result.h"

#include <QWidget>

#include <cstdint>
#include <vector>

class QLabel;
class QProgressBar;
class QPushButton;

namespace memscape {

class PreviewCurve;

class StartPane : public QWidget
{
    Q_OBJECT

public:
    explicit StartPane(QWidget* parent = nullptr);

    void showEmpty();
    void showProgress(const QString& path, double share, const QString& what);
    /// While it is read: see PreviewCurve.
    void showPreview(std::vector<std::int64_t> columns, double share);
    const PreviewCurve* preview() const { return m_preview; }
    void showStopped(const QString& path);
    void showError(const QString& path, const Error& error);
    QString text() const; ///< what it says, for tests and screen readers

signals:
    void openWanted();
    void exampleWanted();
    void stopWanted();
    void againWanted();

private:
    enum class State { Empty, Progress, Stopped, Error };
    void set(State state, const QString& title, const QString& words, const QString& details = {});

    QLabel* m_title;
    QLabel* m_words;
    QLabel* m_code;
    QLabel* m_after;
    PreviewCurve* m_preview;
    QProgressBar* m_bar;
    QPushButton* m_open;
    QPushButton* m_example;
    QPushButton* m_stop;
    QPushButton* m_again;
    QPushButton* m_copy;
    QString m_details;
};

} // namespace memscape
