// SPDX-License-Identifier: Apache-2.0
// Programs that are given as a Python: a shell script that answers `-m memscape_probe facts|worker`, or the real Python
// with a package `torch` that is no PyTorch. And a listener that cancels when it is told to.
#pragma once

#include "kernels/measure/backend.h"
#include "kernels/pytorch/python_torch.h"

#include <csignal>

#include <QDir>
#include <QElapsedTimer>
#include <QFile>
#include <QStandardPaths>
#include <QTemporaryDir>
#include <QTest>

#include <nlohmann/json.hpp>

namespace memscape::test {

class FakePython
{
public:
    /// What the script does for `facts` and for `worker`. $MARK is a file for its process id.
    FakePython(const QByteArray& facts, const QByteArray& worker)
    {
        const QByteArray mark = markPath().toUtf8();
        write("python",
              "#!/bin/sh\nMARK=" + mark + "\nif [ \"$3\" = facts ]; then\n" + facts + "\n:\nelse\n:\n" + worker
                  + "\nfi\n");
        QFile(path()).setPermissions(QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
    }
    QString path() const { return m_folder.filePath("python"); }
    QString markPath() const { return m_folder.filePath("pid"); }
    qint64 pid() const
    {
        QFile file(markPath());
        return file.open(QFile::ReadOnly) ? file.readAll().trimmed().toLongLong() : 0;
    }
    void write(const QString& name, const QByteArray& text) const
    {
        QDir(m_folder.path()).mkpath(QFileInfo(m_folder.filePath(name)).path());
        QFile file(m_folder.filePath(name));
        if (!file.open(QFile::WriteOnly) || file.write(text) != text.size())
            qFatal("cannot write %s", qPrintable(file.fileName()));
    }

private:
    QTemporaryDir m_folder;
};

inline bool isAlive(qint64 pid)
{
    return pid > 0 && ::kill(static_cast<pid_t>(pid), 0) == 0;
}

/// What `facts` prints of a Python that has this torch.
inline QByteArray factsLine(const QByteArray& torch = R"({"version": "2.9.1+cpu", "cuda": false})",
                            const QByteArray& probe = "0.1.0")
{
    return "echo '{\"memscape_probe\": \"" + probe + "\", \"python\": \"3.11.2\", \"torch\": " + torch + "}'";
}

inline QByteArray helloLine(const QByteArray& worker = "0.1.0")
{
    return "echo '{\"type\":\"hello\",\"protocol\":1,\"worker\":\"" + worker + "\",\"pid\":1,\"devices\":[]}'\n";
}

class Listener : public RunSink
{
public:
    explicit Listener(qint64 cancelAfter = 1'000'000)
        : m_cancelAfter(cancelAfter)
    {
        m_timer.start();
    }
    void progress(int, int, const std::string& label) override { labels.push_back(label); }
    void point(const std::string&, const Point& point) override { points.push_back(point); }
    void note(const std::string&, const std::string&, const std::string& text) override { notes.push_back(text); }
    bool cancelled() const override { return m_timer.elapsed() >= m_cancelAfter; }
    bool isForced() const override { return forced; }
    qint64 elapsed() const { return m_timer.elapsed(); }

    bool forced = false;
    std::vector<std::string> labels, notes;
    std::vector<Point> points;

private:
    QElapsedTimer m_timer;
    qint64 m_cancelAfter; ///< ms
};

inline const Experiment& training()
{
    return **findExperiment("training-memory");
}

inline Parameters parametersOf(const Experiment& experiment, const std::vector<std::string>& assignments)
{
    auto parameters = resolve(experiment.schema(), assignments);
    if (!parameters)
        qFatal("%s", parameters.error().text().c_str());
    return *parameters;
}

} // namespace memscape::test
