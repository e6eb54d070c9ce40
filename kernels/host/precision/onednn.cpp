// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/precision/onednn.h"

#include "kernels/host/common/library_symbol.h"

#include <array>
#include <cstdlib>

#include <dlfcn.h>
#include <fmt/format.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif

namespace memscape::host {

namespace {

// Of oneapi/dnnl/dnnl_types.h, the same in versions 2 and 3.
enum Status { success = 0 };
enum DataType { f16 = 1, bf16 = 2, f32 = 3, s32 = 4, s8 = 5 };
enum EngineKind { cpuEngine = 1 };
enum Argument { source = 1, destination = 17, weights = 33 };
constexpr unsigned inOrder = 1;
constexpr int implementationName = 8; // dnnl_query_impl_info_str
using Dimensions = std::int64_t[12];

struct ExecuteArgument
{
    int argument;
    void* memory;
};
struct Version
{
    int major, minor, patch;
    const char* hash;
    unsigned cpuRuntime, gpuRuntime;
};
/// Version 2 writes its descriptions into the caller's memory: 696 and 2800 B in 2.6.3.
struct MemoryDescription
{
    alignas(16) std::array<std::byte, 2048> bytes{};
    void* handle = nullptr; ///< version 3
};
using ProductDescription = std::array<std::byte, 16384>;

struct DnnLibrary
{
    int major = 0;
    std::string name; ///< empty when it cannot be used
    void* engine = nullptr;

    int (*createEngine)(void**, int kind, std::size_t index) = nullptr;
    int (*createStream)(void**, void* engine, unsigned flags) = nullptr;
    int (*wait)(void* stream) = nullptr;
    int (*destroyStream)(void*) = nullptr;
    int (*createMemory)(void**, const void* description, void* engine, void* handle) = nullptr;
    int (*setHandle)(void* memory, void* handle) = nullptr;
    int (*destroyMemory)(void*) = nullptr;
    int (*createPrimitive)(void**, const void* description) = nullptr;
    int (*destroyPrimitive)(void*) = nullptr;
    int (*destroyDescription)(void*) = nullptr;
    int (*query)(const void*, int what, int index, void* result) = nullptr;
    int (*execute)(const void*, void* stream, int count, const ExecuteArgument*) = nullptr;
    // Version 2.
    int (*describeMemory2)(void*, int, const Dimensions, int type, const Dimensions) = nullptr;
    int (*describeProduct2)(void*, const void*, const void*, const void*, const void*) = nullptr;
    int (*createDescription2)(void**, const void*, const void*, void*, const void*) = nullptr;
    // Version 3.
    int (*describeMemory3)(void**, int, const Dimensions, int type, const Dimensions) = nullptr;
    int (*forgetMemory3)(void*) = nullptr;
    int (*createDescription3)(void**, void* engine, const void*, const void*, const void*, const void*,
                              const void* attributes) = nullptr;
    void (*setThreads)(int) = nullptr; ///< of the calling thread's OpenMP, when it has one

    bool load(void* library);
    bool describe(MemoryDescription& into, const Dimensions& sizes, const Dimensions& strides, int type) const;
    void forget(MemoryDescription& description) const;
    const void* pointer(const MemoryDescription& description) const
    {
        return major == 2 ? static_cast<const void*>(description.bytes.data()) : description.handle;
    }
    void* product(const MemoryDescription& a, const MemoryDescription& b, const MemoryDescription& c) const;
};

/// EAX, EBX, ECX and EDX of CPUID leaf 7; zeros where there is none.
std::array<unsigned, 4> extendedFeatures([[maybe_unused]] unsigned subleaf)
{
    std::array<unsigned, 4> words{};
#ifdef __x86_64__
    __get_cpuid_count(7, subleaf, &words[0], &words[1], &words[2], &words[3]);
#endif
    return words;
}

/// AMX-TILE.
bool hasAmx()
{
    return (extendedFeatures(0)[3] >> 24 & 1) != 0;
}

bool hasVnni()
{
    return (extendedFeatures(0)[2] >> 11 & 1) != 0 // AVX512-VNNI
        || (extendedFeatures(1)[0] >> 4 & 1) != 0; // AVX-VNNI
}

/// Keeps oneDNN from AMX, unless ONEDNN_MAX_CPU_ISA says otherwise; true when that takes something away. On virtual
/// Sapphire Rapids processors its BF16 and INT8 products on tiles end the process: 2.6.3 clears a tile that it has not
/// configured (illegal instruction). What is lost is their speed there.
bool avoidAmx(void* library)
{
    constexpr int withoutAmx = 0xe7, amx = 0x200; // dnnl_cpu_isa_avx512_core_bf16; a bit of ..._amx in versions 2 and 3
    int (*effective)() = nullptr;
    int (*setMost)(int) = nullptr;
    if (std::getenv("ONEDNN_MAX_CPU_ISA") != nullptr || std::getenv("DNNL_MAX_CPU_ISA") != nullptr
        || !findSymbol(library, setMost, "dnnl_set_max_cpu_isa")
        || !findSymbol(library, effective, "dnnl_get_effective_cpu_isa"))
        return false;
    if (!hasAmx())
        return false;
    return setMost(withoutAmx) == success && (effective() & amx) == 0;
}

bool DnnLibrary::load(void* library)
{
    const bool isWithoutAmx = avoidAmx(library);
    const Version* (*version)() = nullptr;
    if (!findSymbol(library, version, "dnnl_version") || !findSymbol(library, createEngine, "dnnl_engine_create")
        || !findSymbol(library, createStream, "dnnl_stream_create") || !findSymbol(library, wait, "dnnl_stream_wait")
        || !findSymbol(library, destroyStream, "dnnl_stream_destroy")
        || !findSymbol(library, createMemory, "dnnl_memory_create")
        || !findSymbol(library, setHandle, "dnnl_memory_set_data_handle")
        || !findSymbol(library, destroyMemory, "dnnl_memory_destroy")
        || !findSymbol(library, createPrimitive, "dnnl_primitive_create")
        || !findSymbol(library, destroyPrimitive, "dnnl_primitive_destroy")
        || !findSymbol(library, destroyDescription, "dnnl_primitive_desc_destroy")
        || !findSymbol(library, query, "dnnl_primitive_desc_query")
        || !findSymbol(library, execute, "dnnl_primitive_execute"))
        return false;
    major = version()->major;
    const bool isWhole = major == 2
        ? findSymbol(library, describeMemory2, "dnnl_memory_desc_init_by_strides")
            && findSymbol(library, describeProduct2, "dnnl_matmul_desc_init")
            && findSymbol(library, createDescription2, "dnnl_primitive_desc_create")
        : major == 3 && findSymbol(library, describeMemory3, "dnnl_memory_desc_create_with_strides")
            && findSymbol(library, forgetMemory3, "dnnl_memory_desc_destroy")
            && findSymbol(library, createDescription3, "dnnl_matmul_primitive_desc_create");
    if (!isWhole || createEngine(&engine, cpuEngine, 0) != success)
        return false;
    // It brings its OpenMP with it; one that uses other threads cannot be kept to one here.
    void* openMp = dlopen("libgomp.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (openMp == nullptr || !findSymbol(openMp, setThreads, "omp_set_num_threads"))
        return false;
    name =
        fmt::format("oneDNN {}.{}.{}{}", major, version()->minor, version()->patch, isWithoutAmx ? " without AMX" : "");
    return true;
}

bool DnnLibrary::describe(MemoryDescription& into, const Dimensions& sizes, const Dimensions& strides, int type) const
{
    return major == 2 ? describeMemory2(into.bytes.data(), 2, sizes, type, strides) == success
                      : describeMemory3(&into.handle, 2, sizes, type, strides) == success;
}

void DnnLibrary::forget(MemoryDescription& description) const
{
    if (description.handle != nullptr)
        forgetMemory3(description.handle);
    description.handle = nullptr;
}

void* DnnLibrary::product(const MemoryDescription& a, const MemoryDescription& b, const MemoryDescription& c) const
{
    void* made = nullptr;
    if (major == 3) {
        createDescription3(&made, engine, pointer(a), pointer(b), nullptr, pointer(c), nullptr);
        return made;
    }
    alignas(16) ProductDescription product{};
    if (describeProduct2(product.data(), pointer(a), pointer(b), nullptr, pointer(c)) == success)
        createDescription2(&made, product.data(), nullptr, engine, nullptr);
    return made;
}

const DnnLibrary& library()
{
    static const DnnLibrary opened = [] {
        for (const char* name : {"libdnnl.so.3", "libdnnl.so.2"}) {
            DnnLibrary found;
            void* handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
            if (handle != nullptr && found.load(handle))
                return found;
        }
        return DnnLibrary{};
    }();
    return opened;
}

int dataType(Format format)
{
    switch (format) {
    case Format::Fp16: return f16;
    case Format::Bf16: return bf16;
    case Format::Int8: return s8;
    default: return f32;
    }
}

class OneDnnPlan final : public GemmPlan
{
public:
    OneDnnPlan(const DnnLibrary& dnn, int threads)
        : m_dnn(dnn)
        , m_threads(threads)
    { }
    ~OneDnnPlan() override
    {
        for (void* memory : {m_a, m_b, m_c}) {
            if (memory != nullptr)
                m_dnn.destroyMemory(memory);
        }
        if (m_stream != nullptr)
            m_dnn.destroyStream(m_stream);
        if (m_primitive != nullptr)
            m_dnn.destroyPrimitive(m_primitive);
        if (m_description != nullptr)
            m_dnn.destroyDescription(m_description);
    }
    OneDnnPlan(const OneDnnPlan&) = delete;
    OneDnnPlan& operator=(const OneDnnPlan&) = delete;

    bool prepare(const GemmTask& task);

    void run(const void* a, const void* b, void* c) override
    {
        m_dnn.setThreads(m_threads);
        m_dnn.setHandle(m_a, const_cast<void*>(a));
        m_dnn.setHandle(m_b, const_cast<void*>(b));
        m_dnn.setHandle(m_c, c);
        const ExecuteArgument arguments[] = {{source, m_a}, {weights, m_b}, {destination, m_c}};
        m_dnn.execute(m_primitive, m_stream, 3, arguments);
        m_dnn.wait(m_stream);
    }
    std::string name() const override { return m_name; }

private:
    const DnnLibrary& m_dnn;
    int m_threads;
    void *m_description = nullptr, *m_primitive = nullptr, *m_stream = nullptr;
    void *m_a = nullptr, *m_b = nullptr, *m_c = nullptr;
    std::string m_name;
};

bool OneDnnPlan::prepare(const GemmTask& task)
{
    m_dnn.setThreads(m_threads); // what it decides now is for so many
    const auto& [m, n, k] = task.shape;
    const int operand = dataType(task.operands);
    const int result = task.operands == Format::Int8 ? int(s32) : dataType(task.result);
    const auto strides = [](bool isTransposed, std::int64_t stride, Dimensions& into) {
        into[0] = isTransposed ? 1 : stride;
        into[1] = isTransposed ? stride : 1;
    };
    const Dimensions aSizes = {m, k}, bSizes = {k, n}, cSizes = {m, n};
    Dimensions aStrides{}, bStrides{};
    const Dimensions cStrides = {task.cStride, 1};
    strides(task.aTransposed, task.aStride, aStrides);
    strides(task.bTransposed, task.bStride, bStrides);
    MemoryDescription a, b, c;
    bool isReady = m_dnn.describe(a, aSizes, aStrides, operand) && m_dnn.describe(b, bSizes, bStrides, operand)
        && m_dnn.describe(c, cSizes, cStrides, result);
    if (isReady)
        m_description = m_dnn.product(a, b, c);
    isReady = m_description != nullptr && m_dnn.createPrimitive(&m_primitive, m_description) == success
        && m_dnn.createStream(&m_stream, m_dnn.engine, inOrder) == success
        && m_dnn.createMemory(&m_a, m_dnn.pointer(a), m_dnn.engine, nullptr) == success
        && m_dnn.createMemory(&m_b, m_dnn.pointer(b), m_dnn.engine, nullptr) == success
        && m_dnn.createMemory(&m_c, m_dnn.pointer(c), m_dnn.engine, nullptr) == success;
    for (MemoryDescription* description : {&a, &b, &c})
        m_dnn.forget(*description);
    const char* name = nullptr;
    if (isReady && m_dnn.query(m_description, implementationName, 0, &name) == success && name)
        m_name = m_dnn.name + " " + name;
    return isReady;
}

} // namespace

const std::string& oneDnnName()
{
    return library().name;
}

bool hasExactInt8()
{
#ifdef __x86_64__
    return hasVnni();
#else
    return true;
#endif
}

Result<std::unique_ptr<GemmPlan>> oneDnnPlan(const GemmTask& task, int threads)
{
    if (library().name.empty())
        return fail("run.skipped", "there is no oneDNN on this machine", "install it (Debian: libdnnl2 or libdnnl3)");
    auto plan = std::make_unique<OneDnnPlan>(library(), threads);
    if (!plan->prepare(task))
        return fail(
            "run.skipped",
            fmt::format("{} has no product in {} on this processor", library().name, numberFormat(task.operands).label),
            "choose another format", "format");
    return std::unique_ptr<GemmPlan>(std::move(plan));
}

} // namespace memscape::host
