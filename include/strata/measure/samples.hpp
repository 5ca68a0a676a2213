#pragma once
// Repeated measurements of one quantity: all of them are kept, and summarised when shown.

#include <vector>

namespace strata {

struct Samples {
  std::vector<double> values;

  bool empty() const { return values.empty(); }
  // Of no values: 0.
  double median() const;
  double min() const;
  double max() const;
  double stdev() const;  // of the sample; 0 for fewer than two
};

}  // namespace strata
