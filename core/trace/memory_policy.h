// SPDX-License-Identifier: Apache-2.0
// An allocator as something that requests are played through, whatever its rules are: PyTorch's caching allocator
// (allocator.h), a heap in one arena, a pool of powers of two (heap_policy.cpp), or a plan that was made before the
// first request (packing.h). All of them answer the same: what is allocated, what is reserved for it, which block is
// where, and what the newest request made them do.
//
// Streams matter to PyTorch's allocator alone, which never gives a block to another stream; the others see one stream.
#pragma once

#include "core/trace/allocator.h"
#include "core/trace/request_trace.h"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace memscape {

/// Bytes and counts of now.
struct PolicyCounts
{
    std::int64_t requested = 0; ///< B that the program asked for and has not given up
    std::int64_t allocated = 0; ///< the same as the allocator rounds it
    std::int64_t reserved = 0;  ///< B taken from the driver
    std::int64_t segments = 0;  ///< ranges of addresses that were taken
};

/// Of all requests so far.
struct PolicyTotals
{
    std::int64_t takes = 0, returns = 0; ///< calls of the driver: cudaMalloc and cudaFree, mmap and munmap
    std::int64_t takenBytes = 0, returnedBytes = 0;
    std::int64_t retries = 0; ///< the cache was emptied because the driver refused
};

struct PolicyBlock
{
    std::uint64_t address = 0;
    std::int64_t size = 0;
    BlockId block = noBlock; ///< who is in it; noBlock: free
    bool isPending = false;  ///< freed, and another stream still uses it
};

struct PolicySegment
{
    std::uint64_t address = 0;
    std::int64_t size = 0;
    std::uint16_t stream = 0;
    std::string kind;                ///< "small pool", "large pool", "arena", …
    std::vector<PolicyBlock> blocks; ///< by address; they tile the segment
};

enum class ActKind : std::uint8_t {
    Reused,   ///< a free block served the request
    Taken,    ///< the driver was asked
    Refused,  ///< the driver has no more
    Freed,    ///< and merged with what is free beside it
    Deferred, ///< freed, but another stream still uses it
    Waited,   ///< the streams are synchronized
    Emptied,  ///< empty_cache()
    Recorded, ///< record_stream()
    Found,    ///< its block was there when the recording began
};

/// What the newest request did.
struct PolicyAct
{
    ActKind kind = ActKind::Waited;
    std::uint64_t address = 0;
    std::int64_t given = 0;     ///< B of the block that was made or freed, as the allocator rounds it
    std::int64_t found = 0;     ///< B of the free block whose front it is
    std::int64_t rest = 0;      ///< B that stay free behind it, of the same free block or of what was taken
    std::int64_t taken = 0;     ///< B from the driver
    std::int64_t returned = 0;  ///< B to the driver
    std::int64_t returns = 0;   ///< in so many pieces
    bool isRetry = false;       ///< the driver refused, the cache was emptied for it
    int merged = 0;             ///< free neighbours of a freed block: 0, 1 or 2
    std::int64_t freeAfter = 0; ///< B of the free block that it is now a part of; 0: nothing of it stayed
    std::string pool;           ///< "large pool", "arena"; where it happened
};

class MemoryPolicy
{
public:
    virtual ~MemoryPolicy() = default;
    virtual std::unique_ptr<MemoryPolicy> clone() const = 0;

    /// Plays one request. After an act of kind Refused nothing may follow.
    virtual PolicyAct play(const Request& request, const RequestedBlock& block) = 0;
    virtual PolicyCounts counts() const = 0;
    virtual PolicyTotals totals() const = 0;
    /// By address.
    virtual std::vector<PolicySegment> segments() const = 0;
};

/// What a `setting` names.
enum class PolicyKind {
    Caching,       ///< PyTorch's, with options
    FirstFit,      ///< one arena, lowest address that fits
    BestFit,       ///< one arena, smallest hole that fits
    PowersOfTwo,   ///< a pool for each power of two
    Malloc,        ///< glibc's malloc
    CudaMalloc,    ///< every block from the driver
    CudaAsync,     ///< cudaMallocAsync
    LargestFirst,  ///< planned: the largest block first, at the lowest address that is free during its life
    LifetimeColour ///< planned: blocks that do not live at the same time share a buffer
};

struct PolicySetting
{
    PolicyKind kind = PolicyKind::Caching;
    AllocatorOptions options; ///< of Caching; deviceLimit of every kind
    std::string key;          ///< text that reads back as this: "best-fit", "max_split_size_mb:128"
    std::string label;        ///< "best fit, one arena"
    bool goesOn = false;      ///< "recorded": with the options of the trace's recording, from where that begins
    /// Whether the plan is made with the whole trace in sight.
    bool isPlanned() const { return kind == PolicyKind::LargestFirst || kind == PolicyKind::LifetimeColour; }
};

/// The words for those that are not PyTorch's, with their labels and what they do.
struct PolicyWord
{
    PolicyKind kind;
    const char* key;
    const char* label;
    const char* rule; ///< a sentence
};
const std::vector<PolicyWord>& policyWords();

/// "recorded", which is of Caching; its options are those of a trace's recording.
inline constexpr std::string_view recordedSetting = "recorded";

/// "default", "expandable_segments", "recorded", a word of the above, or any text of PYTORCH_CUDA_ALLOC_CONF. Errors:
/// allocator.setting with near names, allocator.value, allocator.backend.
Result<PolicySetting> readSetting(std::string_view text);

/// Errors: allocator.recorded (a trace without a recording), allocator.segments, packing.length (a plan of more blocks
/// than can be planned), predict.cancelled.
Result<std::unique_ptr<MemoryPolicy>> makePolicy(const PolicySetting& setting, const RequestTrace& trace);

/// How a heap takes memory and finds a place in it.
struct HeapRules
{
    bool isFirstFit = false;      ///< lowest address that fits; else the smallest hole, lowest address of equals
    std::int64_t alignment = 512; ///< B; sizes are multiples of it
    std::int64_t header = 0;      ///< B beside each block
    std::int64_t least = 512;     ///< B of a block with its header
    std::int64_t growth = 512;    ///< the arena grows by multiples of this
    std::int64_t padding = 0;     ///< B that it grows by beyond the request
    std::int64_t ownFrom = 0;     ///< requests of so many bytes and more are mapped on their own; 0: none are
    std::int64_t ownRounding = 0; ///< a mapping is a multiple of this …
    std::int64_t ownHeader = 0;   ///< … and begins with so many bytes of the allocator's own
    std::int64_t mostOwnFrom = 0; ///< a freed mapping raises ownFrom to its size, up to this (glibc); 0: never
    bool returnsTop = false;      ///< the free end of the arena goes back when it is twice ownFrom and more (glibc)
    std::optional<std::int64_t> limit = {};
    const char* arena = "arena";
    const char* own = "mapping";
};
std::unique_ptr<MemoryPolicy> makeHeap(const HeapRules& rules);
/// Of the kinds FirstFit, BestFit, Malloc, CudaMalloc, CudaAsync.
HeapRules heapRules(PolicyKind kind, std::optional<std::int64_t> limit = {});

/// A pool for each power of two from 512 B on; a block is never cut and never merged. Powers below 2 MiB share slabs of
/// 2 MiB.
std::unique_ptr<MemoryPolicy> makePowersOfTwo(std::optional<std::int64_t> limit = {});

/// The size that the pool of powers of two gives for `bytes` > 0.
std::int64_t powerOfTwoFor(std::int64_t bytes);

} // namespace memscape
