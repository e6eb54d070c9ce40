// SPDX-License-Identifier: Apache-2.0
// The names under which configurations give a size; the first that is there counts.
#pragma once

#include "core/network/config_fields.h"

#include <string>
#include <string_view>

namespace memscape::config_keys {

inline constexpr ConfigFields::Keys hidden = {"hidden_size", "n_embd", "n_embed", "d_model", "dim"};
inline constexpr ConfigFields::Keys layers = {"num_hidden_layers", "n_layer",        "num_layers",
                                              "n_layers",          "encoder_layers", "depth"};
inline constexpr ConfigFields::Keys decoderLayers = {"num_decoder_layers", "decoder_layers"};
inline constexpr ConfigFields::Keys vocab = {"vocab_size"};
inline constexpr ConfigFields::Keys maxPositions = {"max_position_embeddings", "n_positions", "n_ctx", "max_seq_len"};
inline constexpr ConfigFields::Keys tokenTypes = {"type_vocab_size"};
inline constexpr ConfigFields::Keys embeddingWidth = {"word_embed_proj_dim"};
inline constexpr ConfigFields::Keys relativeBuckets = {"relative_attention_num_buckets"};
inline constexpr ConfigFields::Keys heads = {"num_attention_heads", "n_head", "num_heads", "n_heads",
                                             "encoder_attention_heads"};
inline constexpr ConfigFields::Keys keyValueHeads = {"num_key_value_heads", "num_kv_heads", "n_head_kv", "n_kv_heads"};
inline constexpr ConfigFields::Keys headDim = {"head_dim", "d_kv", "attention_head_dim"};
inline constexpr ConfigFields::Keys feedForward = {"intermediate_size", "n_inner",         "d_ff",
                                                   "ffn_dim",           "ffn_hidden_size", "encoder_ffn_dim"};
inline constexpr ConfigFields::Keys rotaryShare = {"partial_rotary_factor", "rotary_pct"};
inline constexpr ConfigFields::Keys slidingWindow = {"sliding_window", "sliding_window_size", "attention_chunk_size"};
inline constexpr ConfigFields::Keys experts = {"num_local_experts", "n_routed_experts", "num_experts",
                                               "moe_num_experts"};
inline constexpr ConfigFields::Keys activeExperts = {"num_experts_per_tok", "num_experts_per_token",
                                                     "experts_per_token", "moe_topk", "moe_top_k"};
inline constexpr ConfigFields::Keys expertFeedForward = {"moe_intermediate_size", "expert_ffn_size",
                                                         "intermediate_size", "ffn_dim"};
inline constexpr ConfigFields::Keys sharedExperts = {"n_shared_experts", "num_shared_experts"};
inline constexpr ConfigFields::Keys sharedFeedForward = {"shared_expert_intermediate_size"};
inline constexpr ConfigFields::Keys queryRank = {"q_lora_rank"};
inline constexpr ConfigFields::Keys keyValueRank = {"kv_lora_rank"};
inline constexpr ConfigFields::Keys ropeHeadDim = {"qk_rope_head_dim"};
inline constexpr ConfigFields::Keys plainHeadDim = {"qk_nope_head_dim"};
inline constexpr ConfigFields::Keys valueHeadDim = {"v_head_dim"};
inline constexpr ConfigFields::Keys imageSize = {"image_size", "sample_size", "input_size"};
inline constexpr ConfigFields::Keys patch = {"patch_size"};
inline constexpr ConfigFields::Keys patchWidth = {"embed_dim"};
inline constexpr ConfigFields::Keys channels = {"num_channels", "in_channels", "in_chans"};
inline constexpr ConfigFields::Keys classes = {"num_labels", "num_classes"};
inline constexpr ConfigFields::Keys audioChannels = {"num_mel_bins"};
inline constexpr ConfigFields::Keys audioPositions = {"max_source_positions"};
inline constexpr ConfigFields::Keys window = {"window_size"};
inline constexpr ConfigFields::Keys innerWidth = {"intermediate_size", "d_inner", "expand"};
inline constexpr ConfigFields::Keys stateSize = {"state_size"};
inline constexpr ConfigFields::Keys stateKernel = {"conv_kernel"};
inline constexpr ConfigFields::Keys stepRank = {"time_step_rank"};
inline constexpr ConfigFields::Keys depths = {"depths", "block_config"};
inline constexpr ConfigFields::Keys widths = {"hidden_sizes", "block_out_channels"};
inline constexpr ConfigFields::Keys outputChannels = {"out_channels"};
inline constexpr ConfigFields::Keys blockLayers = {"layers_per_block"};
inline constexpr ConfigFields::Keys groups = {"norm_num_groups"};
inline constexpr ConfigFields::Keys textWidth = {"cross_attention_dim"};
inline constexpr ConfigFields::Keys widthMultiplier = {"depth_multiplier", "width_multiplier", "width_coefficient"};
inline constexpr ConfigFields::Keys depthMultiplier = {"depth_coefficient"};
inline constexpr ConfigFields::Keys growth = {"growth_rate"};
inline constexpr ConfigFields::Keys stem = {"num_init_features"};

/// Where this configuration gives what checkModel() calls `field`; the field itself when it is read
/// from no key.
std::string placeOf(const ConfigFields& fields, std::string_view field);

} // namespace memscape::config_keys
