// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/help_dialog.h"

#include "app/document/pages.h"
#include "app/pictures/common/picture.h"
#include "app/plots/plot_view.h"
#include "app/settings/words.h"
#include "core/experiment/record.h"

#include <QDesktopServices>
#include <QDialog>
#include <QDialogButtonBox>
#include <QFile>
#include <QFileInfo>
#include <QScreen>
#include <QTextBrowser>
#include <QTextTable>
#include <QUrl>
#include <QVBoxLayout>

namespace memscape {

namespace {

/// Markdown's tables have a double frame around every cell; a little room tells cells apart as
/// well.
void quietTables(QTextDocument& document)
{
    for (QTextFrame* frame : document.rootFrame()->childFrames()) {
        auto* table = qobject_cast<QTextTable*>(frame);
        if (table == nullptr)
            continue;
        QTextTableFormat format = table->format();
        format.setBorder(0);
        format.setCellSpacing(0);
        format.setCellPadding(3);
        table->setFormat(format);
    }
}

/// What the chapter on accuracy says of the page of that title; nothing where it names none.
QString accuracyOf(const QString& title)
{
    for (const QString& part : helpChapter(QStringLiteral("accuracy")).split(QStringLiteral("\n## ")).mid(1)) {
        const auto end = part.indexOf(u'\n');
        if (part.left(end).split(QStringLiteral(", ")).contains(title))
            return part.mid(end).trimmed();
    }
    return {};
}

/// Chapters link to each other by their files' names, as they do outside of the program; the rest is for a browser.
void follow(const QUrl& link, QWidget* parent)
{
    if (!link.isRelative()) {
        QDesktopServices::openUrl(link);
        return;
    }
    const QString chapter = helpChapter(QFileInfo(link.path()).completeBaseName());
    if (!chapter.isEmpty())
        showHelp(parent, chapter.section(u'\n', 0, 0).mid(2), chapter);
}

} // namespace

QString helpChapter(const QString& name)
{
    QFile file(QStringLiteral(":/help/%1.md").arg(name));
    return file.open(QIODevice::ReadOnly) ? QString::fromUtf8(file.readAll()) : QString();
}

QString shortcutsHelp(const Actions& actions)
{
    QString text =
        QStringLiteral("# %1\n\n| %2 | %3 |\n|---|---|\n").arg(tr("Keyboard shortcuts"), tr("What"), tr("Keys"));
    for (const QAction* action : actions.all()) {
        QStringList keys;
        for (const QKeySequence& sequence : action->shortcuts())
            keys << sequence.toString(QKeySequence::NativeText);
        if (!keys.isEmpty())
            text += QStringLiteral("| %1 | %2 |\n")
                        .arg(QString(action->text()).remove(u'&'), keys.join(QStringLiteral(", ")));
    }
    for (const PageInfo& page : pagesOf(experiments())) {
        if (const QString keys = pictureShortcuts(page.id); !keys.isEmpty())
            text += QStringLiteral("\n## %1\n\n%2\n")
                        .arg(tr("On the picture of %1").arg(QString::fromStdString(page.title)), keys);
    }
    text += QStringLiteral("\n## %1\n\n%2\n\n## %3\n\n%4\n")
                .arg(tr("On a plot"), PlotView::shortcuts(), tr("In the records"),
                     tr("P pins, N notes, F2 renames, Del deletes; Ctrl+click selects a second "
                        "record to compare."));
    text += QStringLiteral("\n## %1\n\n%2\n")
                .arg(tr("On the page Claims"),
                     tr("/ or Ctrl+F searches, arrows walk through the list, Enter shows the first case."));
    return text;
}

QString experimentHelp(const Experiment& experiment)
{
    QString text = QStringLiteral("# %1\n\n*%2*\n\n%3\n\n## %4\n\n")
                       .arg(QString::fromStdString(experiment.title()), QString::fromStdString(experiment.question()),
                            QString::fromStdString(experiment.help()), tr("Parameters"));
    for (const ParameterSpec& spec : experiment.schema()) {
        text += QStringLiteral("- **%1** (`%2`): %3\n")
                    .arg(QString::fromStdString(spec.label), QString::fromStdString(spec.key),
                         QString::fromStdString(spec.help));
        for (const ChoiceValue& choice : spec.choices)
            text += QStringLiteral("    - `%1`: %2\n")
                        .arg(QString::fromStdString(choice.key), QString::fromStdString(choice.help));
    }
    if (const QString accuracy = accuracyOf(QString::fromStdString(experiment.title())); !accuracy.isEmpty())
        text += QStringLiteral("\n## %1\n\n%2\n").arg(tr("What it was checked against"), accuracy);
    return text;
}

QString aboutHelp()
{
    return tr("# Memscape %1\n\nSee where a machine-learning workload's bytes go: predicted and "
              "measured on the same axes.\n\n"
              "The window is free software under the GNU General Public License, version 3 or "
              "later; the engine, the kernels and the command line are under the Apache License "
              "2.0. Drawn with Qt and QCustomPlot.\n")
        .arg(QString::fromStdString(programVersion()));
}

void showHelp(QWidget* parent, const QString& title, const QString& markdown)
{
    auto* dialog = new QDialog(parent);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setWindowTitle(title);
    auto* text = new QTextBrowser(dialog);
    text->setMarkdown(markdown);
    quietTables(*text->document());
    text->setOpenLinks(false);
    QObject::connect(text, &QTextBrowser::anchorClicked, dialog, [dialog](const QUrl& link) { follow(link, dialog); });
    text->setAccessibleName(title);
    auto* buttons = new QDialogButtonBox(QDialogButtonBox::Close, dialog);
    QObject::connect(buttons, &QDialogButtonBox::rejected, dialog, &QDialog::close);
    auto* column = new QVBoxLayout(dialog);
    column->addWidget(text, 1);
    column->addWidget(buttons);
    // wide enough for the widest table of the chapters, within the screen
    dialog->resize(QSize(900, 700).boundedTo(dialog->screen()->availableSize() * 0.9));
    dialog->show();
}

} // namespace memscape
