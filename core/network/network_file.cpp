// SPDX-License-Identifier: Apache-2.0
#include "core/network/network_file.h"

#include "core/base/json.h"
#include "core/base/text.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr std::size_t stepLimit = 2'000'000;
constexpr std::size_t depthLimit = 200;
constexpr std::int64_t sizeLimit = std::int64_t(1) << 40;
constexpr FileTensorId idLimit = 20'000'000;

class NetworkFileReader
{
public:
    explicit NetworkFileReader(const JsonReader& root)
        : m_root(root)
    { }
    Result<NetworkFile> read();

private:
    Result<void> readHead();
    Result<void> readModules();
    Result<std::vector<FileNamedTensor>> readTensors(const char* key, bool isTrainable);
    Result<void> readStep(const JsonReader& step);
    Result<void> readOperator(const JsonReader& step);
    Result<void> readFree(const JsonReader& step);
    Result<void> readEnter(const JsonReader& step);
    Result<void> readLeave(const JsonReader& step);
    Result<FileAttributes> readAttributes(const JsonReader& step, std::string_view op);
    Result<FileTensor> readTensor(const JsonReader& json);
    Result<FileSize> readSize(const JsonReader& json);
    Result<FileTensorId> readId(const JsonReader& json); ///< of a tensor that exists
    Result<FileTensorId> readNewId(const JsonReader& json);
    Result<FileTensorId> readResult(const char* key);
    Result<void> readEnd();
    std::string module() const;

    JsonReader m_root;
    NetworkFile m_file;
    std::vector<bool> m_exists;
    std::unordered_map<std::string, std::uint32_t> m_modules;
    std::vector<std::uint32_t> m_open;
};

tl::unexpected<Error> wrongFile(std::string code, const JsonReader& at, std::string message, std::string hint = {})
{
    return fail("network_file." + code, std::move(message), std::move(hint), at.path());
}

std::string NetworkFileReader::module() const
{
    return m_open.empty() || m_file.modules[m_open.back()].path.empty() ? "the network itself"
                                                                        : m_file.modules[m_open.back()].path;
}

Result<FileSize> NetworkFileReader::readSize(const JsonReader& json)
{
    std::array<std::int64_t, 4> parts{};
    if (json.node().is_array()) {
        MEMSCAPE_TRY(items, json.items());
        if (items.size() != parts.size())
            return wrongFile("size", json, fmt::format("a size has four parts, this one {}", items.size()),
                             "[a, b, c, d] is a + b·batch + c·sequence + d·batch·sequence");
        for (std::size_t i = 0; i < parts.size(); ++i) {
            MEMSCAPE_TRY(part, items[i].integer());
            parts[i] = part;
        }
    } else {
        MEMSCAPE_TRY(size, json.integer());
        parts[0] = size;
        if (size < 0)
            return wrongFile("size", json, fmt::format("{} is no size of a tensor", size));
    }
    for (const std::int64_t part : parts)
        if (part < -sizeLimit || part > sizeLimit)
            return wrongFile("size", json, fmt::format("{} is beyond 2^40, the limit of a size", part));
    return FileSize{parts[0], parts[1], parts[2], parts[3]};
}

Result<FileTensorId> NetworkFileReader::readId(const JsonReader& json)
{
    MEMSCAPE_TRY(id, json.integer());
    if (id < 0 || std::size_t(id) >= m_exists.size() || !m_exists[std::size_t(id)])
        return wrongFile("tensor", json,
                         fmt::format("tensor {} is used in {}, but nothing made it before", id, module()),
                         "export the model again; the file was cut or changed");
    return FileTensorId(id);
}

Result<FileTensorId> NetworkFileReader::readNewId(const JsonReader& json)
{
    MEMSCAPE_TRY(id, json.integer());
    if (id < 0 || id >= std::int64_t(idLimit))
        return wrongFile("tensor", json, fmt::format("{} is no id of a tensor: they go from 0 to {}", id, idLimit - 1));
    if (std::size_t(id) >= m_exists.size())
        m_exists.resize(std::size_t(id) + 1);
    if (m_exists[std::size_t(id)])
        return wrongFile("tensor", json, fmt::format("tensor {} is made twice", id));
    m_exists[std::size_t(id)] = true;
    return FileTensorId(id);
}

Result<FileTensor> NetworkFileReader::readTensor(const JsonReader& json)
{
    FileTensor tensor;
    MEMSCAPE_TRY(shape, json.at("shape"));
    MEMSCAPE_TRY(sizes, shape.items());
    if (sizes.size() > std::size_t(maxRank))
        return wrongFile("size", shape,
                         fmt::format("a tensor in {} has {} dimensions; at most {} are understood", module(),
                                     sizes.size(), maxRank));
    for (const JsonReader& each : sizes) {
        MEMSCAPE_TRY(size, readSize(each));
        tensor.sizes.push_back(size);
    }
    MEMSCAPE_TRY(dtype, json.string("dtype"));
    tensor.hasWeightsType = dtype == "weights";
    const auto known = dtypeFromText(dtype);
    if (!known && !tensor.hasWeightsType)
        return wrongFile("tensor", json,
                         fmt::format("\"{}\" is no type of tensors that is understood", quotedForMessage(dtype)),
                         "types are PyTorch's names, such as float32, bfloat16, int64, bool, or \"weights\"");
    tensor.dtype = known.value_or(DType::Float32);
    MEMSCAPE_TRY(id, json.at("id"));
    MEMSCAPE_TRY(number, readNewId(id));
    tensor.id = number;
    return tensor;
}

Result<std::vector<FileNamedTensor>> NetworkFileReader::readTensors(const char* key, bool isTrainable)
{
    std::vector<FileNamedTensor> found;
    MEMSCAPE_TRY(list, m_root.at(key));
    MEMSCAPE_TRY(items, list.items());
    for (const JsonReader& each : items) {
        FileNamedTensor named;
        MEMSCAPE_TRY(name, each.string("name"));
        named.name = name;
        MEMSCAPE_TRY(tensor, readTensor(each));
        named.tensor = std::move(tensor);
        if (isTrainable) {
            MEMSCAPE_TRY(trained, each.at("trained"));
            MEMSCAPE_TRY(isTrained, trained.boolean());
            named.isTrained = isTrained;
        }
        MEMSCAPE_TRY(role, each.string("role", "input"));
        named.isTarget = role == "target";
        found.push_back(std::move(named));
    }
    return found;
}

Result<void> NetworkFileReader::readHead()
{
    MEMSCAPE_TRY(version, m_root.integer("version", 0));
    if (version != 1)
        return wrongFile("version", m_root,
                         fmt::format("this is a network file of version {}; this program reads version 1", version),
                         "export the model with the memscape_probe of this program, or use a newer Memscape");
    MEMSCAPE_TRY(name, m_root.string("name"));
    MEMSCAPE_TRY(torch, m_root.string("torch", ""));
    MEMSCAPE_TRY(batch, m_root.integer("batch", 1));
    MEMSCAPE_TRY(sequence, m_root.integer("sequence", 0));
    if (batch < 1 || sequence < 0 || batch > sizeLimit || sequence > sizeLimit)
        return wrongFile("size", m_root, fmt::format("batch {} and sequence {} are no sizes", batch, sequence));
    MEMSCAPE_TRY(scales, m_root.at("scales"));
    MEMSCAPE_TRY(withBatch, scales.at("batch"));
    MEMSCAPE_TRY(withSequence, scales.at("sequence"));
    MEMSCAPE_TRY(scalesBatch, withBatch.boolean());
    MEMSCAPE_TRY(scalesSequence, withSequence.boolean());
    m_file.name = name, m_file.torch = torch, m_file.batch = batch, m_file.sequence = sequence;
    m_file.scalesBatch = scalesBatch, m_file.scalesSequence = scalesSequence;
    return {};
}

Result<void> NetworkFileReader::readModules()
{
    MEMSCAPE_TRY(list, m_root.at("modules"));
    MEMSCAPE_TRY(items, list.items());
    for (const JsonReader& each : items) {
        MEMSCAPE_TRY(path, each.string("path"));
        MEMSCAPE_TRY(type, each.string("type", ""));
        if (!m_modules.emplace(path, std::uint32_t(m_file.modules.size())).second)
            return wrongFile("modules", each, fmt::format("module \"{}\" is listed twice", quotedForMessage(path)));
        m_file.modules.push_back({path, type});
    }
    return {};
}

Result<FileAttributes> NetworkFileReader::readAttributes(const JsonReader& step, std::string_view op)
{
    FileAttributes found;
    const bool isNorm = op == "layer_norm";
    for (const char* key : {"dim", "dims", "order"}) {
        if (!step.has(key) || isNorm)
            continue;
        MEMSCAPE_TRY(at, step.at(key));
        std::vector<JsonReader> items{at};
        if (at.node().is_array()) {
            MEMSCAPE_TRY(list, at.items());
            items = std::move(list);
        }
        for (const JsonReader& each : items) {
            MEMSCAPE_TRY(dimension, each.integer());
            if (dimension < 0 || dimension >= maxRank)
                return wrongFile("size", each,
                                 fmt::format("{} is no dimension: they go from 0 to {}", dimension, maxRank - 1));
            found.dimensions.push_back(int(dimension));
        }
        if (found.dimensions.size() > std::size_t(maxRank))
            return wrongFile("size", at,
                             fmt::format("{} dimensions; at most {} are understood", found.dimensions.size(), maxRank));
    }
    MEMSCAPE_TRY(count, step.integer(isNorm ? "dims" : "groups", 1));
    if (count < 1 || count > sizeLimit)
        return wrongFile("size", step, fmt::format("{} of {} is not understood", count, op));
    MEMSCAPE_TRY(temporaries, step.integer("temporaries", 0));
    if (temporaries < 0 || temporaries > 3)
        return wrongFile("size", step, fmt::format("{} temporaries; 0 to 3 are understood", temporaries));
    MEMSCAPE_TRY(probability, step.number("p", 0));
    if (probability < 0 || probability > 1)
        return wrongFile("size", step, fmt::format("{} is no probability", probability));
    MEMSCAPE_TRY(keeps, step.boolean("keep", false));
    MEMSCAPE_TRY(inPlace, step.boolean("in_place", false));
    MEMSCAPE_TRY(noGradient, step.boolean("no_grad", false));
    MEMSCAPE_TRY(bilinear, step.boolean("bilinear", false));
    MEMSCAPE_TRY(equation, step.string("equation", ""));
    MEMSCAPE_TRY(name, step.string("name", ""));
    MEMSCAPE_TRY(kept, step.string("keeps", ""));
    if (op == "other" && kept != "inputs" && kept != "result" && kept != "inputs and result" && kept != "nothing")
        return wrongFile(
            "operator", step,
            fmt::format("what autograd keeps of \"{}\" in {} is not said", quotedForMessage(name), module()),
            "\"keeps\" is \"inputs\", \"result\", \"inputs and result\" or \"nothing\"");
    found.temporaries = int(temporaries);
    found.count = count, found.probability = probability, found.keepsSizes = keeps, found.isInPlace = inPlace;
    found.isWithoutGradient = noGradient, found.isBilinear = bilinear, found.equation = equation, found.name = name;
    found.keepsInputs = kept.starts_with("inputs"), found.keepsResult = kept.ends_with("result");
    return found;
}

Result<void> NetworkFileReader::readOperator(const JsonReader& step)
{
    MEMSCAPE_TRY(name, step.string("op"));
    const auto& known = networkFileOperators();
    const auto at = std::lower_bound(known.begin(), known.end(), name);
    if (at == known.end() || *at != name)
        return wrongFile(
            "operator", step, fmt::format("the operator \"{}\" in {} is not known", quotedForMessage(name), module()),
            "write it as {\"op\": \"other\", \"name\": …, \"keeps\": \"inputs and result\"}, or use a newer Memscape");
    FileStep made;
    made.op = std::uint16_t(at - known.begin());
    MEMSCAPE_TRY(inputs, step.at("in"));
    MEMSCAPE_TRY(ids, inputs.items());
    if (ids.size() > 255)
        return wrongFile("operator", inputs,
                         fmt::format("\"{}\" has {} inputs; at most 255 are understood", name, ids.size()));
    for (const JsonReader& each : ids) {
        MEMSCAPE_TRY(id, readId(each));
        made.tensors.push_back(id);
    }
    MEMSCAPE_TRY(attributes, readAttributes(step, name));
    made.attributes = std::uint32_t(m_file.attributes.size());
    m_file.attributes.push_back(std::move(attributes));
    MEMSCAPE_TRY(outputs, step.at("out"));
    MEMSCAPE_TRY(results, outputs.items());
    if (results.empty() || results.size() > 255)
        return wrongFile("operator", outputs,
                         fmt::format("\"{}\" has {} results; 1 to 255 are understood", name, results.size()));
    for (const JsonReader& each : results) {
        MEMSCAPE_TRY(tensor, readTensor(each));
        made.outputs.push_back(std::move(tensor));
    }
    m_file.program.push_back(std::move(made));
    return {};
}

Result<void> NetworkFileReader::readFree(const JsonReader& step)
{
    FileStep made;
    made.kind = FileStep::Kind::Free;
    MEMSCAPE_TRY(list, step.at("free"));
    MEMSCAPE_TRY(items, list.items());
    for (const JsonReader& each : items) {
        MEMSCAPE_TRY(id, readId(each));
        m_exists[id] = false;
        made.tensors.push_back(id);
    }
    m_file.program.push_back(std::move(made));
    return {};
}

Result<void> NetworkFileReader::readEnter(const JsonReader& step)
{
    MEMSCAPE_TRY(path, step.string("enter"));
    const auto known = m_modules.find(path);
    if (known == m_modules.end())
        return wrongFile(
            "modules", step,
            fmt::format("module \"{}\" is entered, but \"modules\" does not list it", quotedForMessage(path)));
    if (m_open.size() >= depthLimit)
        return wrongFile("modules", step, fmt::format("modules call each other more than {} deep", depthLimit));
    m_open.push_back(known->second);
    FileStep made;
    made.kind = FileStep::Kind::Enter;
    made.module = known->second;
    MEMSCAPE_SET(made.isLayer, step.boolean("layer", false));
    m_file.program.push_back(std::move(made));
    return {};
}

Result<void> NetworkFileReader::readLeave(const JsonReader& step)
{
    if (m_open.empty())
        return wrongFile("modules", step, "a module is left, but none was entered");
    m_open.pop_back();
    FileStep made;
    made.kind = FileStep::Kind::Leave;
    MEMSCAPE_TRY(result, step.at("leave"));
    if (!result.node().is_null()) {
        MEMSCAPE_TRY(id, readId(result));
        made.tensors.push_back(id);
    }
    m_file.program.push_back(std::move(made));
    return {};
}

Result<void> NetworkFileReader::readStep(const JsonReader& step)
{
    if (step.has("op"))
        return readOperator(step);
    if (step.has("free"))
        return readFree(step);
    if (step.has("enter"))
        return readEnter(step);
    if (step.has("leave"))
        return readLeave(step);
    return wrongFile("operator", step, "a step is none of \"op\", \"free\", \"enter\" and \"leave\"");
}

Result<FileTensorId> NetworkFileReader::readResult(const char* key)
{
    MEMSCAPE_TRY(at, m_root.at(key));
    if (at.node().is_null())
        return noFileTensor;
    return readId(at);
}

Result<void> NetworkFileReader::readEnd()
{
    if (!m_open.empty())
        return wrongFile("modules", m_root, fmt::format("the program ends within {}", module()),
                         "the file was cut: export again");
    MEMSCAPE_TRY(output, readResult("output"));
    MEMSCAPE_TRY(loss, readResult("loss"));
    m_file.output = output, m_file.loss = loss;
    if (output == noFileTensor && loss == noFileTensor)
        return wrongFile("tensor", m_root, "the network has neither an output nor a loss");
    MEMSCAPE_SET(m_file.returnsLoss, m_root.boolean("returns_loss", false));
    if (m_root.has("assumptions")) {
        MEMSCAPE_TRY(list, m_root.at("assumptions"));
        MEMSCAPE_TRY(items, list.items());
        for (const JsonReader& each : items) {
            MEMSCAPE_TRY(text, each.string());
            m_file.assumptions.push_back(text);
        }
    }
    m_file.tensors = FileTensorId(m_exists.size());
    return {};
}

Result<NetworkFile> NetworkFileReader::read()
{
    MEMSCAPE_CHECK(readHead());
    MEMSCAPE_CHECK(readModules());
    MEMSCAPE_TRY(parameters, readTensors("parameters", true));
    MEMSCAPE_TRY(buffers, readTensors("buffers", false));
    MEMSCAPE_TRY(inputs, readTensors("inputs", false));
    m_file.parameters = std::move(parameters), m_file.buffers = std::move(buffers), m_file.inputs = std::move(inputs);
    MEMSCAPE_TRY(program, m_root.at("program"));
    MEMSCAPE_TRY(steps, program.items());
    if (steps.size() > stepLimit)
        return wrongFile("size", program, fmt::format("{} steps; at most {} are read", steps.size(), stepLimit));
    for (const JsonReader& each : steps)
        MEMSCAPE_CHECK(readStep(each));
    MEMSCAPE_CHECK(readEnd());
    return std::move(m_file);
}

} // namespace

bool isNetworkFile(const JsonReader& json)
{
    return json.node().is_object() && json.string("format", "").value_or("") == "memscape-network";
}

Result<NetworkFile> networkFileFromJson(const JsonReader& json)
{
    return NetworkFileReader(json).read();
}

} // namespace memscape
