// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/page_header.h"

#include "app/pages/cards/card.h"
#include "app/settings/words.h"

#include <QHBoxLayout>
#include <QMenu>
#include <QPushButton>
#include <QRegularExpression>
#include <QStyle>

#include <algorithm>
#include <utility>

namespace memscape {

namespace {

/// "12 MiB" stays on one line.
QString keptTogether(QString text)
{
    static const QRegularExpression unit(QStringLiteral("(\\d) (?=[A-Za-zµ%])"));
    return text.replace(unit, QStringLiteral("\\1\u00A0"));
}

} // namespace

PageHeader::PageHeader(const Experiment& experiment, const PageInfo& page, DeviceDirectory& devices,
                       RunController& runs, QWidget* parent)
    : QFrame(parent)
    , m_experiment(experiment.id())
    , m_runs(runs)
    , m_device(new DeviceButton(devices, this))
    , m_measure(new QPushButton(this))
    , m_export(new QPushButton(tr("Export"), this))
    , m_answer(toneLabel({}, "strong", this, true))
    , m_changes(new LinkLabel("dim", this))
    , m_caution(new LinkLabel("warning", this))
{
    setObjectName(QStringLiteral("header"));
    m_device->setExperiment(experiment);
    auto* title = toneLabel(QString::fromStdString(page.title), "title", this);
    auto* question = toneLabel(QString::fromStdString(page.question), "dim", this);
    title->setWordWrap(false);
    title->setToolTip(QStringLiteral("<p>%1</p>").arg(QString::fromStdString(experiment.help()).toHtmlEscaped()));
    m_measure->setObjectName(QStringLiteral("measure"));
    m_measure->setAutoDefault(false);
    m_export->setObjectName(QStringLiteral("export"));
    m_export->setAccessibleName(tr("Export"));
    m_export->setToolTip(tr("Save or copy the plot, the page, the data or the whole study"));

    auto* top = new QHBoxLayout;
    top->setSpacing(8);
    top->addWidget(title, 1);
    for (QWidget* control :
         {static_cast<QWidget*>(m_device), static_cast<QWidget*>(m_measure), static_cast<QWidget*>(m_export)})
        top->addWidget(control);
    auto* column = new QVBoxLayout(this); // the answer has the whole width
    column->setContentsMargins(20, 8, 20, 10);
    column->setSpacing(2);
    column->addLayout(top);
    for (QLabel* line : {question, m_answer, m_changes, m_caution})
        column->addWidget(line);
    m_answer->setObjectName(QStringLiteral("answer"));
    m_changes->setObjectName(QStringLiteral("changes"));
    m_changes->setAccessibleName(tr("The changes with the largest effect on the result"));
    connect(m_changes, &QLabel::linkActivated, this, [this](const QString& assignment) {
        const auto equals = assignment.indexOf(u'=');
        emit changeWanted(assignment.left(equals), assignment.mid(equals + 1));
    });
    m_answer->hide();
    m_changes->hide();
    m_caution->setObjectName(QStringLiteral("caution"));
    m_caution->setWordWrap(true);
    connect(m_caution, &QLabel::linkActivated, this, &PageHeader::calibrationWanted);
    m_caution->hide();

    connect(m_measure, &QPushButton::clicked, this, [this] {
        if (m_runs.current() && m_runs.current()->experiment == m_experiment)
            m_runs.stop();
        else
            emit measureWanted();
    });
    connect(&runs, &RunController::changed, this, &PageHeader::refresh);
    connect(&devices, &DeviceDirectory::changed, this, &PageHeader::refresh);
    refresh();
}

void PageHeader::setDevice(const std::string& id)
{
    if (std::exchange(m_deviceId, id) == id)
        return;
    m_device->setDevice(id);
    refresh();
}

void PageHeader::setExportMenu(QMenu* menu)
{
    m_export->setMenu(menu);
}

void PageHeader::setAnswer(const QString& sentence, const QString& changes)
{
    m_answer->setText(keptTogether(sentence));
    m_answer->setVisible(!sentence.isEmpty());
    m_changes->setText(keptTogether(changes));
    m_changes->setVisible(!changes.isEmpty());
}

QString PageHeader::answer() const
{
    return m_answer->text().replace(QChar::Nbsp, u' ');
}

QString PageHeader::changes() const
{
    return m_changes->text().replace(QChar::Nbsp, u' ');
}

void PageHeader::setCaution(const QString& text, bool offersCalibration)
{
    const QString link = QStringLiteral(" <a href=\"calibrate\">%1</a>").arg(tr("Calibrate (one to three minutes)"));
    m_caution->setTextFormat(offersCalibration ? Qt::RichText : Qt::PlainText);
    m_caution->setText(offersCalibration ? capitalized(text).toHtmlEscaped() + link : capitalized(text));
    m_caution->setVisible(!text.isEmpty());
}

QString PageHeader::caution() const
{
    return m_caution->isHidden() ? QString() : m_caution->text();
}

void PageHeader::refresh()
{
    const auto& run = m_runs.current();
    const bool ours = run && run->experiment == m_experiment;
    const QString obstacle =
        run && !ours ? tr("Another measurement is running.") : m_runs.obstacle(m_experiment, m_deviceId);
    m_device->setCalibrationPossible(!run && m_runs.obstacle(m_deviceId).isEmpty());
    m_measure->setText(ours ? tr("Stop") : tr("Measure"));
    m_measure->setEnabled(ours ? !run->stopping : obstacle.isEmpty());
    m_measure->setToolTip(ours ? tr("Stop the measurement; what is measured is kept (Ctrl+.)")
                              : obstacle.isEmpty()
                              ? tr("Run it on the device and draw the measurement beside the prediction (Ctrl+R)")
                              : obstacle);
    // "Stop" is as wide as "Measure" was: what stands beside it stays where it is.
    m_measure->setMinimumWidth(std::max(m_measure->minimumWidth(), m_measure->sizeHint().width()));
    const char* role = ours ? "danger" : "primary";
    if (m_measure->property("role").toString() != QLatin1String(role)) {
        m_measure->setProperty("role", QString::fromLatin1(role));
        m_measure->style()->unpolish(m_measure);
        m_measure->style()->polish(m_measure);
    }
}

} // namespace memscape
