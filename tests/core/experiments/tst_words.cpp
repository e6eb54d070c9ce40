// SPDX-License-Identifier: Apache-2.0
// What forms, legends and tables call things says what it is to a reader who has not read the paper.
#include "core/experiment/experiment.h"

#include <QtTest>

using namespace memscape;

class TestWords : public QObject
{
    Q_OBJECT

private slots:
    void labelsAreWords()
    {
        for (const Experiment* experiment : experiments()) {
            for (const ParameterSpec& spec : experiment->schema()) {
                check(spec.label, experiment->id() + "." + spec.key);
                for (const ChoiceValue& choice : spec.choices)
                    checkJargon(choice.label, experiment->id() + "." + spec.key);
            }
            for (const SeriesSpec& series : experiment->series())
                check(series.label, experiment->id() + "." + series.key);
        }
    }

private:
    static void check(const std::string& label, const std::string& where)
    {
        QVERIFY2(label.size() > 1, where.c_str()); // "m"
        checkJargon(label, where);
    }
    static void checkJargon(const std::string& label, const std::string& where)
    {
        for (const char* word : {"makespan", "windows"})
            QVERIFY2(label.find(word) == std::string::npos, (where + ": " + label).c_str());
    }
};

QTEST_GUILESS_MAIN(TestWords)
#include "tst_words.moc"
