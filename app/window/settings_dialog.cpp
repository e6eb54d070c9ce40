// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/settings_dialog.h"

#include "app/pages/cards/card.h"
#include "app/pages/fields/quiet_widgets.h"

#include <QCheckBox>
#include <QComboBox>
#include <QDialogButtonBox>
#include <QFileDialog>
#include <QFormLayout>
#include <QHeaderView>
#include <QKeySequenceEdit>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSpinBox>
#include <QTabWidget>
#include <QTableWidget>

namespace memscape {

SettingsDialog::SettingsDialog(Settings& settings, Actions& actions, QWidget* parent)
    : QDialog(parent)
    , m_settings(settings)
    , m_actions(actions)
    , m_tabs(new QTabWidget(this))
{
    setWindowTitle(tr("Settings"));
    m_tabs->addTab(lookPage(), tr("Look"));
    m_tabs->addTab(workersPage(), tr("Workers"));
    m_tabs->addTab(shortcutsPage(), tr("Shortcuts"));
    m_tabs->addTab(exportPage(), tr("Export"));
    auto* buttons = new QDialogButtonBox(QDialogButtonBox::Close, this);
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::accept);
    auto* column = new QVBoxLayout(this);
    column->addWidget(m_tabs);
    column->addWidget(buttons);
    resize(620, 480);
}

void SettingsDialog::showWorkers()
{
    m_tabs->setCurrentIndex(1);
}

QWidget* SettingsDialog::lookPage()
{
    auto* page = new QWidget(this);
    auto* form = new QFormLayout(page);
    form->setSpacing(12);
    auto* theme = new QuietComboBox(page);
    theme->addItems({tr("As the system"), tr("Light"), tr("Dark")});
    theme->setCurrentIndex(int(m_settings.theme()));
    connect(theme, &QComboBox::activated, this, [this](int index) { m_settings.setTheme(ThemeChoice(index)); });
    auto* bytes = new QuietComboBox(page);
    bytes->addItems({tr("GiB = 2³⁰ bytes"), tr("GB = 10⁹ bytes")});
    bytes->setCurrentIndex(int(m_settings.byteStyle()));
    connect(bytes, &QComboBox::activated, this, [this](int index) { m_settings.setByteStyle(ByteStyle(index)); });
    auto* zoom = new QSpinBox(page);
    zoom->setButtonSymbols(QAbstractSpinBox::NoButtons);
    zoom->setRange(50, 300);
    zoom->setSingleStep(10);
    zoom->setSuffix(QStringLiteral(" %"));
    zoom->setValue(m_settings.fontZoom());
    connect(zoom, &QSpinBox::valueChanged, this, [this](int percent) { m_settings.setFontZoom(percent); });
    auto* motion = new QCheckBox(tr("Reduce motion: pictures do not move by themselves"), page);
    motion->setChecked(m_settings.reducedMotion());
    connect(motion, &QCheckBox::toggled, this, [this](bool on) { m_settings.setReducedMotion(on); });
    form->addRow(tr("Theme"), theme);
    form->addRow(tr("Bytes are written as"), bytes);
    form->addRow(tr("Text size"), zoom);
    form->addRow(QString(), motion);
    return page;
}

QWidget* SettingsDialog::workersPage()
{
    auto* page = new QWidget(this);
    auto* column = new QVBoxLayout(page);
    column->addWidget(toneLabel(tr("Measurements run in a worker process. Any command that starts "
                                   "“memscape-cli worker” somewhere makes that machine a device: "
                                   "ssh lab-gpu memscape-cli worker"),
                                "dim", page));
    m_workers = new QTableWidget(0, 2, page);
    m_workers->setHorizontalHeaderLabels({tr("Name"), tr("Command")});
    m_workers->horizontalHeader()->setSectionResizeMode(1, QHeaderView::Stretch);
    m_workers->verticalHeader()->hide();
    m_workers->setSelectionBehavior(QAbstractItemView::SelectRows);
    m_workers->setEditTriggers(QAbstractItemView::NoEditTriggers);
    m_workers->setTabKeyNavigation(false);
    m_workers->setAccessibleName(tr("Workers"));
    auto* add = new QPushButton(tr("Add…"), page);
    auto* remove = new QPushButton(tr("Remove"), page);
    connect(add, &QPushButton::clicked, this, &SettingsDialog::addWorkerWanted);
    remove->setObjectName(QStringLiteral("removeWorker"));
    connect(remove, &QPushButton::clicked, this, &SettingsDialog::removeWorker);
    const auto enableRemove = [this, remove] { remove->setEnabled(m_workers->currentRow() >= 0); };
    connect(m_workers, &QTableWidget::itemSelectionChanged, this, enableRemove);
    connect(&m_settings, &Settings::changed, this, [this](Settings::Key key) {
        if (key == Settings::Key::Workers)
            fillWorkers();
    });
    auto* row = new QHBoxLayout;
    row->addWidget(add);
    row->addWidget(remove);
    row->addStretch(1);
    column->addWidget(m_workers, 1);
    column->addLayout(row);
    column->addSpacing(12);
    column->addWidget(toneLabel(tr("Training and inference steps are measured in your own PyTorch: in the python3 of "
                                   "PATH, or in this one (a virtual environment's, say)"),
                                "dim", page));
    column->addLayout(pythonRow(page));
    fillWorkers();
    enableRemove();
    return page;
}

QLayout* SettingsDialog::pythonRow(QWidget* page)
{
    auto* path = new QLineEdit(m_settings.python(), page);
    path->setObjectName(QStringLiteral("python"));
    path->setAccessibleName(tr("Python with PyTorch"));
    path->setPlaceholderText(QStringLiteral("python3"));
    path->setClearButtonEnabled(true);
    connect(path, &QLineEdit::editingFinished, this, [this, path] { m_settings.setPython(path->text()); });
    auto* browse = new QPushButton(tr("Choose…"), page);
    connect(browse, &QPushButton::clicked, this, [this, path] {
        const QString chosen = QFileDialog::getOpenFileName(this, tr("Python with PyTorch"), path->text());
        if (chosen.isEmpty())
            return;
        path->setText(chosen);
        m_settings.setPython(chosen);
    });
    auto* row = new QHBoxLayout;
    row->addWidget(path, 1);
    row->addWidget(browse);
    return row;
}

void SettingsDialog::fillWorkers()
{
    const std::vector<SavedWorker> workers = m_settings.workers();
    m_workers->setRowCount(int(workers.size()));
    for (int i = 0; i < int(workers.size()); ++i) {
        m_workers->setItem(i, 0, new QTableWidgetItem(workers[std::size_t(i)].name));
        m_workers->setItem(i, 1, new QTableWidgetItem(workers[std::size_t(i)].command));
    }
}

void SettingsDialog::removeWorker()
{
    const int row = m_workers->currentRow();
    std::vector<SavedWorker> workers = m_settings.workers();
    if (row < 0 || row >= int(workers.size()))
        return;
    workers.erase(workers.begin() + row);
    m_settings.setWorkers(workers);
}

QWidget* SettingsDialog::shortcutsPage()
{
    auto* page = new QWidget(this);
    auto* column = new QVBoxLayout(page);
    const QList<QAction*>& all = m_actions.all();
    auto* table = new QTableWidget(int(all.size()), 2, page);
    table->setHorizontalHeaderLabels({tr("Action"), tr("Shortcut")});
    table->horizontalHeader()->setSectionResizeMode(0, QHeaderView::Stretch);
    table->horizontalHeader()->resizeSection(1, 180);
    table->verticalHeader()->hide();
    table->setEditTriggers(QAbstractItemView::NoEditTriggers);
    table->setAccessibleName(tr("Shortcuts"));
    for (int i = 0; i < int(all.size()); ++i) {
        const QAction* action = all.at(i);
        auto* item = new QTableWidgetItem(QString(action->text()).remove(u'&'));
        item->setToolTip(action->statusTip());
        table->setItem(i, 0, item);
        auto* edit = new QKeySequenceEdit(action->shortcut(), table);
        edit->setAccessibleName(tr("Shortcut of %1").arg(item->text()));
        const QString id = Actions::id(action);
        connect(edit, &QKeySequenceEdit::editingFinished, this,
                [this, edit, id] { changeShortcut(id, edit->keySequence().toString(QKeySequence::PortableText)); });
        table->setCellWidget(i, 1, edit);
    }
    m_conflicts = toneLabel({}, "bad", page);
    auto* hint = toneLabel(tr("Press the new keys; an empty shortcut restores the standard one."), "faint", page);
    column->addWidget(table, 1);
    column->addWidget(m_conflicts);
    column->addWidget(hint);
    m_conflicts->hide();
    return page;
}

void SettingsDialog::changeShortcut(const QString& id, const QString& keys)
{
    m_settings.setShortcut(id, keys);
    m_actions.setShortcut(id, keys);
    const QStringList conflicts = m_actions.conflicts();
    m_conflicts->setText(tr("Used twice: %1").arg(conflicts.join(QStringLiteral("; "))));
    m_conflicts->setVisible(!conflicts.isEmpty());
}

QWidget* SettingsDialog::exportPage()
{
    auto* page = new QWidget(this);
    auto* form = new QFormLayout(page);
    form->setSpacing(12);
    const ExportDefaults defaults = m_settings.exportDefaults();
    auto* format = new QuietComboBox(page);
    format->addItems({QStringLiteral("png"), QStringLiteral("svg"), QStringLiteral("pdf")});
    format->setCurrentText(defaults.format);
    auto* width = new QSpinBox(page);
    auto* height = new QSpinBox(page);
    for (QSpinBox* box : {width, height}) {
        box->setButtonSymbols(QAbstractSpinBox::NoButtons);
        box->setRange(200, 16000);
        box->setSuffix(tr(" pixels"));
    }
    width->setValue(defaults.size.width());
    height->setValue(defaults.size.height());
    auto* follow = new QCheckBox(tr("Colours as on screen, instead of light as paper is"), page);
    follow->setChecked(defaults.followTheme);
    const auto store = [this, format, width, height, follow] {
        ExportDefaults next = m_settings.exportDefaults();
        next.format = format->currentText();
        next.size = {width->value(), height->value()};
        next.followTheme = follow->isChecked();
        m_settings.setExportDefaults(next);
    };
    connect(format, &QComboBox::activated, this, store);
    connect(width, &QSpinBox::valueChanged, this, store);
    connect(height, &QSpinBox::valueChanged, this, store);
    connect(follow, &QCheckBox::toggled, this, store);
    form->addRow(tr("Kind of picture"), format);
    form->addRow(tr("Width"), width);
    form->addRow(tr("Height"), height);
    form->addRow(QString(), follow);
    return page;
}

} // namespace memscape
