// SPDX-License-Identifier: GPL-3.0-or-later
// For tests of pictures: what an experiment predicts, shown in its picture; and the pixels that the picture draws.
#pragma once

#include "app/pictures/common/picture.h"
#include "core/device/catalogue.h"
#include "core/experiment/experiment.h"

#include <QImage>
#include <QPainter>
#include <QTest>

#include <initializer_list>
#include <string>
#include <vector>

namespace memscape {

/// An experiment's prediction at some parameters, on a device of the catalogue.
struct PictureCase
{
    const Experiment* experiment;
    Device device;
    Parameters parameters;
    Prediction prediction;

    PictureCase(const char* id, const std::vector<std::string>& assignments, const char* on = "nvidia-h200")
        : experiment(*findExperiment(id))
        , device(*findDevice(on))
        , parameters(resolve(experiment->schema(), assignments).value())
        , prediction(experiment->predict(device, parameters).value())
    { }
    void show(Picture& picture, const Measurement* measured = nullptr) const
    {
        picture.setState({*experiment, device, parameters, &prediction, measured});
    }
    double figure(const std::string& key) const { return findFigure(prediction.figures, key)->number(); }
};

/// The picture in an export of this size.
inline QImage exported(const Picture& picture, QSize size, const Theme& theme)
{
    QImage image(size, QImage::Format_RGB32);
    QPainter painter(&image);
    picture.paintTo(painter, QRectF(QPointF(0, 0), size), theme);
    painter.end();
    return image;
}

/// How many pixels have exactly this colour.
inline int pixelsOf(const QImage& image, const QColor& colour)
{
    int count = 0;
    for (int y = 0; y < image.height(); ++y) {
        for (int x = 0; x < image.width(); ++x)
            count += image.pixelColor(x, y) == colour;
    }
    return count;
}

/// A row for each theme and size: `isDark`, `size`.
inline void bothThemesIn(std::initializer_list<QSize> sizes)
{
    QTest::addColumn<bool>("isDark");
    QTest::addColumn<QSize>("size");
    for (const bool isDark : {false, true}) {
        for (const QSize size : sizes)
            QTest::addRow("%s %d", isDark ? "dark" : "light", size.width()) << isDark << size;
    }
}

} // namespace memscape
