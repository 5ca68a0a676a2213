#include "kernels/cuda/gemm.hpp"

#include <map>
#include <mutex>
#include <string>
#include <tuple>

#include "kernels/cuda/bias.cuh"
#include "kernels/cuda/blas_library.hpp"
#include "kernels/cuda/cuda_launch.cuh"

namespace strata::cuda {
namespace {

// What CUDA says of it, where it is the device that failed.
std::string blas_advice(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_NOT_INITIALIZED:
    case CUBLAS_STATUS_ALLOC_FAILED:
      return "; the GPU's memory may be full: see nvidia-smi, or lower offload.gpu_limit";
    case CUBLAS_STATUS_ARCH_MISMATCH:
      return "; this version of the library has no code for the GPU";
    case CUBLAS_STATUS_EXECUTION_FAILED: {
      const cudaError_t error = cudaGetLastError();
      if (error == cudaSuccess) return "";
      return std::string("; ") + cudaGetErrorString(error) +
             std::string(cuda_advice(static_cast<int>(error)));
    }
    default:
      return "";
  }
}

void check_blas(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw Error(std::string("cuBLASLt, ") + what + ": " + blas_library().status_text(status) +
                blas_advice(status));
}

// Owns one of the library's descriptors; what it returns when one is given back is of no use.
template <class Handle, cublasStatus_t (*BlasLibrary::*destroy)(Handle)>
class BlasHandle {
 public:
  BlasHandle() = default;
  ~BlasHandle() {
    if (handle_ != nullptr) (blas_library().*destroy)(handle_);
  }
  BlasHandle(const BlasHandle&) = delete;
  BlasHandle& operator=(const BlasHandle&) = delete;
  Handle* out() { return &handle_; }
  Handle get() const { return handle_; }

 private:
  Handle handle_ = nullptr;
};
using BlasLayout = BlasHandle<cublasLtMatrixLayout_t, &BlasLibrary::layout_destroy>;
using BlasOperation = BlasHandle<cublasLtMatmulDesc_t, &BlasLibrary::operation_destroy>;
using BlasPreference = BlasHandle<cublasLtMatmulPreference_t, &BlasLibrary::preference_destroy>;

cudaDataType_t blas_type(DType dtype) {
  ensure(dtype == DType::f32 || dtype == DType::bf16);
  return dtype == DType::f32 ? CUDA_R_32F : CUDA_R_16BF;
}

cublasOperation_t blas_operation(Transposed transposed) {
  return transposed == Transposed::yes ? CUBLAS_OP_T : CUBLAS_OP_N;
}

// As stored: `rows` down, `columns` across, before any transposition.
void make_layout(BlasLayout& layout, const GemmOperand& operand, std::int64_t rows,
                 std::int64_t columns) {
  if (operand.transposed == Transposed::yes) std::swap(rows, columns);
  check_blas(blas_library().layout_create(layout.out(), blas_type(operand.data.dtype),
                                          static_cast<std::uint64_t>(rows),
                                          static_cast<std::uint64_t>(columns), operand.stride),
             "layout of a matrix");
}

template <class T>
void set(const BlasOperation& operation, cublasLtMatmulDescAttributes_t attribute, const T& value) {
  check_blas(blas_library().operation_set(operation.get(), attribute, &value, sizeof value),
             "attribute of a product");
}

template <class T>
void set(const BlasPreference& preference, cublasLtMatmulPreferenceAttributes_t attribute,
         const T& value) {
  check_blas(blas_library().preference_set(preference.get(), attribute, &value, sizeof value),
             "preference");
}

void make_operation(BlasOperation& operation, const GemmProblem& problem) {
  check_blas(blas_library().operation_create(operation.out(), CUBLAS_COMPUTE_32F, CUDA_R_32F),
             "product");
  set(operation, CUBLASLT_MATMUL_DESC_TRANSA, blas_operation(problem.a.transposed));
  set(operation, CUBLASLT_MATMUL_DESC_TRANSB, blas_operation(problem.b.transposed));
}

void set_bias(const BlasOperation& operation, const void* address) {
  set(operation, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
  set(operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, address);
}

// Whether all operands start on 16 bytes; if not, they are aligned as their elements are.
enum class Aligned : std::uint8_t { no, yes };

Aligned alignment_of(const GemmProblem& problem, const TensorView& bias) {
  for (const void* data :
       {problem.a.data.data, problem.b.data.data, problem.c.data.data, bias.data})
    if (reinterpret_cast<std::uintptr_t>(data) % 16 != 0) return Aligned::no;
  return Aligned::yes;
}

std::uint32_t alignment_bytes(const TensorView& data, Aligned aligned) {
  return aligned == Aligned::yes ? 16 : static_cast<std::uint32_t>(dtype_bytes(data.dtype));
}

// Nowhere. Who chooses an algorithm looks at the bias's address for its alignment, and shall see no
// more of it than that of all operands.
const void* address_to_choose_by(const TensorView& bias, Aligned aligned) {
  return reinterpret_cast<const void*>(std::uintptr_t{alignment_bytes(bias, aligned)});
}

void make_preference(BlasPreference& preference, std::uint64_t workspace_bytes,
                     const GemmProblem& problem, Aligned aligned) {
  check_blas(blas_library().preference_create(preference.out()), "preference");
  set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace_bytes);
  set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
      static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  const std::uint32_t a = alignment_bytes(problem.a.data, aligned),
                      b = alignment_bytes(problem.b.data, aligned),
                      c = alignment_bytes(problem.c.data, aligned);
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, a);
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, b);
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, c);
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, c);
}

// All that an algorithm may be chosen by.
using ProblemKey = std::tuple<std::int64_t, std::int64_t, std::int64_t, Transposed, Transposed,
                              DType, DType, Accumulate, bool, Aligned>;

ProblemKey key_of(const GemmProblem& problem, const TensorView& bias) {
  return {problem.m,
          problem.n,
          problem.k,
          problem.a.transposed,
          problem.b.transposed,
          problem.a.data.dtype,
          problem.c.data.dtype,
          problem.accumulate,
          !bias.empty(),
          alignment_of(problem, bias)};
}

}  // namespace

struct CudaGemm::Library {
  explicit Library(std::span<std::byte> memory) : workspace(memory) {
    check_blas(blas_library().create(&handle), "start");
  }
  ~Library() { blas_library().destroy(handle); }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  void multiply(cudaStream_t stream, const GemmProblem& problem, const TensorView& bias);

 private:
  cublasLtMatmulAlgo_t algorithm_for(const GemmProblem& problem, const ProblemKey& key,
                                     const BlasOperation& operation, const BlasLayout& a,
                                     const BlasLayout& b, const BlasLayout& c);

  cublasLtHandle_t handle = nullptr;
  std::span<std::byte> workspace;
  std::mutex mutex;
  std::map<ProblemKey, cublasLtMatmulAlgo_t> algorithms;  // guarded by mutex
};

cublasLtMatmulAlgo_t CudaGemm::Library::algorithm_for(const GemmProblem& problem,
                                                      const ProblemKey& key,
                                                      const BlasOperation& operation,
                                                      const BlasLayout& a, const BlasLayout& b,
                                                      const BlasLayout& c) {
  const std::lock_guard lock(mutex);
  const auto known = algorithms.find(key);
  if (known != algorithms.end()) return known->second;
  BlasPreference preference;
  make_preference(preference, workspace.size(), problem, std::get<Aligned>(key));
  cublasLtMatmulHeuristicResult_t found{};
  int count = 0;
  check_blas(blas_library().find_algorithms(handle, operation.get(), a.get(), b.get(), c.get(),
                                            c.get(), preference.get(), 1, &found, &count),
             "choice of an algorithm");
  if (count == 0) check_blas(CUBLAS_STATUS_NOT_SUPPORTED, "choice of an algorithm");
  return algorithms.emplace(key, found.algo).first->second;
}

void CudaGemm::Library::multiply(cudaStream_t stream, const GemmProblem& problem,
                                 const TensorView& bias) {
  ensure(problem.a.data.dtype == problem.b.data.dtype);
  BlasOperation operation;
  make_operation(operation, problem);
  if (!bias.empty()) set_bias(operation, address_to_choose_by(bias, alignment_of(problem, bias)));
  BlasLayout a, b, c;
  make_layout(a, problem.a, problem.m, problem.k);
  make_layout(b, problem.b, problem.k, problem.n);
  make_layout(c, problem.c, problem.m, problem.n);
  const cublasLtMatmulAlgo_t algorithm =
      algorithm_for(problem, key_of(problem, bias), operation, a, b, c);
  if (!bias.empty()) set_bias(operation, bias.data);
  const float alpha = 1, beta = problem.accumulate == Accumulate::yes ? 1.0f : 0.0f;
  check_blas(blas_library().multiply(handle, operation.get(), &alpha, problem.a.data.data, a.get(),
                                     problem.b.data.data, b.get(), &beta, problem.c.data.data,
                                     c.get(), problem.c.data.data, c.get(), &algorithm,
                                     workspace.data(), workspace.size(), stream),
             "product");
}

CudaGemm::CudaGemm(std::span<std::byte> workspace)
    : library_(std::make_unique<Library>(workspace)) {}
CudaGemm::~CudaGemm() = default;

void CudaGemm::linear_forward(CudaLaunch& launch, const TensorView& x_tk, const TensorView& w_nk,
                              const TensorView& bias_n, const TensorView& y_tn,
                              Accumulate accumulate) {
  const GemmProblem problem = linear_forward_problem(x_tk, w_nk, y_tn, accumulate);
  const bool on_the_way = !bias_n.empty() && bias_n.dtype == y_tn.dtype;
  library_->multiply(launch.stream(), problem, on_the_way ? bias_n : TensorView{});
  if (!bias_n.empty() && !on_the_way) launch_add_bias(launch, y_tn, bias_n);
}

void CudaGemm::linear_backward_input(CudaLaunch& launch, const TensorView& dy_tn,
                                     const TensorView& w_nk, const TensorView& dx_tk,
                                     Accumulate accumulate) {
  library_->multiply(launch.stream(), linear_input_problem(dy_tn, w_nk, dx_tk, accumulate), {});
}

void CudaGemm::linear_backward_weight(CudaLaunch& launch, const TensorView& dy_tn,
                                      const TensorView& x_tk, const TensorView& dw_nk,
                                      Accumulate accumulate) {
  library_->multiply(launch.stream(), linear_weight_problem(dy_tn, x_tk, dw_nk, accumulate), {});
}

}  // namespace strata::cuda
