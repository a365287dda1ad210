// Between records and the store's bytes: the records that the calls of the hot path leave, taken
// from decisions of the core. Beside it: memcpy of the same keys and values.
#include <cstring>
#include <map>
#include <memory>
#include <string>

#include "common/check.h"
#include "server/store/codec.h"
#include "server/store/run_codec.h"
#include "tests/bench/core/core_rig.h"
#include "tests/bench/micro/work.h"

namespace berth::bench {
namespace {

constexpr uint64_t kBatch = 128;

struct Encoded {
  Family family = Family::kMeta;
  std::string key;
  std::string value;
};

// What is written under one name, in both forms.
struct Samples {
  std::vector<Mutation> records;
  std::vector<Encoded> bytes;
};

// Records of one kind, as far as they are written; forgotten ones are another sample, because they
// are keys only.
void add_samples(std::map<std::string, Samples>& samples, const Decision& decision) {
  static const std::map<RecordKind, std::string> kNames{{RecordKind::kReplica, "replica"},
                                                        {RecordKind::kReservation, "reservation"},
                                                        {RecordKind::kLease, "lease"},
                                                        {RecordKind::kOperation, "operation"},
                                                        {RecordKind::kPin, "pin"}};
  Codec codec;
  for (const Mutation& mutation : decision.mutations) {
    const auto name = kNames.find(mutation.key.kind);
    const auto change = codec.encode(mutation);
    if (name == kNames.end() || !change) continue;
    Samples& sample = samples[name->second + (change->is_forgotten ? "_forgotten" : "")];
    sample.records.push_back(mutation);
    sample.bytes.push_back({change->family, std::string(change->key), std::string(change->value)});
  }
}

std::map<std::string, Samples> make_samples() {
  std::map<std::string, Samples> samples;
  CoreRig rig;
  CoreMember member(
      [&](const Command& command) {
        add_samples(samples, rig.decide(command));
        return rig.run(command);
      },
      {});
  const std::vector<ReplicaId> replicas = member.store(0, kBatch);
  member.run<PerItem>(member.release(member.run<Acquired>(member.acquire(0, kBatch))));
  member.run<PerItem>(PinChunks{"bench", member.chain(0, kBatch), PinKind::kHard, {}});
  while (!samples.contains("operation_forgotten")) {
    member.run<Acquired>(member.acquire(0, 1));
    member.forget_answers();
  }
  return samples;
}

const Samples& samples_of(const std::string& name) {
  static const std::map<std::string, Samples> all = make_samples();
  return all.at(name);
}

// The record at place `i` of a round, when there are fewer than a round has.
template <class Element>
const Element& at(const std::vector<Element>& all, uint64_t i) {
  return all[i % all.size()];
}

Work encode_work(const std::string& name) {
  const Samples& samples = samples_of(name);
  const auto codec = std::make_shared<Codec>();
  Work work;
  work.run = [=, &samples] {
    for (uint64_t i = 0; i < kRoundItems; ++i) keep(codec->encode(at(samples.records, i)));
    return kRoundItems;
  };
  return work;
}

Work decode_work(const std::string& name) {
  const Samples& samples = samples_of(name);
  const auto codec = std::make_shared<Codec>();
  Work work;
  work.run = [=, &samples] {
    for (uint64_t i = 0; i < kRoundItems; ++i) {
      const Encoded& bytes = at(samples.bytes, i);
      const auto mutation = codec->decode(bytes.family, bytes.key, bytes.value);
      BERTH_CHECK(mutation.has_value(), "what was encoded can be decoded");
      keep(*mutation);
    }
    return kRoundItems;
  };
  return work;
}

Work copy_work(const std::string& name) {
  const Samples& samples = samples_of(name);
  const auto copy = std::make_shared<std::vector<char>>();
  for (const Encoded& bytes : samples.bytes)
    copy->resize(std::max(copy->size(), bytes.key.size() + bytes.value.size()));
  Work work;
  work.run = [=, &samples] {
    for (uint64_t i = 0; i < kRoundItems; ++i) {
      const Encoded& bytes = at(samples.bytes, i);
      std::memcpy(copy->data(), bytes.key.data(), bytes.key.size());
      std::memcpy(copy->data() + bytes.key.size(), bytes.value.data(), bytes.value.size());
      keep(*copy->data());
    }
    return kRoundItems;
  };
  return work;
}

// ---- Runs: what a commit of a batch leaves

struct RunSample {
  std::vector<Mutation> records;
  std::string value;
};

const RunSample& run_sample() {
  static const RunSample sample = [] {
    RunSample made;
    CoreRig rig;
    CoreMember member(
        [&](const Command& command) {
          const Decision decision = rig.decide(command);
          if (run_length(decision.mutations) == kBatch)
            made.records.assign(decision.mutations.begin(), decision.mutations.begin() + kBatch);
          return rig.run(command);
        },
        {});
    member.store(0, kBatch);
    BERTH_CHECK(made.records.size() == kBatch, "a commit leaves one run");
    made.value = RunCodec().encode(made.records);
    return made;
  }();
  return sample;
}

// Runs that hold as many replicas as a round has items.
Work runs_work(std::function<void(const RunSample&)> one) {
  const RunSample& sample = run_sample();
  Work work;
  work.run = [&sample, one = std::move(one)] {
    for (uint64_t i = 0; i < kRoundItems; i += kBatch) one(sample);
    return kRoundItems;
  };
  return work;
}

Work encode_runs() {
  return runs_work([codec = std::make_shared<RunCodec>()](const RunSample& sample) {
    keep(codec->encode(sample.records));
  });
}

Work decode_runs() {
  const auto codec = std::make_shared<RunCodec>();
  const auto replicas = std::make_shared<std::vector<Replica>>();
  return runs_work([=](const RunSample& sample) {
    const uint64_t first = sample.records.front().key.first;
    BERTH_CHECK(codec->decode(first, sample.value, *replicas), "what was encoded can be decoded");
    keep(*replicas);
  });
}

Work copy_runs() {
  const auto copy = std::make_shared<std::string>();
  return runs_work([=](const RunSample& sample) {
    copy->assign(sample.value);
    keep(*copy);
  });
}

}  // namespace

void add_codec_cases(Cases& cases) {
  cases.push_back({"codec/encode/run", encode_runs, "memcpy", copy_runs, true});
  cases.push_back({"codec/decode/run", decode_runs, "memcpy", copy_runs, true});
  for (const std::string name : {"replica", "reservation", "lease", "operation", "pin",
                                 "operation_forgotten", "reservation_forgotten"})
    cases.push_back({"codec/encode/" + name, [=] { return encode_work(name); }, "memcpy",
                     [=] { return copy_work(name); }, true});
  for (const std::string name : {"replica", "reservation", "lease", "operation", "pin"})
    cases.push_back({"codec/decode/" + name, [=] { return decode_work(name); }, "memcpy",
                     [=] { return copy_work(name); }, true});
}

}  // namespace berth::bench
