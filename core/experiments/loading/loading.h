// SPDX-License-Identifier: Apache-2.0
// `loading` as its callers see it: what its parameters say on a device, the lanes that the bytes pass through, and its
// figures, made of predicted or of measured numbers.
#pragma once

#include "core/base/rounding.h"
#include "core/device/media.h"
#include "core/experiment/experiment.h"
#include "core/network/dtype.h"
#include "core/timing/pipeline.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace memscape {

enum class LoadingMedium {
    Host,      ///< this machine's disk
    PageCache, ///< the file was read before
    Listed     ///< of resources/media, or of a file of the user's
};
enum class LoadingMethod {
    Read,    ///< read() through the page cache
    Mmap,    ///< the file's pages are mapped and touched; nothing is copied
    Direct,  ///< O_DIRECT, past the page cache
    Parallel ///< several threads read() parts of each chunk
};
/// What a stored element is, as far as a conversion has to know it.
enum class LoadingForm { Float32, BFloat16, Float16, Int8, Int4, Other };
enum class LoadingTarget { AsStored, Float32, BFloat16, Float16 };
/// What a loader holds in the host's memory.
enum class LoadingCopies {
    Stream, ///< meta device, tensors handed on as they come: buffers alone
    Once,   ///< the whole state dict
    Twice   ///< the state dict, and the model that was made before it
};

/// What the parameters of `loading` say on a device.
struct LoadingCase
{
    std::string model;           ///< its name, or the file's
    std::string file = {};       ///< path of the user's own; empty: written for the measurement
    std::uint64_t fileBytes = 0; ///< of the whole file
    std::uint64_t bytes = 0;     ///< of it that are loaded
    std::uint64_t elements = 0;  ///< loaded
    LoadingForm form = LoadingForm::Other;
    LoadingMedium medium = LoadingMedium::Host;
    Medium listed = {}; ///< where it is one
    bool isWarm = false;
    LoadingMethod method = LoadingMethod::Read;
    int threads = 1;         ///< that read
    std::uint64_t chunk = 0; ///< B of the file
    int depth = 1;           ///< buffers in flight
    LoadingTarget target = LoadingTarget::AsStored;
    LoadingCopies copies = LoadingCopies::Stream;
    bool goesToGpu = false;
    bool isPinned = true;
    int gpus = 1;
    bool isLinkShared = false;
    std::string serial = {}; ///< why nothing overlaps although it was asked for; empty where it can
    std::string folder = {}; ///< of the measured file; empty: chosen
    std::uint64_t limit = 0; ///< B of the measured file at most

    std::uint64_t chunks() const { return quotientUp(bytes, chunk); }
    std::uint64_t lastChunk() const { return bytes - (chunks() - 1) * chunk; }
    std::uint64_t chunkBytes(std::uint64_t index) const { return index + 1 == chunks() ? lastChunk() : chunk; }
    bool isMapped() const { return method == LoadingMethod::Mmap; }
    bool changesForm() const { return target != LoadingTarget::AsStored; }
    /// A second pass over the bytes in host memory: a conversion, or the copy into the model that is there already.
    bool hasConversion() const { return changesForm() || copies == LoadingCopies::Twice; }
    bool hasOtherSteps() const { return hasConversion() || goesToGpu; } ///< than reading
    /// B that `fileBytes` of the file become.
    double convertedBytes(double fileBytes) const;
    /// Reading puts the bytes where they stay; else into buffers that chunks share.
    bool readsInPlace() const { return copies != LoadingCopies::Stream || (!goesToGpu && !hasConversion()); }
    bool convertsInPlace() const { return !goesToGpu || copies == LoadingCopies::Twice; }
    /// Mapped pages are not pinned: they are copied into a buffer that is.
    bool copiesMappedPages() const { return isMapped() && goesToGpu && isPinned && !hasConversion(); }
    /// B of the host's memory: of what is read into, and of what is converted into.
    double readMemory() const;
    double convertedMemory() const;
};

const std::string& loadingMethodKey(LoadingMethod method);
const std::string& loadingFormKey(LoadingForm form);
const std::string& loadingTargetKey(LoadingTarget target);
/// Bits of a stored or converted element.
double loadingFormBits(LoadingForm form);
/// B that a sample touches for each byte of the file, as far as caches matter to it: of a warm file the reading that
/// makes it warm, source and target; 0 of what comes from a disk, and of what is only mapped.
double loadingTouched(LoadingMethod method, bool isWarm);
/// Id of the calibrated link: "disk-read", "cached-mmap"; "convert-int4-bf16", "convert-copy".
std::string loadingReadLink(LoadingMethod method, bool isWarm);
std::string loadingConvertLink(LoadingForm form, LoadingTarget target);

/// Errors: those of readModel(), readSafetensors(), readGguf(), readOwnMedium(); predict.loading for what cannot be
/// together.
Result<LoadingCase> loadingCase(const Device& device, const Parameters& parameters);

enum class LoadingStep { Read, Convert, Copy };
/// One lane: `fixed` + n · `perByte` seconds for a chunk of n bytes of the file. What is paid once, and what pieces of
/// the page cache cost, is in `perByte`, a share for each chunk.
struct LoadingLane
{
    LoadingStep step = LoadingStep::Read;
    std::string name;   ///< "disk", "page cache", "conversion", "link to the GPU"
    double fixed = 0;   ///< s, of each chunk
    double once = 0;    ///< s, of all of it
    double perByte = 0; ///< s/B
    std::string rule = {}, source = {};
    double pieces = 0, perPiece = 0; ///< of the page cache that are read or mapped, and s of each
    double faults = 0;               ///< of pages that are mapped
};

struct LoadingModel
{
    LoadingCase asked;
    std::vector<LoadingLane> lanes; ///< in the order in which a chunk passes

    std::vector<LaneTime> times() const;
    const LoadingLane* lane(LoadingStep step) const; ///< null where there is none
    double laneSeconds(LoadingStep step) const;      ///< alone; 0 where there is none
    double seconds() const { return secondsWithDepth(asked.depth); }
    double secondsWithDepth(int depth) const;
};
/// Errors: predict.device where a rate is not known.
Result<LoadingModel> loadingModel(const Device& device, const LoadingCase& asked);

/// A time with its band, s.
struct LoadingTime
{
    double seconds = nan;
    std::optional<double> low = {}, high = {};
};
/// What is predicted or measured.
struct LoadingNumbers
{
    LoadingTime time, read, convert, copy;
    double hostMemory = nan, pageCache = nan, diskBytes = nan; ///< B
    double faults = nan;                                       ///< of pages that are mapped
};
std::string loadingReadName(const LoadingCase& asked);
/// The figures of both sides, without reasons.
Figures loadingFigures(const LoadingCase& asked, const LoadingNumbers& numbers);

/// The same predicted, with the reasons. Errors: those of loadingCase() and loadingModel().
Result<Figures> predictedLoading(const Device& device, const Parameters& parameters);
/// What the picture needs: {"model", "bytes", "gpu_bytes", "host_bytes", "page_cache", "medium", "ways": [{"key",
/// "label", "time", "lanes": [name…], "steps": ["read"…], "alone": [s…], "pieces": [[lane, first, last, begin,
/// end]…]}…], …}.
Json loadingDetail(const Device& device, const Parameters& parameters);

} // namespace memscape
