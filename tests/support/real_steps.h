// SPDX-License-Identifier: Apache-2.0
// Steps that PyTorch ran (tests/data/pytorch/training_steps.py and model_steps.py) beside simulated
// ones: allocations and frees in order. Left out of both sides: numbers, which are tensors of up to 8
// bytes, and what a kernel allocates within itself. Frees that follow one another are compared as a set.
#pragma once

#include "core/base/json.h"
#include "core/trace/trace.h"

#include <QtTest>

#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>

#include <algorithm>
#include <functional>
#include <vector>

namespace memscape::test {

constexpr std::int64_t numberBytes = 8;

struct Change
{
    std::int64_t bytes = 0; ///< negative: freed
    QString source;
};

inline QJsonObject recordedFile(const QString& name)
{
    QFile file(QString(TEST_DATA) + "/pytorch/" + name);
    if (!file.open(QIODevice::ReadOnly))
        qFatal("no %s", qPrintable(file.fileName()));
    return QJsonDocument::fromJson(file.readAll()).object();
}

/// The config.json of a recorded LLaMA.
inline Json llamaConfig(const QJsonObject& measured)
{
    const auto size = [&](const char* key) { return measured[key].toInteger(); };
    return {{"model_type", "llama"},
            {"hidden_size", size("hidden")},
            {"num_hidden_layers", size("layers")},
            {"num_attention_heads", size("heads")},
            {"num_key_value_heads", size("kv_heads")},
            {"intermediate_size", size("ffn")},
            {"vocab_size", size("vocab")},
            {"max_position_embeddings", size("sequence")},
            {"tie_word_embeddings", false}};
}

inline QJsonArray recordedSteps(const QString& name)
{
    return recordedFile(name)["cases"].toArray();
}

inline std::vector<Change> measuredChanges(const QJsonArray& events)
{
    std::vector<Change> changes;
    for (const QJsonValue& event : events)
        if (std::abs(event.toInteger()) > numberBytes)
            changes.push_back({event.toInteger(), {}});
    return changes;
}

inline std::vector<Change> simulatedChanges(const Trace& trace, Phase phase, int microBatch = 0)
{
    std::vector<Change> changes;
    for (const Event& event : trace.events())
        if (event.phase == phase && event.microBatch == microBatch && event.bytes > numberBytes
            && event.category != Category::Workspace)
            changes.push_back(
                {event.change(),
                 QString::fromStdString(trace.modules()[event.module] + " " + trace.names()[event.name])});
    return changes;
}

inline std::vector<Change> ordered(std::vector<Change> changes)
{
    const auto isFree = [](const Change& change) { return change.bytes < 0; };
    for (auto first = changes.begin(); first != changes.end();) {
        first = std::find_if(first, changes.end(), isFree);
        const auto last = std::find_if_not(first, changes.end(), isFree);
        std::sort(first, last, [](const Change& a, const Change& b) { return a.bytes < b.bytes; });
        first = last;
    }
    return changes;
}

inline void compareChanges(const std::vector<Change>& simulated, const std::vector<Change>& measured)
{
    const std::vector<Change> ours = ordered(simulated);
    const std::vector<Change> theirs = ordered(measured);
    for (std::size_t i = 0; i < std::min(ours.size(), theirs.size()); ++i) {
        QStringList around;
        for (std::size_t j = i > 4 ? i - 4 : 0; j < std::min({i + 10, ours.size(), theirs.size()}); ++j)
            around << QString("%1 | %2 %3 %4")
                          .arg(theirs[j].bytes, 10)
                          .arg(ours[j].bytes, 10)
                          .arg(ours[j].source, theirs[j].source);
        QVERIFY2(
            ours[i].bytes == theirs[i].bytes,
            qPrintable(QString("event %1 of %2 (PyTorch | here):\n").arg(i).arg(theirs.size()) + around.join('\n')));
    }
    QCOMPARE(ours.size(), theirs.size());
}

} // namespace memscape::test
