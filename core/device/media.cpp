// SPDX-License-Identifier: Apache-2.0
#include "core/device/media.h"

#include "core/base/json_file.h"
#include "core/device/catalogue.h"
#include "core/device/device_fields.h"

#include <algorithm>

#include <fmt/format.h>

namespace memscape {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t mediaFileLimit = 1u << 20; ///< B
constexpr std::size_t mostMedia = 64;
constexpr Range mediumRateRange{1e15};
constexpr Range mediumWaitRange{1e3, true};

Medium mediumOf(const Fields& fields)
{
    Medium medium;
    medium.id = fields.requiredText("id");
    medium.name = fields.requiredText("name");
    medium.isNetwork = fields.boolean("network", false);
    medium.bandwidth = fields.sourced("bandwidth", mediumRateRange);
    medium.latency = fields.sourced("latency", mediumWaitRange);
    if (!fields.failed() && !medium.bandwidth.known())
        fields.refuse("bandwidth", "is missing: a rate in bytes a second, with \"kind\" and \"source\"");
    return medium;
}

void checkMediaFormat(const Fields& fields)
{
    if (const std::string format = fields.requiredText("format"); !fields.failed() && format != "memscape-media")
        fields.refuse(Error{"json.format", "these are no media: the format is \"" + format + "\"",
                            fields.node().path() + ".format",
                            "a file of media begins with \"format\": \"memscape-media\""});
    const int version = fields.integer("version", {1e9}, 1);
    if (!fields.failed() && version > 1)
        fields.refuse(Error{"json.version", fmt::format("version {} is newer than this program reads (1)", version),
                            fields.node().path() + ".version", "update Memscape"});
}

} // namespace

Result<std::vector<Medium>> mediaFromJson(const Json& json, const std::string& place)
{
    const JsonReader node(json, place);
    if (!json.is_object())
        return node.expected("an object with format, version and media");
    const Fields fields(node);
    checkMediaFormat(fields);
    std::vector<Medium> media;
    fields.each("media", mostMedia, [&](const Fields& inner) {
        media.push_back(mediumOf(inner));
        const bool isTwice =
            std::ranges::count_if(media, [&](const Medium& other) { return other.id == media.back().id; }) > 1;
        if (isTwice && !inner.failed())
            inner.refuse(Error{"media.twice", "two media have the id \"" + media.back().id + "\"",
                               inner.node().path() + ".id", "give each an id of its own"});
    });
    if (!fields.failed() && media.empty())
        fields.refuse("media", "is missing or empty: a list of at least one medium");
    if (fields.failed())
        return fail(fields.error());
    return media;
}

Result<std::vector<Medium>> readMedia(const fs::path& file)
{
    MEMSCAPE_TRY(json, readJsonFile(file, mediaFileLimit));
    return mediaFromJson(json, file.filename().string());
}

Result<Medium> readOwnMedium(const fs::path& file)
{
    MEMSCAPE_TRY(media, readMedia(file));
    if (media.size() > 1)
        return fail("media.several", fmt::format("the file describes {} media, and one is loaded from", media.size()),
                    "keep one of them in the file", file.string());
    return std::move(media.front());
}

const std::vector<Medium>& shippedMedia()
{
    static const std::vector<Medium> media =
        readMedia(resourcesFolder() / "media" / "media.json").value_or(std::vector<Medium>());
    return media;
}

const Medium* shippedMedium(const std::string& id)
{
    const std::vector<Medium>& media = shippedMedia();
    const auto found = std::ranges::find(media, id, &Medium::id);
    return found == media.end() ? nullptr : &*found;
}

} // namespace memscape
