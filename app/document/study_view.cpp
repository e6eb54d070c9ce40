// SPDX-License-Identifier: GPL-3.0-or-later
// Study.view to and from the state of the pages. Reading is lenient: a page whose parameters no
// longer fit starts from its defaults and a note says so; unknown keys and pages are kept.
#include "app/document/pages.h"
#include "app/document/study_document.h"

#include <algorithm>
#include <array>
#include <iterator>

namespace memscape {

namespace {

/// The keys of an object but those in `known`.
template <typename Keys> Json unknownKeys(const Json& object, const Keys& known)
{
    Json rest = Json::object();
    for (const auto& [key, value] : object.items()) {
        if (std::find(std::begin(known), std::end(known), key) == std::end(known))
            rest[key] = value;
    }
    return rest.empty() ? Json() : rest;
}

std::map<std::string, Json> readSettings(const Json& object)
{
    std::map<std::string, Json> settings;
    if (object.is_object()) {
        for (const auto& [key, value] : object.items())
            settings[key] = value;
    }
    return settings;
}

Json settingsJson(const std::map<std::string, Json>& settings)
{
    Json object = Json::object();
    for (const auto& [key, value] : settings) {
        if (!value.is_null())
            object[key] = value;
    }
    return object;
}

PageState readPage(const std::string& experiment, const Json& json, std::vector<Error>& notes)
{
    const std::string place = "view.pages." + experiment;
    PageState state;
    const auto found = findExperiment(experiment);
    const bool isKnown = found || findToolPage(experiment);
    if (!isKnown || !json.is_object()) {
        state.foreign = json;
        return state;
    }
    const JsonReader reader(json, place);
    if (const auto node = reader.at("parameters"); node && found) {
        if (auto parameters = parametersFromJson((*found)->schema(), *node))
            state.parameters = std::move(*parameters);
        else
            notes.push_back(parameters.error());
    }
    if (auto device = reader.string("device", ""))
        state.device = std::move(*device);
    else
        notes.push_back(device.error());
    if (json.contains("settings"))
        state.settings = readSettings(json["settings"]);
    state.foreign = unknownKeys(json, std::array{"parameters", "device", "settings"});
    return state;
}

Json pageJson(const PageState& state)
{
    Json json = Json::object();
    if (state.parameters)
        json["parameters"] = parametersToJson(*state.parameters);
    if (!state.device.empty())
        json["device"] = state.device;
    if (Json settings = settingsJson(state.settings); !settings.empty())
        json["settings"] = std::move(settings);
    if (state.foreign.is_object()) {
        for (const auto& [key, value] : state.foreign.items()) {
            if (!json.contains(key))
                json[key] = value;
        }
    } else if (!state.foreign.is_null() && json.empty()) {
        return state.foreign;
    }
    return json;
}

} // namespace

void StudyDocument::readView()
{
    m_pages.clear();
    m_page.clear();
    m_openingNotes.clear();
    m_foreignView = Json();
    const Json& view = m_study.view;
    if (!view.is_object())
        return;
    if (const auto page = JsonReader(view, "view").string("page", ""))
        m_page = *page;
    if (const auto pages = view.find("pages"); pages != view.end() && pages->is_object()) {
        for (const auto& [experiment, state] : pages->items())
            m_pages[experiment] = readPage(experiment, state, m_openingNotes);
    }
    if (view.contains("settings"))
        m_pages[""].settings = readSettings(view["settings"]);
    if (const auto device = JsonReader(view, "view").string("device", ""); device && !device->empty())
        m_pages[""].device = *device;
    m_foreignView = unknownKeys(view, std::array{"page", "pages", "device", "settings"});
}

Json StudyDocument::viewJson() const
{
    Json view = Json::object();
    if (!m_page.empty())
        view["page"] = m_page;
    Json pages = Json::object();
    for (const auto& [experiment, state] : m_pages) {
        if (experiment.empty())
            continue;
        if (Json json = pageJson(state); !json.empty())
            pages[experiment] = std::move(json);
    }
    if (!pages.empty())
        view["pages"] = std::move(pages);
    if (!lastDevice().empty())
        view["device"] = lastDevice();
    if (const PageState* whole = findPage("")) {
        if (Json settings = settingsJson(whole->settings); !settings.empty())
            view["settings"] = std::move(settings);
    }
    if (m_foreignView.is_object()) {
        for (const auto& [key, value] : m_foreignView.items())
            view[key] = value;
    }
    return view;
}

Study StudyDocument::study() const
{
    Study study = m_study;
    study.view = viewJson();
    return study;
}

std::string StudyDocument::text() const
{
    return jsonText(studyToJson(study()));
}

} // namespace memscape
