// SPDX-License-Identifier: GPL-3.0-or-later
// Markdown of a lab as tall as its words need. Pictures come from the lab's folder alone, links open in the browser
// where they lead to the web, and nowhere else: a lab is a file that someone else wrote.
#pragma once

#include <QTextBrowser>

namespace memscape {

class MarkdownView : public QTextBrowser
{
    Q_OBJECT

public:
    explicit MarkdownView(QWidget* parent = nullptr);
    void display(const QString& markdown, const QString& folder);
    QVariant loadResource(int type, const QUrl& name) override;

protected:
    void resizeEvent(QResizeEvent* event) override;
    void changeEvent(QEvent* event) override;

private:
    void fit();

    QString m_markdown, m_folder;
};

} // namespace memscape
