#include <algorithm>
#include <ostream>

#include "common/ids.h"
#include "server/ctl/fields.h"
#include "server/ctl/render.h"
#include "server/ctl/views.h"

namespace berth::ctl {
namespace {

constexpr Duration kRetryFirst = milliseconds(500);
constexpr Duration kRetryMax = seconds(5);

struct EventRow {
  uint32_t epoch = 0;
  v1::Event event;
};

const std::vector<Field<EventRow>>& event_fields() {
  constexpr size_t kIdWidth = 8;
  static const std::vector<Field<EventRow>> fields = {
      {{"epoch", "EPOCH", Kind::kCount},
       [](const EventRow& r) -> Value { return uint64_t{r.epoch}; }},
      {{"sequence", "SEQUENCE", Kind::kCount},
       [](const EventRow& r) -> Value { return r.event.sequence(); }},
      {{"unix_ms", "TIME", Kind::kUnixMillis, Shown::kEverywhere, false, 24},
       [](const EventRow& r) { return none_if_zero(r.event.unix_ms()); }},
      {{"kind", "KIND", Kind::kWord, Shown::kEverywhere, false, 20},
       [](const EventRow& r) -> Value { return r.event.kind(); }},
      {{"session", "SESSION", Kind::kId, Shown::kEverywhere, false, kIdWidth},
       [](const EventRow& r) -> Value { return r.event.session(); }},
      {{"pool", "POOL", Kind::kId, Shown::kEverywhere, false, kIdWidth},
       [](const EventRow& r) -> Value { return r.event.pool(); }},
      {{"replica", "REPLICA", Kind::kId, Shown::kEverywhere, false, kIdWidth},
       [](const EventRow& r) -> Value { return r.event.replica(); }},
      {{"count", "COUNT", Kind::kCount},
       [](const EventRow& r) { return none_if_zero(r.event.count()); }},
      {{"lease", "LEASE", Kind::kId, Shown::kEverywhere, false, kIdWidth},
       [](const EventRow& r) -> Value { return r.event.lease(); }},
      {{"namespace_id", "NAMESPACE", Kind::kId},
       [](const EventRow& r) -> Value { return r.event.namespace_id(); }},
      {{"reason", "REASON"}, [](const EventRow& r) -> Value { return r.event.reason(); }},
  };
  return fields;
}

// Writes batches of events in the chosen form, each as soon as it is there.
class EventWriter {
 public:
  EventWriter(Format format, Console& console) : format_(format), console_(console) {
    // A CSV is complete without a single event.
    if (format == Format::kCsv) console_.out << render_csv(view_of(section({}))) << std::flush;
  }

  void write(const std::vector<EventRow>& rows) {
    if (rows.empty()) return;
    console_.out << text_of(section(rows)) << std::flush;
  }

 private:
  static Section section(const std::vector<EventRow>& rows) {
    return section_of(SectionText{"events"}, event_fields(), rows);
  }

  std::string text_of(const Section& events) {
    switch (format_) {
      case Format::kJson:
        return render_json_lines(events);
      case Format::kCsv:
        return render_csv(view_of(events), CsvHeader::kOmitted);
      case Format::kTable:
        return table_.append(events, {.width = console_.size().columns, .colour = console_.colour});
    }
    return "";
  }

  Format format_;
  Console& console_;
  StreamTable table_;
};

// Where the reader is in the stream of events: sequence numbers belong to an epoch.
//
//   asked (epoch 3, from 41) ─▶ answer (epoch 3: 41 42)        position 3, 43
//                            ─▶ answer (epoch 3, gap: 60 61)   gap row, position 3, 62
//   server restarts          ─▶ answer (epoch 4, gap: 1 2)     gap row, position 4, 3
struct Position {
  uint32_t epoch = 0;
  uint64_t next = 1;
};

EventRow gap_row(const Position& asked, const v1::WatchEventsResponse& answer) {
  EventRow row{.epoch = answer.epoch(), .event = {}};
  row.event.set_sequence(asked.next);
  row.event.set_kind("gap");
  if (answer.epoch() != asked.epoch)
    row.event.set_reason("the server restarted: epoch " + std::to_string(asked.epoch) + " became " +
                         std::to_string(answer.epoch()));
  else
    row.event.set_reason("events from " + std::to_string(asked.next) + " on are no longer kept");
  return row;
}

enum class GapShown : uint8_t { kYes, kNo };

// The rows to show of an answer; moves the position behind them.
std::vector<EventRow> take_rows(const v1::WatchEventsResponse& answer, Position& position,
                                GapShown gap_shown) {
  const bool gap = answer.gap() || answer.epoch() != position.epoch;
  std::vector<EventRow> rows;
  if (gap && gap_shown == GapShown::kYes) rows.push_back(gap_row(position, answer));
  if (gap) position = {.epoch = answer.epoch(), .next = 1};
  for (const v1::Event& event : answer.events()) {
    if (event.sequence() < position.next) continue;  // shown before the connection broke
    rows.push_back({.epoch = answer.epoch(), .event = event});
    position.next = event.sequence() + 1;
  }
  return rows;
}

struct Start {
  Position position;
  bool follow = false;
  // Whoever asks for all that is kept knows that it does not begin with the first event.
  GapShown first_gap = GapShown::kYes;
};

Answer<Start> start_of(AdminClient& client, const Arguments& arguments) {
  const auto from = arguments.count("--from", 0);
  if (!from) return fail(from.error());
  const auto epoch = arguments.count("--epoch", 0);
  if (!epoch) return fail(epoch.error());
  if (arguments.has("--epoch") && !arguments.has("--from"))
    return fail_usage("--epoch says which epoch --from counts in; give both");
  if (*epoch > kEpochMax)
    return fail_usage("--epoch = " + std::to_string(*epoch) + ": accepted: up to " +
                      std::to_string(kEpochMax));
  auto status = client.call(v1::GetStatusRequest{});
  if (!status) return fail(std::move(status.error()));
  Start start;
  start.follow = arguments.has("--follow");
  start.position.epoch = *epoch == 0 ? status->store().epoch() : static_cast<uint32_t>(*epoch);
  if (arguments.has("--from")) {
    start.position.next = std::max<uint64_t>(*from, 1);
  } else {
    // Named by number and not as "from now on", so that a broken connection loses nothing.
    start.position.next = start.follow ? status->event_sequence() + 1 : 1;
    start.first_gap = start.follow ? GapShown::kYes : GapShown::kNo;
  }
  return start;
}

v1::WatchEventsRequest request_at(const Position& position, bool follow) {
  v1::WatchEventsRequest request;
  request.set_from_sequence(position.next);
  request.set_epoch(position.epoch);
  request.set_stop_at_end(!follow);
  return request;
}

bool may_come_back(const Failure& failure) {
  return failure.exit_code == ExitCode::kUnreachable || failure.exit_code == ExitCode::kNotReady;
}

class EventReader {
 public:
  EventReader(AdminClient& client, const Start& start, Format format, Console& console)
      : client_(client),
        start_(start),
        position_(start.position),
        console_(console),
        writer_(format, console) {}

  Answer<ExitCode> run() {
    while (true) {
      auto ended = read_stream();
      if (!start_.follow) {
        if (!ended) return fail(std::move(ended.error()));
        return ExitCode::kOk;
      }
      if (!ended && !may_come_back(ended.error())) return fail(std::move(ended.error()));
      if (!console_.out.good()) return ExitCode::kOk;  // the reader of our pipe went away
      say_once(ended ? "the server ended the stream" : ended.error().message);
      if (!console_.wait(retry_in_)) return ExitCode::kOk;
      retry_in_ = std::min(retry_in_ * 2, kRetryMax);
    }
  }

 private:
  // Until the server ends the stream or the connection breaks.
  Answer<ExitCode> read_stream() {
    const auto stream = client_.watch(request_at(position_, start_.follow));
    GapShown gap_shown = first_answer_ ? start_.first_gap : GapShown::kYes;
    while (true) {
      auto answer = stream->next();
      if (!answer) return fail(std::move(answer.error()));
      if (!*answer) return ExitCode::kOk;
      writer_.write(take_rows(**answer, position_, gap_shown));
      gap_shown = GapShown::kYes;
      first_answer_ = false;
      outage_said_ = false;
      retry_in_ = kRetryFirst;
      if (!console_.out.good()) return ExitCode::kOk;
    }
  }

  void say_once(const std::string& what) {
    if (outage_said_) return;
    outage_said_ = true;
    console_.err << "berthctl events: " << what << "; trying again, from epoch " << position_.epoch
                 << " sequence " << position_.next << std::endl;
  }

  AdminClient& client_;
  Start start_;
  Position position_;
  Console& console_;
  EventWriter writer_;
  Duration retry_in_ = kRetryFirst;
  bool first_answer_ = true;
  bool outage_said_ = false;
};

Answer<ExitCode> stream_events(AdminClient& client, const Arguments& arguments, Format format,
                               Console& console) {
  const auto start = start_of(client, arguments);
  if (!start) return fail(start.error());
  return EventReader(client, *start, format, console).run();
}

}  // namespace

Command events_command() {
  return {
      .name = "events",
      .summary = "What happened, one line each; -f follows",
      .details =
          "Without options: every event that the server still keeps. With -f: from now on. A "
          "reader that\n"
          "fell behind, or whose server restarted, gets a row of kind \"gap\". A broken connection "
          "is made\n"
          "again and resumed by epoch and sequence. --json prints one object per line.",
      .example =
          "berthctl events -f\nberthctl events --from 1200 --json\n"
          "berthctl events -f --from 1200 --epoch 3",
      .positionals = {},
      .options = {{"-f,--follow", "", "Wait for further events"},
                  {"--from", "SEQ", "First sequence number wanted"},
                  {"--epoch", "EPOCH", "The epoch that --from counts in (default: the server's)"}},
      .kind = CommandKind::kStream,
      .stream = stream_events};
}

}  // namespace berth::ctl
