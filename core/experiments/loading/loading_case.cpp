// SPDX-License-Identifier: Apache-2.0
// What the parameters of `loading` say: the bytes of the file, from a model's tensors in their stored form or from the
// header of a real file, how they are read, and what becomes of them.
#include "core/base/rounding.h"
#include "core/experiments/loading/loading.h"
#include "core/experiments/loading/loading_words.h"
#include "core/experiments/memory/memory_parameters.h"

#include "core/base/file.h"
#include "core/base/text.h"
#include "core/network/gguf.h"
#include "core/network/model_names.h"
#include "core/training/serving.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>

namespace memscape {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t mostLoadingChunks = 65536;
constexpr std::uint64_t blockBytes = 4096; ///< chunks are whole blocks, as direct I/O wants them

LoadingForm formOfStored(StoredForm form, const std::string& storedDtype)
{
    switch (form.kind) {
    case StoredForm::Float32: return LoadingForm::Float32;
    case StoredForm::BFloat16: return LoadingForm::BFloat16;
    case StoredForm::Float16: return LoadingForm::Float16;
    case StoredForm::Int8: return LoadingForm::Int8;
    case StoredForm::Int4: return LoadingForm::Int4;
    case StoredForm::AsStored: break;
    default: return LoadingForm::Other;
    }
    const auto dtype = dtypeFromText(storedDtype.empty() ? "bfloat16" : storedDtype);
    return dtype == DType::Float32 ? LoadingForm::Float32
        : dtype == DType::BFloat16 ? LoadingForm::BFloat16
        : dtype == DType::Float16  ? LoadingForm::Float16
                                   : LoadingForm::Other;
}

/// The form that most bytes of a file have; its names are those of safetensors and GGUF.
LoadingForm formOfFile(const StoredModel& stored)
{
    const auto most =
        std::ranges::max_element(stored.bytesByDtype, [](const auto& a, const auto& b) { return a.second < b.second; });
    if (most == stored.bytesByDtype.end())
        return LoadingForm::Other;
    return most->first == "F32" ? LoadingForm::Float32
        : most->first == "BF16" ? LoadingForm::BFloat16
        : most->first == "F16"  ? LoadingForm::Float16
        : most->first == "I8"   ? LoadingForm::Int8
                                : LoadingForm::Other;
}

/// The file's size on the disk: of an index the parts' tensors.
Result<std::uint64_t> sizeOnDisk(const fs::path& path, const StoredModel& stored)
{
    return stored.files > 1 ? std::uint64_t(stored.bytes) : regularFileSize(path);
}

Result<void> readFileCase(LoadingCase& asked)
{
    const fs::path path(asked.file);
    MEMSCAPE_TRY(size, regularFileSize(path));
    if (size == 0)
        return fail("predict.loading", "the file is empty", "choose a safetensors or GGUF file", asked.file);
    const bool isIndex = path.extension() == ".json";
    auto stored = isIndex ? readSafetensorsIndex(path) : saysGguf(path) ? readGguf(path) : readSafetensors(path);
    if (!stored)
        return fail(stored.error());
    MEMSCAPE_TRY(bytes, sizeOnDisk(path, *stored));
    if (stored->elements == 0 || bytes == 0)
        return fail("predict.loading", "the file holds no tensors", "choose another file", asked.file);
    asked.model = path.filename().string();
    asked.fileBytes = bytes;
    asked.elements = std::uint64_t(stored->elements);
    asked.form = formOfFile(*stored);
    return {};
}

Result<void> readModelCase(LoadingCase& asked, const Parameters& parameters)
{
    MEMSCAPE_TRY(model, askedModel(parameters));
    MEMSCAPE_TRY(form, storedFormFromText(parameters.choice("dtype")));
    MEMSCAPE_TRY(tensors, inventory(model));
    MEMSCAPE_TRY(bytes, servedWeights(model, form, 2, 1));
    if (bytes <= 0 || tensors.total <= 0)
        return fail("predict.loading", "the model has no parameters", "choose another model", "model");
    asked.model = model.name;
    asked.fileBytes = std::uint64_t(bytes);
    asked.elements = std::uint64_t(tensors.total);
    const bool isMxfp4 = form.kind == StoredForm::AsStored && model.mxfp4Experts;
    asked.form = isMxfp4 ? LoadingForm::Other : formOfStored(form, model.storedDtype);
    return {};
}

Result<void> readMediumCase(LoadingCase& asked, const Parameters& parameters)
{
    const std::string& own = parameters.text("medium_file");
    const std::string& medium = parameters.choice("medium");
    if (own.empty() && (medium == hostMedium || medium == pageCacheMedium)) {
        asked.medium = medium == hostMedium ? LoadingMedium::Host : LoadingMedium::PageCache;
        return {};
    }
    asked.medium = LoadingMedium::Listed;
    if (own.empty()) {
        asked.listed = *shippedMedium(medium); // the choices are made of them
        return {};
    }
    MEMSCAPE_SET(asked.listed, readOwnMedium(own));
    return {};
}

/// Of the whole file, the part that is touched.
void setTouched(LoadingCase& asked, double touched)
{
    const auto whole = double(asked.fileBytes);
    const double blocks = std::ceil(touched * whole / double(blockBytes)) * double(blockBytes);
    asked.bytes = touched >= 1 ? asked.fileBytes : std::uint64_t(std::min(whole, std::max(1.0, blocks)));
    asked.elements = std::max<std::uint64_t>(1, std::uint64_t(double(asked.elements) * double(asked.bytes) / whole));
}

Result<void> setChunks(LoadingCase& asked, const Parameters& parameters)
{
    const auto chunk = std::uint64_t(parameters.integer("chunk"));
    const std::uint64_t whole = roundedUp(chunk, blockBytes);
    asked.chunk = chunk == 0 ? asked.bytes : std::min(whole, asked.bytes);
    if (asked.chunks() > mostLoadingChunks)
        return fail("predict.chunks",
                    fmt::format("{} in chunks of {} are {} chunks, and {} is the most", bytesText(double(asked.bytes)),
                                bytesText(double(asked.chunk)), countText(double(asked.chunks())),
                                countText(double(mostLoadingChunks))),
                    fmt::format("choose chunk={} or more, which the whole file can be cut into, or 0 for one piece",
                                (asked.fileBytes / mostLoadingChunks / blockBytes + 1) * blockBytes),
                    "chunk");
    return {};
}

} // namespace

double LoadingCase::convertedBytes(double count) const
{
    const double size = target == LoadingTarget::AsStored ? 0 : target == LoadingTarget::Float32 ? 4 : 2;
    return size > 0 && bytes > 0 ? size * double(elements) * (count / double(bytes)) : count;
}

double LoadingCase::readMemory() const
{
    if (isMapped())
        return copiesMappedPages() ? std::min(double(bytes), double(chunk) * depth) : 0;
    return readsInPlace() ? double(bytes) : std::min(double(bytes), double(chunk) * depth);
}

double LoadingCase::convertedMemory() const
{
    if (!hasConversion())
        return 0;
    return convertedBytes(convertsInPlace() ? double(bytes) : std::min(double(bytes), double(chunk) * depth));
}

double loadingFormBits(LoadingForm form)
{
    switch (form) {
    case LoadingForm::Float32: return 32;
    case LoadingForm::BFloat16:
    case LoadingForm::Float16: return 16;
    case LoadingForm::Int4: return 4;
    case LoadingForm::Int8:
    case LoadingForm::Other: break;
    }
    return 8;
}

double loadingTouched(LoadingMethod method, bool isWarm)
{
    return isWarm && method != LoadingMethod::Mmap ? 3 : 0;
}

std::string loadingReadLink(LoadingMethod method, bool isWarm)
{
    return (isWarm ? "cached-" : "disk-") + loadingMethodKey(method);
}

std::string loadingConvertLink(LoadingForm form, LoadingTarget target)
{
    return target == LoadingTarget::AsStored ? "convert-copy"
                                             : "convert-" + loadingFormKey(form) + "-" + loadingTargetKey(target);
}

std::string loadingReadName(const LoadingCase& asked)
{
    if (asked.isWarm)
        return "page cache";
    return asked.medium == LoadingMedium::Listed && asked.listed.isNetwork ? "network" : "disk";
}

Result<LoadingCase> loadingCase(const Device& device, const Parameters& parameters)
{
    LoadingCase asked;
    asked.file = parameters.text("file");
    if (asked.file.empty())
        MEMSCAPE_CHECK(readModelCase(asked, parameters));
    else
        MEMSCAPE_CHECK(readFileCase(asked));
    setTouched(asked, parameters.number("touched"));
    MEMSCAPE_CHECK(readMediumCase(asked, parameters));
    asked.method = loadingMethods().of(parameters.choice("method"));
    if (asked.medium == LoadingMedium::PageCache && asked.method == LoadingMethod::Direct)
        return fail("predict.loading", "direct I/O goes past the page cache", "choose method=read, or another medium",
                    "method");
    asked.isWarm = asked.method != LoadingMethod::Direct
        && (asked.medium == LoadingMedium::PageCache || parameters.choice("cache") == "warm");
    asked.threads = asked.method == LoadingMethod::Parallel ? int(parameters.integer("threads")) : 1;
    asked.target = loadingTargets().of(parameters.choice("convert"));
    if (asked.target != LoadingTarget::AsStored && loadingTargetKey(asked.target) == loadingFormKey(asked.form))
        asked.target = LoadingTarget::AsStored; // it is that already
    asked.copies = loadingCopies().of(parameters.choice("low_cpu_mem"));
    asked.goesToGpu = device.isGpu() && !device.sharesHostMemory;
    asked.isPinned = parameters.choice("staging") == "pinned";
    asked.gpus = asked.goesToGpu ? int(parameters.integer("gpus")) : 1;
    asked.isLinkShared = parameters.choice("host_link") == "shared";
    asked.folder = parameters.text("folder");
    asked.limit = std::uint64_t(parameters.integer("limit"));
    MEMSCAPE_CHECK(setChunks(asked, parameters));
    if (!device.isGpu() && asked.hasConversion() && device.units < 2)
        asked.serial = "reading and converting side by side takes 2 cores, and there is 1";
    asked.depth =
        asked.serial.empty() && asked.hasOtherSteps() && asked.chunks() > 1 ? int(parameters.integer("streams")) : 1;
    return asked;
}

} // namespace memscape
