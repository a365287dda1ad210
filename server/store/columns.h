// Columns of stored messages. A column that allows it has a single value where all items have the
// same: pools and sizes nearly always do, and shards and parts are nearly always zero. Private to
// the codecs.
#pragma once

#include <google/protobuf/repeated_field.h>

#include <cstdint>
#include <utility>

namespace berth {

// Writes value_of(item) of each; `column` is empty.
template <class T, class Items, class ValueOf>
void write_column(const Items& items, google::protobuf::RepeatedField<T>& column,
                  ValueOf value_of) {
  const T first = value_of(items.front());
  bool is_one = true;
  for (const auto& item : items) is_one &= value_of(item) == first;
  if (is_one) {
    column.Add(first);
    return;
  }
  column.Reserve(static_cast<int>(items.size()));
  for (const auto& item : items) column.AddAlreadyReserved(value_of(item));
}

template <class T>
bool is_column(const google::protobuf::RepeatedField<T>& column, int count) {
  return column.size() == count || column.size() == 1;
}

template <class T>
T value_at(const google::protobuf::RepeatedField<T>& column, int at) {
  return column.size() == 1 ? column.Get(0) : column.Get(at);
}

// Ids and offsets mostly follow each other, so their differences are short. They wrap around.
class Steps {
 public:
  int64_t to(uint64_t value) { return static_cast<int64_t>(value - std::exchange(last_, value)); }
  uint64_t by(int64_t step) { return last_ += static_cast<uint64_t>(step); }

 private:
  uint64_t last_ = 0;
};

}  // namespace berth
