// SPDX-License-Identifier: Apache-2.0
#include "core/claims/claim_quotes.h"

#include "core/base/file.h"
#include "core/base/json_file.h"
#include "core/device/catalogue.h"

#include <map>

#include <fmt/format.h>

namespace memscape {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t claimFileLimit = 4u << 20;

struct Quoted
{
    std::string quote, source;
};

using Quotes = std::map<std::string, Quoted, std::less<>>;

Result<Quotes> readQuotes()
{
    Quotes quotes;
    MEMSCAPE_TRY(files, claimFiles(claimsFolder()));
    for (const fs::path& file : files) {
        MEMSCAPE_TRY(json, readClaimFile(file));
        const JsonReader reader(json, file.filename().string());
        MEMSCAPE_TRY(title, reader.string("title"));
        MEMSCAPE_TRY(claims, reader.at("claims"));
        MEMSCAPE_TRY(items, claims.items());
        for (const JsonReader& item : items) {
            MEMSCAPE_TRY(id, item.string("id"));
            MEMSCAPE_TRY(quote, item.string("quote"));
            MEMSCAPE_TRY(line, item.integer("line", 0));
            quotes[id] = {quote, fmt::format("course notes, {}, line {}", title, line)};
        }
    }
    return quotes;
}

} // namespace

fs::path claimsFolder()
{
    return resourcesFolder() / "claims";
}

Result<std::vector<fs::path>> claimFiles(const fs::path& folder)
{
    std::vector<fs::path> files = entriesOf(folder, ".json");
    if (files.empty())
        return fail("file.missing", "no tables of claims are here",
                    "set MEMSCAPE_RESOURCES to the folder that holds claims/", folder.string());
    return files;
}

Result<Json> readClaimFile(const fs::path& path, std::string_view format)
{
    MEMSCAPE_TRY(json, readJsonFile(path, claimFileLimit));
    const JsonReader reader(json, path.filename().string());
    if (!json.is_object() || reader.string("format", "").value_or("") != format)
        return fail("json.format", fmt::format("not a file of {}", format.substr(format.find('-') + 1)),
                    fmt::format("it begins with \"format\": \"{}\"", format), path.string());
    if (reader.integer("version", 0).value_or(0) != 1)
        return fail("json.version", fmt::format("this version of {} is not known", format), "write \"version\": 1",
                    path.string());
    return json;
}

Claim quotedClaim(std::string_view id, std::string verdict, std::string ours)
{
    static const Result<Quotes> quotes = readQuotes();
    Claim claim{{}, "course notes", std::move(verdict), std::move(ours), std::string(id)};
    if (!quotes) {
        claim.quote = fmt::format("{} (its words cannot be read: {})", id, quotes.error().text());
    } else if (const auto found = quotes->find(id); found != quotes->end()) {
        claim.quote = found->second.quote;
        claim.source = found->second.source;
    } else {
        claim.quote = fmt::format("{} (not in {})", id, claimsFolder().string());
    }
    return claim;
}

} // namespace memscape
