#pragma once
// All that a kernel may ask of the machine, so that one source serves the GPU and the emulator that
// runs it in tests on any host. nvcc takes the GPU's own things; any other compiler takes those of
// tests/simt, where every access is checked. Kernel sources name neither.
//
//   STRATA_KERNEL(threads)   begins a kernel of at most so many threads a block; with a second number,
//                            so many blocks shall fit a multiprocessor
//   STRATA_DEVICE            begins a function that kernels call
//   STRATA_PARAMETER         a kernel's parameter that is indexed: not copied to each thread
//   STRATA_UNROLL            before a loop whose steps are to be written out
//   thread_index() block_threads() block_x() block_y() grid_x() lane_index() warp_index()
//   sync_threads() sync_warp()
//   shuffle_xor(v, mask) shuffle_down(v, by) shuffle(v, lane)        whole warps only
//   ballot(flag)
//   Group<T, n>              n elements in registers
//   Global<T>                device memory: load, store, atomic_add, atomic_min; load_group and
//                            store_group of n elements, aligned to the smaller of their size and
//                            16 bytes, are 16-byte accesses where they can be
//   Shared<T>                part of the block's shared memory, at a byte offset that the launch
//                            plan knows; the same members
//   copy_async16(to, i, from, j, wanted) commit_copies() wait_copies<n>()  cp.async, 16 bytes
//   load_matrices(shared, i) load_matrices_transposed(shared, i)     ldmatrix .x4, an address a
//   lane multiply_add(c, a, b)                                    mma m16n8k16, bf16 into fp32
//   narrow(float) pack2(low, high) exp2_fast(float) population_count(bits)
//
// Layouts of matrix fragments: the PTX ISA's, chapters ldmatrix and mma.m16n8k16.

#ifdef __CUDACC__
#include "kernels/cuda/simt_device.cuh"
#else
#include "simt/emulated_api.hpp"
#endif
