// SPDX-License-Identifier: Apache-2.0
// What forms, legends and tables call things says what it is to a reader who has not read the paper.
#include "core/device/catalogue.h"
#include "core/experiment/experiment.h"

#include <QtTest>

#include <string_view>

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

    /// A record takes what begins like a number for one, and refuses the rest.
    void figuresOfWordsCanBeReadAgain()
    {
        for (const Experiment* experiment : experiments()) {
            for (const char* id : {"cpu", "nvidia-h200"}) {
                const Device device = *findDevice(id);
                const auto figures = experiment->predictPoint(device, standardParameters(*experiment, device));
                for (const Figure& figure : figures.value_or(Figures())) {
                    const std::string where = experiment->id() + "." + figure.key + ": " + figure.text();
                    QVERIFY2(figure.isNumber()
                                 || std::string_view("0123456789+-.").find(figure.text()[0]) == std::string_view::npos,
                             where.c_str());
                }
            }
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
