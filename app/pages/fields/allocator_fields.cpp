// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/fields/allocator_fields.h"

#include "app/pages/fields/model_field.h"
#include "core/trace/memory_policy.h"

#include <QFileDialog>
#include <QLineEdit>
#include <QStringListModel>
#include <QToolButton>

namespace memscape {

TraceField::TraceField(const ParameterSpec& spec, QWidget* parent)
    : TextField(spec, parent)
{
    askFile = [this] {
        return QFileDialog::getOpenFileName(
            this, tr("Open a snapshot, a script of requests, or the configuration of a network"), {},
            tr("Snapshots, scripts and networks (*.pickle *.pkl *.memscape-run *.txt "
               "*.json *.safetensors);;All files (*)"));
    };
    QToolButton* open = addFileButton(tr("open…"),
                                      tr("A PyTorch snapshot, lines like \"alloc a 96MiB\", \"free a\", "
                                         "\"empty_cache\", or a network's config.json"));
    open->setObjectName(QStringLiteral("openTrace"));
    open->setAccessibleName(tr("Open a snapshot or a script of requests"));
    suggest(modelList);
    edit()->setPlaceholderText(tr("gpt2, run.pickle, alloc a 96MiB; free a"));
}

SettingField::SettingField(const ParameterSpec& spec, QWidget* parent)
    : TextField(spec, parent)
{
    QStringList words{"default",
                      "recorded",
                      "expandable_segments",
                      "max_split_size_mb:128",
                      "roundup_power2_divisions:8",
                      "garbage_collection_threshold:0.8"};
    for (const PolicyWord& word : policyWords())
        words << QString::fromLatin1(word.key);
    suggest([words] { return new QStringListModel(words); });
}

Result<void> SettingField::check(const QString& text) const
{
    if (text.startsWith(u'"')) // several, to sweep
        return {};
    MEMSCAPE_TRY(setting, readSetting(text.toStdString()));
    return {};
}

} // namespace memscape
