#pragma once
// Charts as self-contained SVG documents: no scripts, no fonts or styles from elsewhere, readable
// on a light and on a dark page. Values.

#include <string>
#include <vector>

namespace strata {

struct ChartSeries {
  std::string name;
  std::vector<double> x, y;
};
struct ChartMark {  // a vertical line with a word
  double x = 0;
  std::string text;
};
struct LineChart {
  std::string title, x_label, y_label;  // labels carry the unit
  std::vector<ChartSeries> series;
  std::vector<ChartMark> marks;
};

struct ChartBar {
  double value = 0;          // NaN: not measured
  double low = 0, high = 0;  // a whisker where they differ
};
struct BarSeries {
  std::string name;
  std::vector<ChartBar> bars;  // one per group
};
struct BarChart {
  std::string title, y_label;  // the label carries the unit
  std::vector<std::string> groups;
  std::vector<BarSeries> series;
};

struct HeatMap {
  std::string title, x_label, y_label, unit;
  std::vector<std::string> columns, rows;
  std::vector<std::vector<double>> values;  // [row][column]; NaN: not measured
};

// A document of charts below one another, in order.
class SvgDocument {
 public:
  void add(const LineChart& chart);
  void add(const BarChart& chart);
  void add(const HeatMap& map);
  std::string text() const;

 private:
  std::vector<std::string> parts_;
  double height_ = 0;
};

}  // namespace strata
