// This crate's filter among those of fastfilter_cpp's benchmark. `run` includes it after `filterapi.h`.

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

extern "C" {
void *ccf_new(size_t keys, double rate);
void ccf_free(void *filter);
bool ccf_insert(const void *filter, uint64_t hash);
bool ccf_insert_batch(const void *filter, const uint64_t *hashes, size_t count);
bool ccf_contains(const void *filter, uint64_t hash);
bool ccf_remove(const void *filter, uint64_t hash);
size_t ccf_bytes(const void *filter);
}

// Of a false-positive rate in millionths. Each call crosses into a library that the C++ compiler cannot see into.
template <size_t millionths> class ConcurrentCuckoo {
  void *filter;

public:
  // The one that the cuckoo filters here use.
  hashing::SimpleMixSplit hasher;

  explicit ConcurrentCuckoo(size_t keys) : filter(ccf_new(keys, millionths / 1e6)) {}
  ConcurrentCuckoo(ConcurrentCuckoo &&other) : filter(other.filter), hasher(other.hasher) { other.filter = nullptr; }
  ~ConcurrentCuckoo() {
    if (filter != nullptr) ccf_free(filter);
  }
  void *Get() const { return filter; }
  size_t SizeInBytes() const { return ccf_bytes(filter); }
};

template <size_t millionths> struct FilterAPI<ConcurrentCuckoo<millionths>> {
  using Table = ConcurrentCuckoo<millionths>;
  static Table ConstructFromAddCount(size_t keys) { return Table(keys); }
  static void Add(uint64_t key, Table *table) {
    if (!ccf_insert(table->Get(), table->hasher(key))) throw std::logic_error("the filter is full");
  }
  static void AddAll(const std::vector<uint64_t> &keys, size_t start, size_t end, Table *table) {
    std::vector<uint64_t> hashes;
    hashes.reserve(end - start);
    for (size_t i = start; i < end; i++) hashes.push_back(table->hasher(keys[i]));
    if (!ccf_insert_batch(table->Get(), hashes.data(), hashes.size())) throw std::logic_error("the filter is full");
  }
  static void Remove(uint64_t key, Table *table) { ccf_remove(table->Get(), table->hasher(key)); }
  CONTAIN_ATTRIBUTES static bool Contain(uint64_t key, const Table *table) {
    return ccf_contains(table->Get(), table->hasher(key));
  }
};
