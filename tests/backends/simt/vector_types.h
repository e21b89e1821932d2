// CUDA's built-in vector types, with CUDA's alignment:
// UBSan reports a misaligned vector load or store.
#pragma once

#define RF_SIMT_VECTOR2(name, type, alignment) \
  struct alignas(alignment) name {             \
    type x, y;                                 \
  };                                           \
  inline name make_##name(type x, type y) { return {x, y}; }
#define RF_SIMT_VECTOR3(name, type) \
  struct name {                     \
    type x, y, z;                   \
  };                                \
  inline name make_##name(type x, type y, type z) { return {x, y, z}; }
#define RF_SIMT_VECTOR4(name, type, alignment) \
  struct alignas(alignment) name {             \
    type x, y, z, w;                           \
  };                                           \
  inline name make_##name(type x, type y, type z, type w) { return {x, y, z, w}; }
#define RF_SIMT_VECTORS(prefix, type)                \
  RF_SIMT_VECTOR2(prefix##2, type, 2 * sizeof(type)) \
  RF_SIMT_VECTOR3(prefix##3, type)                   \
  RF_SIMT_VECTOR4(prefix##4, type, 4 * sizeof(type) < 16 ? 4 * sizeof(type) : 16)

RF_SIMT_VECTORS(char, signed char)
RF_SIMT_VECTORS(uchar, unsigned char)
RF_SIMT_VECTORS(short, short)
RF_SIMT_VECTORS(ushort, unsigned short)
RF_SIMT_VECTORS(int, int)
RF_SIMT_VECTORS(uint, unsigned int)
RF_SIMT_VECTORS(longlong, long long)
RF_SIMT_VECTORS(ulonglong, unsigned long long)
RF_SIMT_VECTORS(float, float)
RF_SIMT_VECTORS(double, double)

#undef RF_SIMT_VECTORS
#undef RF_SIMT_VECTOR4
#undef RF_SIMT_VECTOR3
#undef RF_SIMT_VECTOR2

struct dim3 {
  unsigned int x, y, z;
  constexpr dim3(unsigned int x_ = 1, unsigned int y_ = 1, unsigned int z_ = 1)
      : x(x_), y(y_), z(z_) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return {x, y, z}; }
};
