// SPDX-License-Identifier: Apache-2.0
#include "core/network/gguf.h"

#include "core/base/file.h"
#include "core/base/rounding.h"
#include "core/base/text.h"
#include "core/network/gguf_types.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <fstream>
#include <set>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr std::uint64_t ggufTensorLimit = 1'000'000, ggufPairLimit = 1'000'000; // real ones have a few thousand
constexpr std::uint64_t ggufNameLimit = 65536, ggufTextLimit = 256;
constexpr int ggufNesting = 4; ///< of arrays in arrays

enum class GgufValue : std::uint32_t { UInt32 = 4, String = 8, Array = 9, Types = 13 };
/// Bytes of each kind of value; 0 for those of another length.
constexpr std::uint64_t ggufValueBytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

tl::unexpected<Error> notGguf(const std::filesystem::path& path, std::string why)
{
    return fail("gguf.header", std::move(why), "this is not a GGUF file of version 2 or 3, or it was cut off",
                path.string());
}

/// Reads on from the file's beginning; never beyond its end.
class GgufInput
{
public:
    GgufInput(const std::filesystem::path& path, std::uint64_t size)
        : m_file(path, std::ios::binary)
        , m_size(size)
    { }

    template <typename Number> bool read(Number& number)
    {
        std::array<char, sizeof(Number)> raw{};
        if (!take(raw.data(), raw.size()))
            return false;
        std::memcpy(&number, raw.data(), raw.size());
        return true;
    }
    bool readText(std::string& text)
    {
        std::uint64_t length = 0;
        if (!read(length) || length > ggufNameLimit || length > left())
            return false;
        text.resize(std::size_t(length));
        return take(text.data(), length);
    }
    bool skip(std::uint64_t bytes)
    {
        if (bytes > left())
            return false;
        m_at += bytes;
        m_file.seekg(std::streamoff(m_at));
        return bool(m_file);
    }
    bool skipText()
    {
        std::uint64_t length = 0;
        return read(length) && skip(length);
    }
    std::uint64_t at() const { return m_at; }
    std::uint64_t left() const { return m_size - m_at; }
    bool take(char* to, std::uint64_t bytes)
    {
        if (bytes > left() || !m_file.read(to, std::streamsize(bytes)))
            return false;
        m_at += bytes;
        return true;
    }

private:
    std::ifstream m_file;
    std::uint64_t m_size, m_at = 0;
};

bool skipValue(GgufInput& input, std::uint32_t type, int depth);

/// An array, and how many elements it has.
bool skipArray(GgufInput& input, int depth, std::uint64_t& count)
{
    std::uint32_t inner = 0;
    if (!input.read(inner) || !input.read(count) || inner >= std::uint32_t(GgufValue::Types) || count > input.left())
        return false; // every element has a byte at least
    if (ggufValueBytes[inner] > 0)
        return count <= input.left() / ggufValueBytes[inner] && input.skip(count * ggufValueBytes[inner]);
    for (std::uint64_t i = 0; i < count; ++i) {
        if (!skipValue(input, inner, depth + 1))
            return false;
    }
    return true;
}

bool skipValue(GgufInput& input, std::uint32_t type, int depth)
{
    if (type >= std::uint32_t(GgufValue::Types) || depth > ggufNesting)
        return false;
    if (type == std::uint32_t(GgufValue::String))
        return input.skipText();
    std::uint64_t count = 0;
    return type == std::uint32_t(GgufValue::Array) ? skipArray(input, depth, count) : input.skip(ggufValueBytes[type]);
}

struct GgufPlaced
{
    StoredTensor tensor;
    std::uint64_t begin = 0;
};

tl::unexpected<Error> wrongTensor(const std::filesystem::path& path, const std::string& name, std::string message)
{
    return fail("gguf.tensor", std::move(message), "the file is damaged, or newer than this program",
                path.string() + ", " + quotedForMessage(name));
}

Result<GgufPlaced> readGgufTensor(GgufInput& input, const std::filesystem::path& path)
{
    GgufPlaced placed;
    StoredTensor& tensor = placed.tensor;
    std::uint32_t rank = 0, type = 0;
    if (!input.readText(tensor.name) || !input.read(rank))
        return notGguf(path, "the list of tensors is cut off");
    if (rank > 8)
        return wrongTensor(path, tensor.name, fmt::format("has {} dimensions", rank));
    tensor.elements = 1;
    bool isTooLarge = false;
    for (std::uint32_t i = 0; i < rank; ++i) {
        std::uint64_t size = 0;
        if (!input.read(size))
            return notGguf(path, "the list of tensors is cut off");
        isTooLarge = isTooLarge || size > std::uint64_t(INT64_MAX)
            || __builtin_mul_overflow(tensor.elements, std::int64_t(size), &tensor.elements);
        tensor.shape.push_back(std::int64_t(size));
    }
    if (!input.read(type) || !input.read(placed.begin))
        return notGguf(path, "the list of tensors is cut off");
    const GgufType* const known = ggufType(type);
    if (!known)
        return wrongTensor(path, tensor.name, fmt::format("its type {} is not known", type));
    if (isTooLarge || __builtin_mul_overflow(tensor.elements / known->elements, known->bytes, &tensor.bytes))
        return wrongTensor(path, tensor.name, "the sizes have more elements than any file can hold");
    if (tensor.elements % known->elements != 0)
        return wrongTensor(
            path, tensor.name,
            fmt::format("{} elements are no whole blocks of {} ({})", tensor.elements, known->elements, known->name));
    tensor.dtype = known->name;
    return placed;
}

/// Every tensor within the `data` bytes behind the header, none over another.
Result<void> checkPlaces(std::vector<GgufPlaced>& tensors, std::uint64_t data, const std::filesystem::path& path)
{
    std::stable_sort(tensors.begin(), tensors.end(),
                     [](const GgufPlaced& a, const GgufPlaced& b) { return a.begin < b.begin; });
    std::uint64_t end = 0;
    for (const GgufPlaced& placed : tensors) {
        const auto bytes = std::uint64_t(placed.tensor.bytes);
        if (placed.begin > data || bytes > data - placed.begin)
            return wrongTensor(path, placed.tensor.name,
                               fmt::format("{} bytes from {} are outside the file's {}", bytes, placed.begin, data));
        if (placed.begin < end)
            return wrongTensor(path, placed.tensor.name, "lies over another tensor");
        end = placed.begin + bytes;
    }
    return {};
}

template <typename Number> std::optional<double> readNumber(GgufInput& input)
{
    Number number = 0;
    return input.read(number) ? std::optional(double(number)) : std::nullopt;
}

/// A number of that type; nothing where it is cut off.
std::optional<double> readNumber(GgufInput& input, std::uint32_t type)
{
    switch (type) {
    case 0: return readNumber<std::uint8_t>(input);
    case 1: return readNumber<std::int8_t>(input);
    case 2: return readNumber<std::uint16_t>(input);
    case 3: return readNumber<std::int16_t>(input);
    case 4: return readNumber<std::uint32_t>(input);
    case 5: return readNumber<std::int32_t>(input);
    case 6: return readNumber<float>(input);
    case 7: return readNumber<std::uint8_t>(input);
    case 10: return readNumber<std::uint64_t>(input);
    case 11: return readNumber<std::int64_t>(input);
    default: return readNumber<double>(input);
    }
}

/// One value into the metadata. False: it is cut off, or of no known type.
bool keepValue(GgufInput& input, std::uint32_t type, const std::string& key, GgufMetadata& metadata)
{
    if (type >= std::uint32_t(GgufValue::Types))
        return false;
    if (type == std::uint32_t(GgufValue::String)) {
        std::uint64_t length = 0;
        if (!input.read(length) || length > input.left())
            return false;
        std::string text(std::size_t(std::min(length, ggufTextLimit)), '\0'); // a chat template is long
        if (!input.take(text.data(), text.size()) || !input.skip(length - text.size()))
            return false;
        metadata[key] = std::move(text);
        return true;
    }
    if (type == std::uint32_t(GgufValue::Array)) {
        std::uint64_t count = 0;
        if (!skipArray(input, 0, count))
            return false;
        metadata[key] = double(count);
        return true;
    }
    const auto number = readNumber(input, type);
    if (!number)
        return false;
    constexpr std::uint32_t boolean = 7;
    if (type == boolean)
        metadata[key] = *number != 0;
    else
        metadata[key] = *number;
    return true;
}

Result<std::uint32_t> readMetadata(GgufInput& input, std::uint64_t pairs, const std::filesystem::path& path,
                                   GgufMetadata& metadata)
{
    std::uint32_t alignment = 32;
    for (std::uint64_t i = 0; i < pairs; ++i) {
        std::string key;
        std::uint32_t type = 0;
        if (!input.readText(key) || !input.read(type))
            return notGguf(path, fmt::format("the metadata is cut off after {} of {} pairs", i, pairs));
        if (key == "general.alignment" && type == std::uint32_t(GgufValue::UInt32)) {
            if (!input.read(alignment) || alignment > 65536 || !std::has_single_bit(alignment))
                return notGguf(path, "the alignment is no power of two up to 65536");
        } else if (!keepValue(input, type, key, metadata)) {
            return notGguf(path, fmt::format("the value of {} is cut off or of no known type", quotedForMessage(key)));
        }
    }
    return alignment;
}

} // namespace

bool saysGguf(const std::filesystem::path& path)
{
    if (!regularFileSize(path)) // a pipe would block
        return false;
    std::ifstream file(path, std::ios::binary);
    std::array<char, 4> magic{};
    return file.read(magic.data(), magic.size()) && std::string_view(magic.data(), magic.size()) == "GGUF";
}

double GgufFile::number(const std::string& key, double fallback) const
{
    const auto found = metadata.find(key);
    const double* const number = found == metadata.end() ? nullptr : std::get_if<double>(&found->second);
    return number ? *number : fallback;
}

std::string GgufFile::text(const std::string& key) const
{
    const auto found = metadata.find(key);
    const std::string* const text = found == metadata.end() ? nullptr : std::get_if<std::string>(&found->second);
    return text ? *text : std::string();
}

Result<StoredModel> readGguf(const std::filesystem::path& path)
{
    MEMSCAPE_TRY(file, readGgufFile(path));
    return std::move(file.stored);
}

Result<GgufFile> readGgufFile(const std::filesystem::path& path)
{
    static_assert(std::endian::native == std::endian::little, "headers are read as they lie in memory");
    MEMSCAPE_TRY(size, regularFileSize(path));
    GgufInput input(path, size);
    std::uint32_t magic = 0, version = 0;
    std::uint64_t count = 0, pairs = 0;
    if (!input.read(magic) || magic != 0x46554747 || !input.read(version))
        return notGguf(path, "it does not begin with GGUF");
    if (version != 2 && version != 3)
        return notGguf(path, fmt::format("it says version {}", version));
    if (!input.read(count) || !input.read(pairs) || count > ggufTensorLimit || pairs > ggufPairLimit)
        return notGguf(path, fmt::format("{} tensors and {} pairs of metadata are said to be there", count, pairs));
    GgufFile file;
    MEMSCAPE_TRY(alignment, readMetadata(input, pairs, path, file.metadata));
    std::vector<GgufPlaced> tensors;
    std::set<std::string> names;
    for (std::uint64_t i = 0; i < count; ++i) {
        MEMSCAPE_TRY(placed, readGgufTensor(input, path));
        if (!names.insert(placed.tensor.name).second)
            return wrongTensor(path, placed.tensor.name, "comes twice");
        tensors.push_back(std::move(placed));
    }
    const std::uint64_t begin = roundedUp(input.at(), alignment);
    MEMSCAPE_CHECK(checkPlaces(tensors, begin < size ? size - begin : 0, path));
    StoredModel& model = file.stored;
    model.files = 1;
    for (GgufPlaced& placed : tensors) {
        model.elements += placed.tensor.elements; // of a file that exists: 2^63 bits and more do not
        model.bytes += placed.tensor.bytes;
        model.bytesByDtype[placed.tensor.dtype] += placed.tensor.bytes;
        model.tensors.push_back(std::move(placed.tensor));
    }
    return file;
}

} // namespace memscape
