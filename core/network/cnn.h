// SPDX-License-Identifier: Apache-2.0
// Convolutional networks written out layer by layer: AlexNet, VGG, ResNet, MobileNet v1 and v2, EfficientNet and
// DenseNet, with torchvision's names (MobileNet v1: transformers'). The parameters, the multiply-adds and the
// operators of a network all come from this one list.
//
// A residual block is BlockBegin … BlockEnd: BlockEnd adds the block's input. Layers between
// ShortcutBegin and BlockEnd run on the block's input instead (ResNet's "downsample"). Squeeze-and-excite is
// GateBegin … GateEnd: what lies between makes a factor for each channel of GateBegin's input. A dense block is
// DenseBegin … DenseEnd: Concatenate joins what DenseBegin got and every Collect so far.
//
// Left out: dilation, stochastic depth, and the bottleneck-first stride of the first ResNet paper: as torchvision does
// ("v1.5"), the 3×3 convolution takes the stride.
#pragma once

#include "core/network/model.h"

#include <cstdint>
#include <string>
#include <vector>

namespace memscape {

enum class CnnLayerKind : std::uint8_t {
    Convolution,
    BatchNorm,
    Relu,
    Relu6,
    Silu,
    Sigmoid,
    MaxPool,
    AveragePool,
    AdaptiveAveragePool,
    Flatten,
    Dropout,
    Linear,
    BlockBegin,
    ShortcutBegin,
    BlockEnd,
    GateBegin,
    GateEnd,
    DenseBegin,
    Concatenate,
    Collect,
    DenseEnd,
};

struct CnnLayer
{
    CnnLayerKind kind = CnnLayerKind::Relu;
    std::string name;                     ///< "layer1.0.conv1"; of a block: "layer1.0"
    std::int64_t inputs = 0, outputs = 0; ///< channels, or features of a Linear
    std::int64_t kernel = 1, stride = 1, padding = 0, groups = 1;
    bool hasBias = false;
    std::int64_t size = 0; ///< side of its output picture; 1 after Flatten
};

/// Errors: those of checkModel(), and model.contradiction when the picture shrinks to nothing.
Result<std::vector<CnnLayer>> cnnLayers(const ModelDescription& model);

} // namespace memscape
