// SPDX-License-Identifier: Apache-2.0
#include "core/network/safetensors.h"

#include "core/base/file.h"
#include "core/base/json_file.h"
#include "core/base/text.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <set>

#include <fmt/format.h>

namespace memscape {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t headerLimit = 100'000'000; // the format's own limit
constexpr JsonLimits headerJson{.bytes = headerLimit, .depth = 8, .elements = 5'000'000, .keys = 1'000'000};
constexpr std::size_t indexLimit = 64u << 20;
constexpr std::size_t rankLimit = 16;

struct Placed
{
    StoredTensor tensor;
    std::int64_t begin = 0, end = 0;
};

tl::unexpected<Error> notOne(const fs::path& path, std::string why)
{
    return fail("safetensors.header", std::move(why), "this is not a safetensors file, or it was cut off",
                path.string());
}

/// The JSON text of the header, and the number of bytes after it.
Result<std::pair<std::string, std::int64_t>> headerOf(const fs::path& path)
{
    MEMSCAPE_TRY(size, regularFileSize(path));
    std::ifstream file(path, std::ios::binary);
    std::array<unsigned char, 8> raw{};
    if (size < 8 || !file.read(reinterpret_cast<char*>(raw.data()), raw.size()))
        return notOne(path, fmt::format("{} bytes are too few for a header", size));
    std::uint64_t length = 0;
    for (std::size_t i = 0; i < raw.size(); ++i)
        length |= std::uint64_t(raw[i]) << (8 * i);
    if (length > headerLimit)
        return notOne(
            path, fmt::format("the header says that it is {} bytes long, at most {} are allowed", length, headerLimit));
    if (length > size - 8)
        return notOne(path, fmt::format("the header says that it is {} bytes long, the file has {}", length, size));
    std::string text(static_cast<std::size_t>(length), '\0');
    if (!file.read(text.data(), static_cast<std::streamsize>(length)))
        return notOne(path, "the header cannot be read");
    if (!text.starts_with('{') || !validUtf8(text))
        return notOne(path, "the header is not JSON");
    return std::pair(std::move(text), static_cast<std::int64_t>(size - 8 - length));
}

tl::unexpected<Error> wrong(const JsonReader& node, std::string message)
{
    return fail("safetensors.tensor", std::move(message), "the file is damaged", node.path());
}

Result<Placed> readTensor(const std::string& name, const JsonReader& node, std::int64_t dataBytes)
{
    Placed placed;
    StoredTensor& tensor = placed.tensor;
    tensor.name = name;
    MEMSCAPE_TRY(dtype, node.string("dtype"));
    tensor.dtype = dtype;
    const std::int64_t bits = storedBits(dtype);
    MEMSCAPE_TRY(shapeNode, node.at("shape"));
    MEMSCAPE_TRY(sizes, shapeNode.items());
    MEMSCAPE_TRY(offsetsNode, node.at("data_offsets"));
    MEMSCAPE_TRY(offsets, offsetsNode.items());
    if (bits == 0)
        return wrong(node, fmt::format("the dtype \"{}\" is not known", quotedForMessage(dtype)));
    if (sizes.size() > rankLimit || offsets.size() != 2)
        return wrong(node, sizes.size() > rankLimit ? "has too many dimensions" : "needs two data_offsets");
    tensor.elements = 1;
    bool overflow = false;
    for (const JsonReader& item : sizes) {
        MEMSCAPE_TRY(size, item.integer());
        if (size < 0)
            return wrong(item, "a size is negative");
        overflow = overflow || __builtin_mul_overflow(tensor.elements, size, &tensor.elements);
        tensor.shape.push_back(size);
    }
    std::int64_t allBits = 0;
    if (overflow || __builtin_mul_overflow(tensor.elements, bits, &allBits))
        return wrong(shapeNode, "the shape has more elements than any file can hold");
    tensor.bytes = (allBits + 7) / 8;
    MEMSCAPE_TRY(begin, offsets[0].integer());
    MEMSCAPE_TRY(end, offsets[1].integer());
    if (begin < 0 || end < begin || end > dataBytes)
        return wrong(offsetsNode, fmt::format("bytes {} to {} are outside the file's {}", begin, end, dataBytes));
    if (end - begin != tensor.bytes)
        return wrong(offsetsNode,
                     fmt::format("holds {} bytes, its shape and dtype need {}", end - begin, tensor.bytes));
    placed.begin = begin;
    placed.end = end;
    return placed;
}

Result<void> checkOverlap(const std::vector<Placed>& tensors, const fs::path& path)
{
    for (std::size_t i = 1; i < tensors.size(); ++i) {
        if (tensors[i].begin < tensors[i - 1].end)
            return fail("safetensors.tensor",
                        fmt::format("{} lies over {}", quotedForMessage(tensors[i].tensor.name),
                                    quotedForMessage(tensors[i - 1].tensor.name)),
                        "the file is damaged", path.string());
    }
    return {};
}

void append(StoredModel& model, StoredTensor tensor)
{
    model.elements += tensor.elements; // each is bounded by the bytes of a file that exists
    model.bytes += tensor.bytes;
    model.bytesByDtype[tensor.dtype] += tensor.bytes;
    model.tensors.push_back(std::move(tensor));
}

} // namespace

int storedBits(std::string_view dtype)
{
    static constexpr std::pair<std::string_view, int> all[] = {
        {"F64", 64},        {"I64", 64},    {"U64", 64},    {"C64", 64},    {"F32", 32},    {"I32", 32},
        {"U32", 32},        {"F16", 16},    {"BF16", 16},   {"I16", 16},    {"U16", 16},    {"I8", 8},
        {"U8", 8},          {"BOOL", 8},    {"F8_E4M3", 8}, {"F8_E5M2", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8},
        {"F8_E5M2FNUZ", 8}, {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"F4", 4}};
    for (const auto& [name, bits] : all) {
        if (name == dtype)
            return bits;
    }
    return 0;
}

Result<StoredModel> readSafetensors(const fs::path& path)
{
    MEMSCAPE_TRY(header, headerOf(path));
    MEMSCAPE_TRY(json, parseJsonOf(path, header.first, headerJson));
    MEMSCAPE_TRY(members, JsonReader(json, path.string() + ", ").members());
    std::vector<Placed> tensors;
    tensors.reserve(members.size());
    for (const auto& [name, node] : members) {
        if (name == "__metadata__")
            continue;
        MEMSCAPE_TRY(
            placed,
            readTensor(name, JsonReader(node.node(), path.string() + ", " + quotedForMessage(name)), header.second));
        tensors.push_back(std::move(placed));
    }
    std::stable_sort(tensors.begin(), tensors.end(), [](const Placed& a, const Placed& b) {
        return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
    });
    MEMSCAPE_CHECK(checkOverlap(tensors, path));
    StoredModel model;
    model.files = 1;
    for (Placed& placed : tensors)
        append(model, std::move(placed.tensor));
    return model;
}

Result<StoredModel> readSafetensorsIndex(const fs::path& path)
{
    MEMSCAPE_CHECK(regularFileSize(path));
    MEMSCAPE_TRY(text, readFile(path, indexLimit));
    MEMSCAPE_TRY(json, parseJsonOf(path, text, headerJson));
    const JsonReader root(json, path.string() + ", ");
    const auto map = root.at("weight_map");
    if (!map)
        return fail("safetensors.index", "weight_map is missing", "this is not an index of safetensors files",
                    path.string());
    MEMSCAPE_TRY(members, map->members());
    std::set<std::string> parts, names;
    for (const auto& [name, node] : members) {
        MEMSCAPE_TRY(part, node.string());
        if (part.empty() || part != fs::path(part).filename().string() || part == "..")
            return fail("safetensors.index",
                        fmt::format("\"{}\" is not the name of a file beside it", quotedForMessage(part)),
                        "the parts lie in the folder of the index", node.path());
        parts.insert(part);
        names.insert(name);
    }
    StoredModel model;
    for (const std::string& part : parts) {
        MEMSCAPE_TRY(one, readSafetensors(path.parent_path() / part));
        ++model.files;
        for (StoredTensor& tensor : one.tensors) {
            if (names.erase(tensor.name) > 0)
                append(model, std::move(tensor));
        }
    }
    if (!names.empty())
        return fail("safetensors.index",
                    fmt::format("{} tensors are in none of the files, first {}", names.size(),
                                quotedForMessage(*names.begin())),
                    "the parts and the index are not of the same model", path.string());
    return model;
}

} // namespace memscape
