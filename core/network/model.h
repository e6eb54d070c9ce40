// SPDX-License-Identifier: Apache-2.0
// What a model is: its family and the sizes that decide every tensor it has. A description is made
// by the readers (model_names.h, model_config.h), turned into a list of parameters by inventory.h,
// and into operators by the families. Names of fields are the field's own: "ffn" is the width of
// the feed-forward layer, "heads" are query heads.
//
// Left out: what does not change a shape (epsilons, rotary base, initialisation).
#pragma once

#include "core/base/result.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace memscape {

struct NetworkFile;

/// Traced: a program that Python exported (network_file.h).
enum class Family : std::uint8_t {
    Decoder,
    Encoder,
    EncoderDecoder,
    VisionTransformer,
    Diffusion,
    StateSpace,
    Cnn,
    Mlp,
    Traced
};
std::string_view familyText(Family family);

enum class NormKind : std::uint8_t { LayerNorm, RmsNorm };
/// Before attention and feed-forward (GPT-2), after the residual sum (BERT), or both around each
/// (Gemma 2 and 3: "sandwich").
enum class NormPlacement : std::uint8_t { Before, After, Both };
/// Alibi adds to each score a number that grows with the distance, one slope a head; nothing is learned.
enum class PositionKind : std::uint8_t { None, Learned, Rotary, RelativeBias, Alibi };
/// GeluNew is the tanh approximation that Hugging Face writes out operator by operator ("gelu_new");
/// GeluTanh is PyTorch's fused kernel of it.
/// QuickGelu is x · sigmoid(1.702 x), written out, too (CLIP).
enum class ActivationKind : std::uint8_t { Relu, Gelu, GeluTanh, GeluNew, QuickGelu, Silu, Tanh };
/// What follows the last layer.
enum class HeadKind : std::uint8_t { None, LanguageModel, MaskedLanguageModel, Pooler, Classifier };

/// A mixture of experts: a router picks `active` of `count` feed-forward networks for each token.
struct Experts
{
    std::int64_t count = 0; ///< routed ones; 0: a dense model
    std::int64_t active = 0;
    std::int64_t ffn = 0;       ///< width of one expert
    std::int64_t sharedFfn = 0; ///< width of the part that every token uses (all shared experts together)
    bool sharedGate = false;    ///< the shared part is scaled by a gate of its own (Qwen2-MoE)
    bool routerBias = false;    ///< one correction per expert (DeepSeek-V3) or a bias of the router
    bool expertBiases = false;  ///< (GPT-OSS)
};

/// Multi-head latent attention (DeepSeek): keys and values come out of a small common vector.
struct LatentAttention
{
    std::int64_t queryRank = 0;    ///< 0: queries are made directly
    std::int64_t keyValueRank = 0; ///< 0: ordinary attention
    std::int64_t ropeHeadDim = 0, plainHeadDim = 0, valueHeadDim = 0;
};

struct Biases
{
    bool query = false, key = false, value = false;
    bool attentionOutput = false;
    bool feedForward = false;
    bool norm = false; ///< of LayerNorm
    bool head = false;
};

struct PictureInput
{
    std::int64_t size = 224, patch = 16, channels = 3, classes = 1000;
};

/// What makes tokens of a picture in front of a decoder.
struct VisionTower
{
    enum class Kind : std::uint8_t { Clip, Qwen2, Qwen25 }; ///< LLaVA's, Qwen2-VL's, Qwen2.5-VL's

    Kind kind = Kind::Clip;
    std::int64_t layers = 0; ///< 0: there is none
    std::int64_t hidden = 0, heads = 0, ffn = 0;
    PictureInput picture;
    ActivationKind activation = ActivationKind::QuickGelu;
    // CLIP's
    std::int64_t taken = 0;  ///< the decoder gets what so many layers made
    bool keepsClass = false; ///< and the class token's with the patches'
    ActivationKind projectorActivation = ActivationKind::Gelu;
    // Qwen's
    std::int64_t merged = 1; ///< patches of a side that become one token
    std::int64_t frames = 2; ///< of time in a patch; a picture is repeated
    std::int64_t window = 0; ///< pixels of a side, in all but the whole layers (Qwen2.5-VL)
    std::vector<std::int64_t> wholeLayers;

    bool hasGrid() const { return layers > 0 && kind != Kind::Clip; } ///< tokens have a place in height and width
    std::int64_t patches() const { return (picture.size / picture.patch) * (picture.size / picture.patch); }
    /// Of a picture in the sequence.
    std::int64_t tokens() const { return layers > 0 ? patches() / (merged * merged) + keepsClass : 0; }
};

/// Whisper's: a spectrogram of channels × two frames for each position of the encoder.
struct AudioInput
{
    std::int64_t channels = 80, positions = 1500;
};

/// Swin: attention within windows, in stages that halve the side of the picture and double the width.
struct WindowStages
{
    std::vector<std::int64_t> depths, heads; ///< layers and heads of each stage
    std::int64_t window = 7;                 ///< its side, in patches
};

/// What predicts the noise of a latent picture: DiT, or the UNet of Stable Diffusion, whose other fields these are.
struct Diffusion
{
    std::int64_t outputs = 4;                  ///< channels of the result
    std::vector<std::int64_t> widths, heads;   ///< of each level, the largest picture first
    std::vector<std::uint8_t> attends;         ///< 1: transformer layers on this level
    std::int64_t blockLayers = 2, groups = 32; ///< residual blocks of a level; groups of a norm
    std::int64_t textTokens = 77, textWidth = 768;
    bool isProjectionLinear = false; ///< in front of the transformer layers; else a convolution
};

/// Mamba: a convolution along the sequence, then a state that every token updates.
struct StateSpace
{
    std::int64_t inner = 0;  ///< channels: expand × hidden
    std::int64_t state = 16; ///< numbers a channel remembers
    std::int64_t kernel = 4; ///< of the convolution
    std::int64_t rank = 0;   ///< of the step's projection
    bool hasConvolutionBias = true, hasProjectionBias = false;
    bool residualInFloat = true; ///< what layers add to is float, whatever the weights are
};

/// The convolutional families; layers are written out by cnn.h.
enum class CnnKind : std::uint8_t { AlexNet, Vgg, ResNet, MobileNetV1, MobileNetV2, EfficientNet, DenseNet };
struct CnnDescription
{
    CnnKind kind = CnnKind::ResNet;
    std::vector<std::int64_t> depths; ///< ResNet: blocks a stage; VGG: convolutions; DenseNet: layers a block
    std::vector<std::int64_t> widths; ///< ResNet: hidden_sizes; VGG: channels a stage
    bool bottleneck = true;           ///< ResNet: 1×1, 3×3, 1×1 instead of two 3×3
    bool batchNorm = false;           ///< VGG
    bool separable = true;            ///< MobileNet v1: depthwise + pointwise; false: standard
    double widthMultiplier = 1;       ///< MobileNet, EfficientNet
    double depthMultiplier = 1;       ///< EfficientNet
    std::int64_t growth = 32;         ///< DenseNet: channels that a layer adds
    std::int64_t stem = 64;           ///< DenseNet: channels of the first convolution
};

/// What a safetensors file really holds.
struct StoredWeights
{
    std::int64_t elements = 0; ///< of all tensors; packed quantized weights count as they lie there
    std::int64_t bytes = 0;
    std::vector<std::pair<std::string, std::int64_t>> bytesByDtype; ///< "BF16": 16060522496
};

struct ModelDescription
{
    std::string name;         ///< "gpt2", or what the user gave
    std::string title;        ///< "GPT-2 small (124M)"; may be empty
    std::string architecture; ///< Hugging Face's model_type: "llama"; "from-scratch", "mlp"
    Family family = Family::Decoder;

    std::int64_t layers = 0;        ///< of the encoder, where there are two stacks
    std::int64_t decoderLayers = 0; ///< of an encoder-decoder
    std::int64_t hidden = 0;
    std::int64_t heads = 0, kvHeads = 0, headDim = 0;
    std::int64_t ffn = 0;
    std::int64_t vocab = 0;
    std::int64_t maxPositions = 0;
    std::int64_t remainder = 0;       ///< elements of a vector that completes a number of parameters (model_recipes.h)
    std::int64_t tokenTypes = 0;      ///< BERT's segments
    std::int64_t embeddingWidth = 0;  ///< where it differs from hidden (OPT-350M), else 0
    std::int64_t relativeBuckets = 0; ///< T5

    NormKind norm = NormKind::RmsNorm;
    NormPlacement normPlacement = NormPlacement::Before;
    PositionKind positions = PositionKind::Rotary;
    ActivationKind activation = ActivationKind::Silu;
    HeadKind head = HeadKind::LanguageModel;
    Biases biases;
    bool gated = true;              ///< feed-forward: down(act(gate(x)) · up(x))
    bool tied = false;              ///< the head is the embedding
    bool parallelResidual = false;  ///< attention and feed-forward read the same input (NeoX, Phi)
    bool sharedNorm = false;        ///< …and the same norm (Phi): one norm a layer
    bool embeddingNorm = false;     ///< a norm over the embeddings (BLOOM)
    bool queryKeyNorm = false;      ///< RMSNorm over each head of q and k (Qwen3, Gemma 3)
    bool queryKeyNormWhole = false; ///< …over all heads at once (OLMoE)
    bool layerScale = false;        ///< each part of a layer is scaled by a vector (DINOv2)
    bool finalNorm = true;
    bool attentionSinks = false;                   ///< one learned logit a head (GPT-OSS)
    double attentionSoftcap = 0, logitSoftcap = 0; ///< Gemma 2; 0: none
    double rotaryShare = 1;                        ///< of a head's dimensions (NeoX 0.25, Phi-2 0.4)

    std::int64_t slidingWindow = 0;          ///< tokens that a sliding layer sees; 0: no such layers
    std::vector<std::uint8_t> slidingLayers; ///< 1: sliding, by layer; empty: all or none, see above
    Experts experts;
    std::vector<std::uint8_t> sparseLayers; ///< 1: experts, by layer; empty: all
    LatentAttention latent;
    PictureInput picture;
    VisionTower vision;
    AudioInput audio;
    WindowStages windows;
    Diffusion diffusion;
    StateSpace stateSpace;
    CnnDescription cnn;
    std::vector<std::int64_t> mlpSizes;         ///< of an MLP chain: input, hidden…, output
    std::shared_ptr<const NetworkFile> program; ///< of a traced network

    std::optional<StoredWeights> stored;  ///< when it was read from its weights
    std::string storedDtype;              ///< of the published weights, "bfloat16"; empty: not said
    bool mxfp4Experts = false;            ///< the published experts are in MXFP4 (GPT-OSS)
    std::string source;                   ///< where the sizes are from
    std::vector<std::string> assumptions; ///< a sentence each: what was not said and what was taken
    std::string caution;                  ///< one that may make every number wrong: an architecture that is not known

    bool isSparse(std::int64_t layer) const;  ///< this layer has experts
    bool isSliding(std::int64_t layer) const; ///< this layer sees only slidingWindow tokens
    /// The key/value width of one head that attention multiplies: headDim, or MLA's.
    std::int64_t queryHeadDim() const;
    std::int64_t valueHeadDim() const;
    /// The longest sequence: rows of a learned table of positions. 0: no table ends it.
    std::int64_t tokenLimit() const;
};

/// What `key` (sequence, context) is told where it is longer than the positions of a model: network.shape, with the
/// remedy.
Error beyondPositions(std::string_view key, std::int64_t tokens, std::int64_t positions);

/// Whether every size is one that can be computed with: positive where it must be, within limits
/// that no machine reaches, and consistent (heads divide among key/value heads…). The error's place
/// is the name of the field. Errors: model.range, model.contradiction.
Result<void> checkModel(const ModelDescription& model);

} // namespace memscape
