// SPDX-License-Identifier: Apache-2.0
#include "core/experiment/schema.h"
#include "core/experiments/layout/layout.h"

namespace memscape {

namespace {

const ChoiceTable<DType> dtypes{
    {DType::Float32, {"float32", "float32 (4 B)", "single precision"}},
    {DType::Float64, {"float64", "float64 (8 B)", "double precision"}},
    {DType::Float16, {"float16", "float16 (2 B)", "half precision"}},
    {DType::BFloat16, {"bfloat16", "bfloat16 (2 B)", "the range of float32 in half the bytes"}},
    {DType::Int64, {"int64", "int64 (8 B)", "what indices are stored in"}},
    {DType::Int32, {"int32", "int32 (4 B)", "whole numbers"}},
    {DType::Int8, {"int8", "int8 (1 B)", "quantized weights"}},
    {DType::UInt8, {"uint8", "uint8 (1 B)", "pixels"}},
    {DType::Bool, {"bool", "bool (1 B)", "a mask: a byte each"}}};

const ChoiceTable<MemoryFormat> orders{
    {MemoryFormat::Contiguous,
     {"row-major", "row-major", "the last dimension is contiguous: PyTorch, NumPy's C order; NCHW"}},
    {MemoryFormat::ColumnMajor,
     {"column-major", "column-major", "the first dimension is contiguous: Fortran, NumPy's F order"}},
    {MemoryFormat::ChannelsLast,
     {"channels-last", "channels last", "NHWC (NDHWC): the channels of a pixel lie side by side"}}};

const ChoiceTable<WalkOrder> walks{
    {WalkOrder::LastFastest, {"last-fastest", "last dimension fastest", "as nested loops over the dimensions do"}},
    {WalkOrder::FirstFastest,
     {"first-fastest", "first dimension fastest", "the outermost dimension in the innermost loop"}}};

std::string copyVersionHelp()
{
    std::string help = "Which of our copies, numbered from naive to best.";
    for (const bool isGpu : {false, true}) {
        help += isGpu ? " On a GPU:" : " On a CPU:";
        for (int version = 1; version <= copyVersionCount; ++version)
            help += " " + std::to_string(version) + " " + copyLesson(isGpu, version)
                + (version < copyVersionCount ? "," : ".");
    }
    return help;
}

} // namespace

std::string copyLesson(bool isGpu, int version)
{
    switch (version) {
    case 1: return "element by element, in the order of the target";
    case 2: return isGpu ? "tiles through shared memory" : "tiles whose lines fit the nearest cache";
    case 3: return isGpu ? "tiles with a padded row, without bank conflicts" : "tiles turned in registers";
    default: return isGpu ? "16 bytes a load and store, swizzled tiles" : "lines stored past the caches";
    }
}

Schema layoutSchema()
{
    return {
        textSpec("shape", "shape", "Sizes of the tensor, 2,3,4. At most 8 dimensions; sizes may be 0.", "2048,2048", 0,
                 1024),
        textSpec("views", "operations",
                 "Operations on it, as in PyTorch: transpose(0,1);narrow(2,1,2). An operation that PyTorch refuses is "
                 "shown as refused, and the operations after it continue without it.",
                 "transpose(0,1)", 0, 1024),
        choiceSpec("dtype", "dtype", "Type of one element: its bytes.", dtypes.choices()),
        choiceSpec("order", "stored", "How the tensor lies before the first operation.", orders.choices()),
        choiceSpec("walk", "walk", "In which order the result is read.", walks.choices()),
        integerSpec("reads", "reads", "How often the result is read: a copy pays off after enough reads.",
                    {.least = 1, .most = 1024, .standard = "8", .scale = Scale::Log2}),
        integerSpec("version", "copy", copyVersionHelp(),
                    {.most = copyVersionCount, .words = {{"0", "best", "the last that this device runs"}}}),
    };
}

DType layoutDType(const Parameters& parameters)
{
    return dtypes.of(parameters.choice("dtype"));
}

WalkOrder walkOrder(const Parameters& parameters)
{
    return walks.of(parameters.choice("walk"));
}

MemoryFormat storedOrder(const Parameters& parameters, std::size_t rank)
{
    const MemoryFormat order = orders.of(parameters.choice("order"));
    return order == MemoryFormat::ChannelsLast && rank == 5 ? MemoryFormat::ChannelsLast3d : order;
}

const std::vector<LayoutPreset>& layoutPresets()
{
    static const std::vector<LayoutPreset> presets{
        {"Transposed matrix", "2048,2048", "transpose(0,1)", "last-fastest",
         "a view; each neighbour in the walk is a row of memory away"},
        {"Small and whole", "4,6", "transpose(0,1)", "last-fastest", "every element and every stride at a glance"},
        {"Window", "2,3,4", "transpose(0,1);narrow(2,1,2)", "last-fastest", "strides stay, the offset grows"},
        {"Why view() is refused", "6,8", "t();view(48);reshape(48)", "last-fastest",
         "strides cannot express it, so view() fails; reshape() copies"},
        {"NCHW read by pixels", "32,64,56,56", "permute(0,2,3,1)", "last-fastest",
         "the channels of a pixel lie H × W elements apart"},
        {"To channels last", "32,64,56,56", "contiguous(channels_last);permute(0,2,3,1)", "last-fastest",
         "after one copy the channels of a pixel are neighbours"},
        {"Attention heads", "4,512,768", "view(4,512,12,64);transpose(1,2)", "last-fastest",
         "heads are split without a copy; merging them again needs one"},
        {"Broadcast row", "1,1024", "expand(4096,-1)", "last-fastest", "stride 0: 16 MiB of tensor, 4 KiB of memory"},
        {"Sliding windows", "4096", "unfold(0,8,4)", "last-fastest", "windows overlap: more elements than memory"},
        {"First dimension fastest", "2048,2048", "", "first-fastest", "a contiguous tensor read against its order"},
    };
    return presets;
}

} // namespace memscape
