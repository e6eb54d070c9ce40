// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/fields/model_field.h"

#include "core/network/model_names.h"

#include <QFileDialog>
#include <QLineEdit>
#include <QStandardItemModel>
#include <QToolButton>

namespace memscape {

QAbstractItemModel* modelList()
{
    auto* list = new QStandardItemModel;
    for (const KnownModel& known : knownModels()) {
        auto* item = new QStandardItem(QString::fromStdString(known.name));
        item->setToolTip(QString::fromStdString(known.title));
        list->appendRow(item);
    }
    return list;
}

ModelField::ModelField(const ParameterSpec& spec, QWidget* parent)
    : TextField(spec, parent)
{
    askFile = [this] {
        return QFileDialog::getOpenFileName(
            this, tr("Open the configuration or the weights of a network"), {},
            tr("Networks (config.json *.safetensors *.safetensors.index.json *.gguf *.json);;All files "
               "(*)"));
    };
    QToolButton* open = addFileButton(tr("open config.json…"),
                                      tr("A Hugging Face configuration or safetensors weights; dropping the file on "
                                         "the window does the same"));
    open->setObjectName(QStringLiteral("openModel"));
    open->setAccessibleName(tr("Open a network's config.json"));
    suggest(modelList);
    edit()->setPlaceholderText(tr("llama-2-7b, params:7.5e9, a config.json…"));
}

Result<void> ModelField::check(const QString& text) const
{
    const bool isNone = text.toStdString() == spec().standard && spec().standard == "none"; // of a draft
    if (isNone || text.startsWith(u'"')) // several, to sweep: each is looked at by its prediction
        return {};
    // Whether an architecture that is not known is refused is another field's: the prediction says it.
    MEMSCAPE_TRY(model, readModel(text.toStdString(), UnknownArchitecture::LikeLlama));
    return {};
}

} // namespace memscape
