// SPDX-License-Identifier: Apache-2.0
#include "core/lab/lab_attempt.h"

#include "core/base/text.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace memscape {

namespace {

using AnswersMigration = void (*)(Json&);

/// answersMigrations[i] turns a document of version i + 1 into version i + 2. There is only version 1 yet.
constexpr std::array<AnswersMigration, answersVersion - 1> answersMigrations{};

Json keysBeyond(const Json& json, std::initializer_list<const char*> known)
{
    Json extra = Json::object();
    for (const auto& [key, value] : json.items())
        if (std::ranges::none_of(known, [&, &key = key](const char* one) { return key == one; }))
            extra[key] = value;
    return extra;
}

void addBeyond(Json& json, const Json& extra)
{
    if (extra.is_object())
        for (const auto& [key, value] : extra.items())
            if (!json.contains(key))
                json[key] = value;
}

Result<LabStepState> stateFromJson(const JsonReader& reader)
{
    LabStepState state;
    if (reader.has("answers")) {
        MEMSCAPE_TRY(answers, reader.at("answers"));
        MEMSCAPE_TRY(members, answers.members());
        for (const auto& [key, node] : members)
            if (!node.node().is_null())
                state.answers[key] = node.node();
    }
    MEMSCAPE_SET(state.answered, reader.string("answered", ""));
    MEMSCAPE_SET(state.locked, reader.string("locked", ""));
    MEMSCAPE_TRY(hints, reader.integer("hints", 0));
    MEMSCAPE_TRY(record, reader.integer("record", -1));
    MEMSCAPE_SET(state.replay, reader.string("replay", ""));
    state.hints = std::size_t(std::clamp<std::int64_t>(hints, 0, 1000));
    if (record >= 0)
        state.record = std::size_t(record);
    state.extra = keysBeyond(reader.node(), {"answers", "answered", "locked", "hints", "record", "replay"});
    return state;
}

Json stateToJson(const LabStepState& state)
{
    Json json = Json::object();
    if (!state.answers.empty())
        json["answers"] = state.answers;
    if (!state.answered.empty())
        json["answered"] = state.answered;
    if (!state.locked.empty())
        json["locked"] = state.locked;
    if (state.hints > 0)
        json["hints"] = state.hints;
    if (state.record)
        json["record"] = *state.record;
    if (!state.replay.empty())
        json["replay"] = state.replay;
    addBeyond(json, state.extra);
    return json;
}

} // namespace

LabAttempt::LabAttempt(std::shared_ptr<const Lab> lab, std::string student, std::string started)
    : m_lab(std::move(lab))
    , m_student(std::move(student))
    , m_started(std::move(started))
    , m_hash(m_lab->hash)
{
    m_study.title = m_lab->title;
}

Result<LabAttempt> LabAttempt::parse(std::shared_ptr<const Lab> lab, const std::string& text)
{
    JsonLimits limits;
    limits.bytes = 64u << 20;
    MEMSCAPE_TRY(json, parseJson(text, limits));
    const JsonReader outer(json);
    MEMSCAPE_TRY(format, outer.string("format"));
    if (format != "memscape-answers")
        return fail("document.format", fmt::format("this is a {}, not the answers to a lab", quotedForMessage(format)),
                    "answers begin with {\"format\": \"memscape-answers\"", "format");
    MEMSCAPE_TRY(version, outer.integer("version", 0));
    if (version < 1)
        return fail("document.format", "answers say their version, 1 or higher", {}, "version");
    if (version > answersVersion)
        return fail("document.newer",
                    fmt::format("version {} is newer than this program reads (version {})", version, answersVersion),
                    "update Memscape to open it", "version");
    for (std::size_t i = std::size_t(version); i <= answersMigrations.size(); ++i)
        answersMigrations[i - 1](json);
    const JsonReader reader(json);
    MEMSCAPE_TRY(id, reader.string("lab"));
    if (id != lab->id)
        return fail("lab.answers",
                    fmt::format("these are answers to the lab {}, not {}", quotedForMessage(id), lab->id),
                    "grade them with their own lab", "lab");
    MEMSCAPE_TRY(student, reader.string("student", ""));
    MEMSCAPE_TRY(started, reader.string("started", ""));
    MEMSCAPE_TRY(hash, reader.string("hash", ""));
    LabAttempt attempt(std::move(lab), student, started);
    attempt.m_hash = hash;
    if (reader.has("study")) {
        MEMSCAPE_TRY(node, reader.at("study"));
        auto study = studyFromJson(node.node());
        if (!study) {
            Error error = study.error();
            error.place = error.place.empty() ? "study" : "study." + error.place;
            return fail(std::move(error));
        }
        attempt.m_study = std::move(*study);
    }
    if (reader.has("steps")) {
        MEMSCAPE_TRY(steps, reader.at("steps"));
        MEMSCAPE_TRY(members, steps.members());
        for (const auto& [key, node] : members) {
            MEMSCAPE_TRY(state, stateFromJson(node));
            if (state.record && *state.record >= attempt.m_study.records.size())
                return fail("lab.answers", fmt::format("there is no record {} in the study", *state.record), {},
                            node.path() + ".record");
            attempt.m_steps[key] = std::move(state);
        }
    }
    attempt.m_extra = keysBeyond(json, {"format", "version", "lab", "hash", "student", "started", "steps", "study"});
    return attempt;
}

Json LabAttempt::toJson() const
{
    Json steps = Json::object();
    for (const LabStep& step : m_lab->steps)
        if (const LabStepState* one = state(step.id))
            steps[step.id] = stateToJson(*one);
    for (const auto& [id, one] : m_steps) // of another version of the lab
        if (!steps.contains(id))
            steps[id] = stateToJson(one);
    Json json{{"format", "memscape-answers"},
              {"version", answersVersion},
              {"lab", m_lab->id},
              {"hash", m_hash},
              {"student", m_student},
              {"started", m_started},
              {"steps", std::move(steps)},
              {"study", studyToJson(m_study)}};
    addBeyond(json, m_extra);
    return json;
}

const std::vector<std::pair<std::string, std::string>>& LabAttempt::variant() const
{
    static const std::vector<std::pair<std::string, std::string>> none;
    return m_lab->variants.empty() ? none : m_lab->variants[labVariant(*m_lab, m_student)];
}

const LabStepState* LabAttempt::state(std::string_view step) const
{
    const auto found = m_steps.find(step);
    return found == m_steps.end() ? nullptr : &found->second;
}

/// One pass in the lab's order: a step names only steps before it.
std::vector<bool> LabAttempt::doneSteps() const
{
    std::vector<bool> done;
    const auto isDoneBefore = [&](const std::string& id) {
        return done[std::size_t(m_lab->step(id) - m_lab->steps.data())];
    };
    for (const LabStep& step : m_lab->steps) {
        const bool open = std::ranges::all_of(step.after, isDoneBefore);
        const bool ran = step.kind != LabStepKind::Measure || run(step.id);
        const bool answered =
            std::ranges::all_of(step.questions, [&](const LabQuestion& one) { return given(one) != nullptr; });
        done.push_back(open && (step.kind == LabStepKind::Predict ? isLocked(step.id) : ran && answered));
    }
    return done;
}

bool LabAttempt::isOpen(std::string_view id) const
{
    const LabStep* step = m_lab->step(id);
    const auto done = doneSteps();
    return step && std::ranges::all_of(step->after, [&](const std::string& one) {
               return done[std::size_t(m_lab->step(one) - m_lab->steps.data())];
           });
}

bool LabAttempt::isLocked(std::string_view step) const
{
    const LabStepState* kept = state(step);
    return kept && !kept->locked.empty();
}

bool LabAttempt::isDone(std::string_view id) const
{
    const LabStep* step = m_lab->step(id);
    return step && doneSteps()[std::size_t(step - m_lab->steps.data())];
}

Result<const LabStep*> LabAttempt::openStep(std::string_view id) const
{
    const LabStep* step = m_lab->step(id);
    if (!step) {
        std::vector<std::string> ids;
        for (const LabStep& one : m_lab->steps)
            ids.push_back(one.id);
        return fail("lab.step", fmt::format("the lab has no step \"{}\"", quotedForMessage(id)), didYouMean(id, ids));
    }
    for (const std::string& before : step->after) {
        if (isDone(before))
            continue;
        const bool locks = m_lab->step(before)->kind == LabStepKind::Predict;
        return fail("lab.closed", fmt::format("step {} is not open yet: {} is not done", step->id, before),
                    locks ? "answer it and lock it first" : "finish it first");
    }
    return step;
}

Result<void> LabAttempt::answer(std::string_view id, std::string_view key, const Json& value, const std::string& time)
{
    MEMSCAPE_TRY(step, openStep(id));
    if (isLocked(id))
        return fail("lab.locked", fmt::format("step {} is locked: a prediction stays as it was made", step->id));
    const auto question = std::ranges::find(step->questions, key, &LabQuestion::key);
    if (question == step->questions.end()) {
        std::vector<std::string> keys;
        for (const LabQuestion& one : step->questions)
            keys.push_back(one.key);
        return fail("lab.question", fmt::format("step {} has no question \"{}\"", step->id, quotedForMessage(key)),
                    keys.empty() ? "it asks nothing" : didYouMean(key, keys));
    }
    MEMSCAPE_CHECK(readLabAnswer(*question, *step, value));
    MEMSCAPE_CHECK(checkLabNumbers(*question, value));
    LabStepState& kept = m_steps[step->id];
    kept.answers[question->key] = value;
    kept.answered = time;
    return {};
}

Result<void> LabAttempt::lock(std::string_view id, const std::string& time)
{
    MEMSCAPE_TRY(step, openStep(id));
    if (step->kind != LabStepKind::Predict)
        return fail("lab.step", fmt::format("step {} is no prediction: there is nothing to lock", step->id));
    if (isLocked(id))
        return fail("lab.locked", fmt::format("step {} is locked already", step->id));
    for (const LabQuestion& one : step->questions)
        if (!given(one))
            return fail("lab.answer", "no answer yet", "answer every question, then lock", one.key);
    m_steps[step->id].locked = time;
    return {};
}

Result<void> LabAttempt::attach(std::string_view id, Record record, const std::string& time)
{
    MEMSCAPE_TRY(step, openStep(id));
    MEMSCAPE_CHECK(checkLabRun(*this, *step, record));
    LabStepState& kept = m_steps[step->id];
    kept.replay.clear();
    kept.answered = time;
    if (kept.record) {
        m_study.records[*kept.record] = std::move(record);
        return {};
    }
    kept.record = m_study.records.size();
    m_study.records.push_back(std::move(record));
    return {};
}

Result<void> LabAttempt::replay(std::string_view id, const std::string& time)
{
    MEMSCAPE_TRY(step, openStep(id));
    if (!step->request || step->request->replay.empty())
        return fail("lab.run", fmt::format("step {} has no recorded run", step->id), "measure it on this machine");
    LabStepState& kept = m_steps[step->id];
    kept.record.reset();
    kept.replay = step->request->replay;
    kept.answered = time;
    return {};
}

Result<std::string> LabAttempt::hint(std::string_view id)
{
    MEMSCAPE_TRY(step, openStep(id));
    LabStepState& kept = m_steps[step->id];
    if (kept.hints >= step->hints.size())
        return fail("lab.hint", fmt::format("step {} has no further hint", step->id));
    return step->hints[kept.hints++].text;
}

const Json* LabAttempt::given(const LabQuestion& question) const
{
    const LabStep* step = m_lab->stepOf(question);
    const LabStepState* kept = step ? state(step->id) : nullptr;
    if (!kept)
        return nullptr;
    const auto found = kept->answers.find(question.key);
    return found == kept->answers.end() ? nullptr : &found->second;
}

const Record* LabAttempt::run(std::string_view id) const
{
    const LabStepState* kept = state(id);
    if (!kept)
        return nullptr;
    if (kept->record)
        return &m_study.records[*kept->record];
    const auto replayed = m_lab->replays.find(kept->replay);
    return replayed == m_lab->replays.end() ? nullptr : &replayed->second;
}

Result<std::vector<std::pair<std::string, std::string>>> LabAttempt::parameters(const LabStep& step) const
{
    std::vector<std::pair<std::string, std::string>> all;
    for (const auto& [key, text] : step.request->parameters) {
        MEMSCAPE_TRY(filled, filledLabParameter(text, variant()));
        all.emplace_back(key, filled);
    }
    const auto put = [&](const std::pair<std::string, std::string>& one) {
        const auto at = std::ranges::find_if(all, [&](const auto& other) { return other.first == one.first; });
        if (at == all.end())
            all.push_back(one);
        else
            at->second = one.second;
    };
    for (const auto& one : step.request->start)
        put(one);
    for (const LabQuestion& question : step.questions) {
        const Json* value = given(question);
        if (question.kind != LabQuestionKind::Parameters || !value)
            continue;
        MEMSCAPE_TRY(answer, readLabAnswer(question, step, *value));
        for (const auto& one : answer.parameters)
            put(one);
    }
    return all;
}

Result<void> checkLabRun(const LabAttempt& attempt, const LabStep& step, const Record& record)
{
    if (!step.request || step.kind != LabStepKind::Measure)
        return fail("lab.run", fmt::format("step {} takes no run", step.id));
    if (record.experiment != step.request->experiment)
        return fail("lab.run",
                    fmt::format("this is a run of {}, step {} asks for {}", quotedForMessage(record.experiment),
                                step.id, step.request->experiment));
    if (!record.measured)
        return fail("lab.run", "the record holds no measurement", "make one with memscape-cli measure");
    const Schema& schema = (*findExperiment(record.experiment))->schema();
    MEMSCAPE_TRY(texts, attempt.parameters(step));
    MEMSCAPE_TRY(wanted, resolve(schema, texts));
    const auto differs = [&](const std::string& key, const std::string& is, const std::string& should) {
        return fail("lab.run", fmt::format("the run has {} = {}, step {} asks for {}", key, is, step.id, should),
                    "measure with the parameters that the step names");
    };
    for (const auto& [key, text] : texts) {
        const bool chosen = std::ranges::find(step.request->free, key) != step.request->free.end();
        const bool swept = wanted.sweep() && wanted.sweep()->key == key;
        if (chosen || swept)
            continue;
        for (const auto& [name, value] : wanted.values()) {
            const auto is = std::ranges::find_if(record.parameters.values(),
                                                 [&, &key = key](const auto& one) { return one.first == key; });
            if (name == key && is != record.parameters.values().end() && is->second != value)
                return differs(key, valueText(is->second), valueText(value));
        }
    }
    if (wanted.sweep() && (!record.parameters.sweep() || !(*record.parameters.sweep() == *wanted.sweep())))
        return differs(wanted.sweep()->key, record.parameters.sweep() ? "another sweep" : "one value",
                       fmt::format("a sweep of {} values", wanted.sweep()->values.size()));
    return {};
}

} // namespace memscape
