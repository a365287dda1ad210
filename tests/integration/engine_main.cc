// berth-test-engine: an engine that a test drives line by line, so that it can be stopped, killed
// and forked at any step. Reads one command a line from stdin and answers each with one line:
// "ok name=value ..." or "error REASON MESSAGE". Slots are the test's names for open stores and
// handles.
//
//   join SOCKET ENGINE_ID [WITHIN]              namespace NAME
//   begin SLOT SEED FIRST COUNT SIZE [WITHIN]   write SLOT FROM TO (percent of each granted item)
//   finish SLOT      abort SLOT                 store SEED FIRST COUNT SIZE (begin, write, finish)
//   probe SEED FIRST COUNT                      load SLOT SEED FIRST COUNT [TTL]
//   verify SLOT      valid SLOT                 release SLOT      renew SLOT TTL
//   fork (a child that holds what it inherited) hammer SEED FIRST COUNT MILLIS (loads and verifies)
//   churn SEED CHAINS CHUNKS SIZE MILLIS (random stores and loads of shared chains)
//   stats            leave
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <thread>

#include "common/clock.h"
#include "tests/integration/chunk_content.h"
#include "tests/integration/engine_churn.h"
#include "worker/client/client.h"

namespace berth::testing {
namespace {

// Far above what a busy machine takes: these tests are about outcomes, not about deadlines.
constexpr Duration kPatient = seconds(10);

std::string failure(const Error& error) {
  return "error " + std::string(name_of(error.reason)) + " " + error.message;
}

template <class Value>
std::string pair(const char* name, const Value& value) {
  std::ostringstream text;
  text << " " << name << "=" << value;
  return text.str();
}

// One count for each code that occurs: " committed=3 closed=1".
template <class Codes, class CodeOf>
std::string counts(const Codes& codes, CodeOf code_of) {
  std::map<std::string, int> counted;
  for (const auto& code : codes) ++counted[std::string(client::name_of(code_of(code)))];
  std::string text;
  for (const auto& [name, count] : counted) text += pair(name.c_str(), count);
  return text;
}

class Engine {
 public:
  std::string run(const std::string& line) {
    std::istringstream words(line);
    std::string command;
    words >> command;
    const auto found = commands_.find(command);
    return found == commands_.end() ? "error invalid_argument no command " + line
                                    : found->second(words);
  }

 private:
  using Words = std::istringstream;

  template <class Value>
  static Value next(Words& words, Value fallback = {}) {
    Value value;
    return words >> value ? value : fallback;
  }

  std::string join(Words& words) {
    ClientOptions options;
    options.socket = next<std::string>(words);
    options.engine_id = next<std::string>(words);
    const Duration within{next<int64_t>(words, kPatient.millis)};
    options.probe_deadline = options.load_deadline = options.store_deadline = within;
    options.finish_deadline = options.control_deadline = options.join_deadline = within;
    auto joined = Client::join(options);
    if (!joined) return failure(joined.error());
    client_ = std::move(*joined);
    return "ok";
  }

  std::string open_namespace(Words& words) {
    client::NamespaceSpec spec;
    spec.name = next<std::string>(words);
    spec.model = "test-model@1";
    spec.dtype = "bf16";
    spec.chunk_tokens = 16;
    spec.digest_bytes = kDigestBytes;
    const auto opened = client_->open_namespace(spec);
    if (!opened) return failure(opened.error());
    namespace_ = *opened;
    return "ok" + pair("namespace", opened->id.value());
  }

  // The client answers from its own books while it is not joined; a test that means to ask the
  // server gets an error then.
  Result<OpenStore> begin_store(Words& words) {
    OpenStore open;
    open.seed = next<uint64_t>(words);
    open.first = next<uint64_t>(words);
    const auto count = next<uint64_t>(words);
    const auto size = next<uint64_t>(words);
    const auto digests = chain_digests(open.seed, open.first, count);
    auto store = client_->begin_store({.name_space = namespace_,
                                       .digests = digests,
                                       .sizes = std::span(&size, 1),
                                       .write_within = {next<int64_t>(words)}});
    if (!store) return tl::unexpected(store.error());
    open.store = std::move(*store);
    return open;
  }

  static std::string describe(const client::PendingStore& store) {
    return "ok" + counts(store.items(), [](const auto& item) { return item.code; });
  }

  std::string finish_store(client::PendingStore& store) {
    const auto codes = client_->finish_store(store);
    if (!codes) return failure(codes.error());
    return "ok" + counts(*codes, [](client::CommitCode code) { return code; });
  }

  std::string begin(Words& words) {
    const auto slot = next<std::string>(words);
    auto open = begin_store(words);
    if (!open) return failure(open.error());
    const std::string text = describe(open->store);
    stores_[slot] = std::move(*open);
    return text;
  }

  std::string write(Words& words) {
    OpenStore& open = stores_.at(next<std::string>(words));
    const auto from = next<size_t>(words);
    write_granted(open, from, next<size_t>(words));
    return "ok";
  }

  std::string finish(Words& words) {
    return finish_store(stores_.at(next<std::string>(words)).store);
  }

  std::string abort(Words& words) {
    const auto slot = next<std::string>(words);
    client_->abort_store(stores_.at(slot).store);
    stores_.erase(slot);
    return "ok";
  }

  std::string store(Words& words) {
    auto open = begin_store(words);
    if (!open) return failure(open.error());
    if (open->store.granted_count() == 0) return describe(open->store);
    write_granted(*open, 0, 100);
    const std::string finished = finish_store(open->store);
    if (!finished.starts_with("ok")) return finished;
    return describe(open->store) + finished.substr(2);
  }

  std::string probe(Words& words) {
    const auto seed = next<uint64_t>(words);
    const auto first = next<uint64_t>(words);
    const auto digests = chain_digests(seed, first, next<uint64_t>(words));
    const auto probed = client_->probe({.name_space = namespace_, .digests = digests});
    if (!probed) return failure(probed.error());
    return "ok" + pair("usable", probed->usable_chunks) +
           pair("miss", client::name_of(probed->miss_reason));
  }

  std::string load(Words& words) {
    const auto slot = next<std::string>(words);
    OpenLoad open;
    open.seed = next<uint64_t>(words);
    open.first = next<uint64_t>(words);
    const auto digests = chain_digests(open.seed, open.first, next<uint64_t>(words));
    auto handle =
        client_->load({.name_space = namespace_, .digests = digests}, {next<int64_t>(words)});
    if (!handle) return failure(handle.error());
    open.handle = std::move(*handle);
    const std::string text = "ok" + pair("chunks", open.handle.chunks()) +
                             pair("miss", client::name_of(open.handle.miss_reason()));
    loads_[slot] = std::move(open);
    return text;
  }

  // As an engine must: read everything, then ask whether the protection held.
  std::string verify(Words& words) {
    const OpenLoad& open = loads_.at(next<std::string>(words));
    const uint64_t wrong = count_wrong_bytes(open);
    return "ok" + pair("wrong", wrong) + pair("valid", open.handle.valid());
  }

  std::string valid(Words& words) {
    const auto slot = next<std::string>(words);
    if (const auto store = stores_.find(slot); store != stores_.end())
      return "ok" + pair("valid", store->second.store.valid());
    return "ok" + pair("valid", loads_.at(slot).handle.valid());
  }

  std::string release(Words& words) {
    const auto slot = next<std::string>(words);
    client_->release(loads_.at(slot).handle);
    loads_.erase(slot);
    return "ok";
  }

  std::string renew(Words& words) {
    const auto* handle = &loads_.at(next<std::string>(words)).handle;
    const auto renewed = client_->renew(std::span(&handle, 1), {next<int64_t>(words)});
    if (!renewed) return failure(renewed.error());
    return "ok" + pair("renewed", renewed->at(0));
  }

  // The child holds what it inherited until it is killed, or until the test program is gone (the
  // other end of stdin closes). System calls only.
  static std::string fork_holder(Words&) {
    const pid_t child = fork();
    if (child < 0) return "error internal fork failed";
    if (child > 0) return "ok" + pair("pid", child);
    pollfd test_program{STDIN_FILENO, 0, 0};
    while (poll(&test_program, 1, -1) <= 0) {
    }
    _exit(0);
  }

  // Loads the chain again and again and counts what a reader may never see: wrong bytes under a
  // handle that says that it was valid to the end.
  std::string hammer(Words& words) {
    const auto seed = next<uint64_t>(words);
    const auto first = next<uint64_t>(words);
    const auto digests = chain_digests(seed, first, next<uint64_t>(words));
    const SteadyClock clock;
    const int64_t until = clock.monotonic_millis() + next<int64_t>(words);
    uint64_t loads = 0;
    uint64_t chunks = 0;
    uint64_t wrong = 0;
    for (; clock.monotonic_millis() < until; ++loads) {
      auto handle = client_->load({.name_space = namespace_, .digests = digests});
      if (!handle) return failure(handle.error());
      OpenLoad open{seed, first, std::move(*handle)};
      const uint64_t bad = count_wrong_bytes(open);
      if (!open.handle.valid()) continue;
      chunks += open.handle.chunks();
      wrong += bad;
      client_->release(open.handle);
    }
    return "ok" + pair("loads", loads) + pair("chunks", chunks) + pair("wrong", wrong);
  }

  std::string churn(Words& words) {
    ChurnOptions options;
    options.seed = next<uint64_t>(words);
    options.chains = next<uint64_t>(words);
    options.chunks_max = next<uint64_t>(words);
    options.size_bytes = next<uint64_t>(words);
    options.length = {next<int64_t>(words)};
    return Churn(*client_, namespace_, options).run();
  }

  std::string stats(Words&) {
    const client::ClientStats now = client_->stats();
    return "ok" + pair("joined", now.joined) + pair("server_reachable", now.server_reachable) +
           pair("joins", now.joins) + pair("cancels", now.cancels) + pair("revokes", now.revokes) +
           pair("spans_refused", now.spans_refused) + pair("unsettled", now.operations_unsettled);
  }

  std::string leave(Words&) {
    const auto left = client_->leave();
    return left ? "ok" : failure(left.error());
  }

  template <std::string (Engine::*command)(Words&)>
  std::function<std::string(Words&)> bound() {
    return [this](Words& words) { return (this->*command)(words); };
  }

  std::unique_ptr<Client> client_;
  client::Namespace namespace_;
  std::map<std::string, OpenStore> stores_;  // these two go before the client
  std::map<std::string, OpenLoad> loads_;
  const std::map<std::string, std::function<std::string(Words&)>> commands_{
      {"join", bound<&Engine::join>()},     {"namespace", bound<&Engine::open_namespace>()},
      {"begin", bound<&Engine::begin>()},   {"write", bound<&Engine::write>()},
      {"finish", bound<&Engine::finish>()}, {"abort", bound<&Engine::abort>()},
      {"store", bound<&Engine::store>()},   {"probe", bound<&Engine::probe>()},
      {"load", bound<&Engine::load>()},     {"verify", bound<&Engine::verify>()},
      {"valid", bound<&Engine::valid>()},   {"release", bound<&Engine::release>()},
      {"renew", bound<&Engine::renew>()},   {"fork", fork_holder},
      {"hammer", bound<&Engine::hammer>()}, {"stats", bound<&Engine::stats>()},
      {"leave", bound<&Engine::leave>()},   {"churn", bound<&Engine::churn>()},
  };
};

}  // namespace
}  // namespace berth::testing

int main() {
  berth::testing::Engine engine;
  for (std::string line; std::getline(std::cin, line);) std::cout << engine.run(line) << std::endl;
}
