#include "known_accelerators.hpp"

#include <algorithm>
#include <iterator>

namespace strata {
namespace {

struct NamedPeak {
  std::string_view name;
  KnownPeak peak;
};

constexpr KnownPeak a100{312e12, "NVIDIA A100 data sheet, BF16 Tensor Core without sparsity"};
constexpr KnownPeak h100_sxm{989e12,
                             "NVIDIA H100 data sheet, SXM, BF16 Tensor Core without sparsity"};
constexpr KnownPeak gh200{989e12, "NVIDIA GH200 data sheet, BF16 Tensor Core without sparsity"};

// Where a data sheet tells only what sparsity gives, half of that.
constexpr NamedPeak table[] = {
    {"NVIDIA A10", {125e12, "NVIDIA A10 data sheet, BF16 Tensor Core without sparsity"}},
    {"NVIDIA A30", {165e12, "NVIDIA A30 data sheet, BF16 Tensor Core without sparsity"}},
    {"NVIDIA A40", {149.7e12, "NVIDIA A40 data sheet, BF16 Tensor Core without sparsity"}},
    {"NVIDIA A100-SXM4-40GB", a100},
    {"NVIDIA A100-SXM4-80GB", a100},
    {"NVIDIA A100-PCIE-40GB", a100},
    {"NVIDIA A100 80GB PCIe", a100},
    {"NVIDIA L4", {121e12, "NVIDIA L4 data sheet: half of 242 TFLOP/s with sparsity"}},
    {"NVIDIA L40S", {362e12, "NVIDIA L40S data sheet, BF16 Tensor Core without sparsity"}},
    {"NVIDIA H100 80GB HBM3", h100_sxm},
    {"NVIDIA H100 PCIe", {756e12, "NVIDIA H100 data sheet, PCIe, without sparsity"}},
    {"NVIDIA H100 NVL", {835e12, "NVIDIA H100 data sheet, NVL: half of 1,671 with sparsity"}},
    {"NVIDIA H200", {989e12, "NVIDIA H200 data sheet, SXM, BF16 Tensor Core without sparsity"}},
    {"NVIDIA H200 NVL", {835e12, "NVIDIA H200 data sheet, NVL: half of 1,671 with sparsity"}},
    {"NVIDIA GH200 480GB", gh200},
    {"NVIDIA GH200 120GB", gh200},
    {"NVIDIA GeForce RTX 3090",
     {71e12, "NVIDIA GA102 paper: BF16 Tensor Core with FP32 accumulation, no sparsity"}},
    {"NVIDIA GeForce RTX 4090",
     {165.2e12,
      "NVIDIA Ada GPU architecture paper: BF16 Tensor Core with FP32 accumulation, no sparsity"}},
};

}  // namespace

std::optional<KnownPeak> known_peak(std::string_view device_name) {
  const auto* found = std::ranges::find(table, device_name, &NamedPeak::name);
  if (found == std::end(table)) return std::nullopt;
  return found->peak;
}

}  // namespace strata
