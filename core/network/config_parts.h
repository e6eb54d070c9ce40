// SPDX-License-Identifier: Apache-2.0
// The keys of a configuration, part by part, onto a description that already has the structure and
// the defaults of its architecture (architectures.h).
#pragma once

#include "core/network/config_fields.h"
#include "core/network/model.h"

namespace memscape {

/// Everything of model.family.
void readConfig(ConfigFields& fields, ModelDescription& model);

void readExperts(ConfigFields& fields, ModelDescription& model);
void readLatentAttention(ConfigFields& fields, ModelDescription& model);
void readSlidingWindow(ConfigFields& fields, ModelDescription& model);
void readCnn(ConfigFields& fields, ModelDescription& model);
void readWhisper(ConfigFields& fields, ModelDescription& model);
void readDino(ConfigFields& fields, ModelDescription& model);
void readSwin(ConfigFields& fields, ModelDescription& model);
/// LLaVA's vision tower and projector; `document` is the object around text_config.
void readVisionTower(const JsonReader& document, ConfigFields& fields, ModelDescription& model);
void readDit(ConfigFields& fields, ModelDescription& model);
void readUnet(ConfigFields& fields, ModelDescription& model);
void readStateSpace(ConfigFields& fields, ModelDescription& model);

/// Classes of a classifier: num_labels, or as many as id2label names; nothing when neither is there.
std::optional<std::int64_t> givenClasses(ConfigFields& fields);
void readPicture(ConfigFields& fields, PictureInput& picture);
ActivationKind activationFrom(ConfigFields& fields, ActivationKind standard);

} // namespace memscape
