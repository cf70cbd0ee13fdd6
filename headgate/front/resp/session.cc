// How a call of OnBytes turns bytes into replies. Two kinds of commands may wait for the shared
// store. Commands that bring their own limits are collected in a batch and wait together: their
// bytes stay unconsumed, and the next call answers all of them at once (`awaited_`). Every other
// command that waits is parsed and run again from its first byte. Invariant: replies leave in the
// order of the commands, so the batch is flushed before any other command writes a reply.
#include "headgate/front/resp/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "headgate/base/check.h"
#include "headgate/front/resp/client_verbs.h"
#include "headgate/front/resp/throttle_reply.h"
#include "headgate/front/resp/verb_replies.h"

namespace headgate::front::resp {
namespace {

using access::Right;
using wire::RespParser;
using wire::RespWriter;

constexpr std::string_view kNoAuth = "NOAUTH Authentication required.";

// How the VerbQueue treats this verb; none if the verb uses no rules.
std::optional<RuleVerb> RuleVerbOf(Verb verb) {
  switch (verb) {
    case Verb::kHgCheck:
      return RuleVerb::kCheck;
    case Verb::kHgPeek:
      return RuleVerb::kPeek;
    case Verb::kHgRefund:
      return RuleVerb::kRefund;
    case Verb::kHgAcquire:
      return RuleVerb::kAcquire;
    case Verb::kHgRelease:
      return RuleVerb::kRelease;
    case Verb::kHgReset:
      return RuleVerb::kReset;
    default:
      return std::nullopt;
  }
}

}  // namespace

RespSession::RespSession(Context& context, const net::Peer& peer)
    : context_(context),
      peer_(peer),
      client_{.id = context.NextClientId()},
      registration_(context.clients, client_, peer.address),
      verbs_(context.rule_verbs, [this] { wake_(); }) {
  UpdateRights();
}

net::Session::Progress RespSession::OnBytes(std::span<const char> input, std::string& output,
                                            base::Instant now) {
  const ThrottleTurn turn{.output = output, .pending = pending_, .counts = counts_, .now = now};
  registration_.OnInput(now);
  Pass pass{.rest = {input.data(), input.size()},
            .output_pause = output.size() + kOutputPauseBytes};
  Progress progress;
  if (Resume(turn, pass, progress)) {
    Collect(turn, pass);
    Settle(turn, pass, progress);
    progress.consumed = input.size() - pass.rest.size();
    progress.close = closing_ || (draining_ && pass.rest.empty());
  }
  // The replies of a transaction are written by EXEC.
  if (!transaction_.executing()) verbs_.KeepPermits();
  wait_.Report(pass.waits, now, progress);
  progress.ends_with_peer = pass.waits && verbs_.acquires();
  return progress;
}

bool RespSession::Resume(const ThrottleTurn& turn, Pass& pass, Progress& progress) {
  // The batch of the last call: its commands are not parsed again, their bytes are skipped.
  if (awaited_.bytes > 0) {
    pass.waits = !context_.throttle.AnswerSettled(turn);
    if (pass.waits) return false;
    pass.rest.remove_prefix(awaited_.bytes);
    progress.answered = awaited_.commands;
    awaited_ = {};
  }
  pass.unanswered = pass.rest;
  return true;
}

void RespSession::Collect(const ThrottleTurn& turn, Pass& pass) {
  while (!closing_) {
    FollowUsers();
    const RespParser::Step step = parser_.Parse(pass.rest);
    if (step == RespParser::Step::kIncomplete) return;
    if (step == RespParser::Step::kError) return RefuseInput(turn, pass);
    if (parser_.size() > 0 && !TakeCommand(turn, pass)) return;
    pass.rest.remove_prefix(parser_.consumed_bytes());
    if (context_.throttle.full() && !Flush(turn, pass)) return;
    // Small requests with large answers must not fill the memory, so the loop writes first and
    // calls again.
    if (turn.output.size() >= pass.output_pause) {
      pass.more = !pass.rest.empty();
      return;
    }
  }
}

bool RespSession::TakeCommand(const ThrottleTurn& turn, Pass& pass) {
  const CommandSpec* const spec = FindCommand(parser_[0]);
  registration_.OnCommand(spec);
  const Collected collected =
      transaction_.state() == Transaction::State::kNone ? CollectOne(spec, turn) : Collected::kNo;
  pass.waits = collected == Collected::kWaits ||
               (collected == Collected::kNo && !context_.throttle.Flush(turn));
  if (pass.waits) return false;
  // The batch has just been flushed and holds at most this command, so everything before the
  // command is answered.
  if (context_.throttle.size() <= 1) {
    pass.unanswered = pass.rest;
    pass.commands_answered = pass.commands;
  }
  if (collected == Collected::kNo) {
    pass.waits = !Run(spec, turn, pass);
    // The commands behind a waiting one may be sent too, so that one trip to the store serves the
    // whole pipeline. A transaction executes one command after the other, so nothing is sent ahead
    // there.
    if (pass.waits && !verbs_.empty() && verbs_.asks_ahead() && !transaction_.executing())
      AskAhead(*RuleVerbOf(spec->verb), pass.rest.substr(parser_.consumed_bytes()), turn.now);
    if (pass.waits && spec->verb == Verb::kIncrEx && counts_.size() == 1 &&
        !transaction_.executing())
      AskIncrementsAhead(pass.rest.substr(parser_.consumed_bytes()), turn);
    if (pass.waits) return false;
  }
  ++pass.commands;
  return true;
}

RespSession::Collected RespSession::CollectOne(const CommandSpec* spec, const ThrottleTurn& turn) {
  const auto added = [](bool yes) { return yes ? Collected::kYes : Collected::kWaits; };
  // Run writes the error for an unknown command, and for a client without the right.
  if (spec == nullptr || !May(Right::kCheck)) return Collected::kNo;
  switch (spec->verb) {
    case Verb::kThrottle:
      return added(context_.throttle.Add(ThrottleForm::kCell, parser_, turn));
    case Verb::kGcra:
      if (!spec->AcceptsCount(parser_.size())) return Collected::kNo;
      return added(context_.throttle.Add(ThrottleForm::kGcra, parser_, turn));
    case Verb::kEval:
    case Verb::kEvalSha: {
      if (!spec->AcceptsCount(parser_.size())) return Collected::kNo;
      const auto words = context_.script_verbs.Expand(spec->verb == Verb::kEval, parser_);
      if (!words.ok()) return Collected::kNo;
      const bool cell = FindCommand((*words)[0])->verb == Verb::kThrottle;
      return added(
          context_.throttle.Add(cell ? ThrottleForm::kCell : ThrottleForm::kGcra, *words, turn));
    }
    default:
      return Collected::kNo;
  }
}

void RespSession::RefuseInput(const ThrottleTurn& turn, Pass& pass) {
  if (!Flush(turn, pass)) return;
  RespWriter(turn.output, client_.version).Error(fmt::format("ERR {}", parser_.error()));
  pass.protocol_error = true;
  closing_ = true;
}

bool RespSession::Flush(const ThrottleTurn& turn, Pass& pass) {
  pass.waits = !context_.throttle.Flush(turn);
  return !pass.waits;
}

void RespSession::Settle(const ThrottleTurn& turn, Pass& pass, Progress& progress) {
  if (!pass.waits) Flush(turn, pass);
  if (pass.waits) {
    // A rule verb that waits is not in the batch: the session runs it again later.
    awaited_ = {.bytes = static_cast<size_t>(pass.rest.data() - pass.unanswered.data()),
                .commands = pass.commands - pass.commands_answered};
    pass.rest = pass.unanswered;
    pass.commands = pass.commands_answered;
    parser_.Forget();
  }
  progress.answered += pass.commands;
  context_.counters.commands.Add(progress.answered);
  progress.protocol_error = pass.protocol_error || http_;
  progress.more = pass.more && !pass.waits;
  progress.mid_request = !pass.rest.empty() && !progress.more;
}

void RespSession::OnGivenUp(GivenUp why, std::string& output, base::Instant /*now*/) {
  // For the other reasons the connection just closes.
  if (why != GivenUp::kNoBuffers) return;
  RespWriter(output, client_.version)
      .Error(
          "ERR the server's buffers are full of unfinished requests; try again later, or send "
          "smaller ones");
}

size_t RespSession::BufferedBytes() const {
  return transaction_.held_bytes() + verbs_.kept_bytes();
}

bool RespSession::Run(const CommandSpec* spec, const ThrottleTurn& turn, const Pass& pass) {
  // Between MULTI and EXEC every command is queued, except the ones that end the transaction.
  const bool of_transaction =
      transaction_.state() != Transaction::State::kNone ||
      (spec != nullptr &&
       (spec->verb == Verb::kMulti || spec->verb == Verb::kExec || spec->verb == Verb::kDiscard));
  const Ran ran = of_transaction ? RunInTransaction(spec, turn, pass) : RunOther(spec, turn);
  if (ran == Ran::kFailed) context_.counters.errors.Add();
  return ran != Ran::kWaits;
}

bool RespSession::Accepts(const CommandSpec* spec, RespWriter& reply) const {
  if (spec == nullptr) return Unknown(reply);
  if (!spec->AcceptsCount(parser_.size()) || (spec->verb == Verb::kPing && parser_.size() > 2)) {
    reply.Error(fmt::format("ERR wrong number of arguments for '{}' command", spec->name));
    return false;
  }
  if (NeedsLogin(*spec)) {
    reply.Error(kNoAuth);
    return false;
  }
  return !spec->needs || !Refuses(*spec->needs, spec->name, reply);
}

// Longer than a screen because the switch has one case for each verb.
RespSession::Ran RespSession::RunOther(const CommandSpec* spec, const ThrottleTurn& turn) {
  const auto done = [](bool well) { return well ? Ran::kDone : Ran::kFailed; };
  const base::Instant now = turn.now;
  RespWriter reply(turn.output, client_.version);
  if (!Accepts(spec, reply)) return Ran::kFailed;
  const ConnectionVerbs& connection = context_.connection_verbs;
  const ServerVerbs& server = context_.server_verbs;
  switch (spec->verb) {
    case Verb::kThrottle:
    case Verb::kGcra:
    case Verb::kMulti:
    case Verb::kExec:
    case Verb::kDiscard:
      break;  // collected, or of a transaction
    case Verb::kHgCheckM:
      return Conclude(context_.throttle_group.Answer(parser_, turn), turn);
    case Verb::kIncrEx:
      return Conclude(context_.counter_verbs.Answer(parser_, client_.version, turn), turn);
    case Verb::kDel:
    case Verb::kExists:
    case Verb::kTtl:
    case Verb::kPttl:
      return RunKeyVerb(spec->verb, turn);
    case Verb::kEval:
      return RunScript(true, turn);
    case Verb::kEvalSha:
      return RunScript(false, turn);
    case Verb::kScript:
      return done(context_.script_verbs.Script(
          parser_, [&](std::string_view command) { return Refuses(Right::kAdmin, command, reply); },
          reply));
    case Verb::kHgCheck:
    case Verb::kHgPeek:
    case Verb::kHgRefund:
    case Verb::kHgAcquire:
    case Verb::kHgRelease:
    case Verb::kHgReset:
      return RunRuleVerb(*RuleVerbOf(spec->verb), turn);
    case Verb::kPing:
      parser_.size() > 1 ? reply.Bulk(parser_[1]) : reply.Simple("PONG");
      return done(true);
    case Verb::kEcho:
      reply.Bulk(parser_[1]);
      return done(true);
    case Verb::kHello:
    case Verb::kAuth:
      return RunLogin(spec->verb, turn);
    case Verb::kSelect:
      return done(connection.Select(parser_, reply));
    case Verb::kInfo:
      return done(server.Info(parser_, May(Right::kRead), reply));
    case Verb::kClient:
      return RunClient(turn);
    case Verb::kCommand:
      return done(server.Command(parser_, reply));
    case Verb::kConfig:
      return done(server.Config(parser_, reply));
    case Verb::kTime:
      return done(server.Time(reply, now));
    case Verb::kDbSize:
      return done(server.DbSize(reply));
    case Verb::kRole:
      return done(server.Role(reply));
    case Verb::kReset:
      ResetClient();
      reply.Simple("RESET");
      return done(true);
    case Verb::kQuit:
      reply.Simple("OK");
      closing_ = true;
      return done(true);
    case Verb::kHttp:
      reply.Error(
          "ERR this is the Redis protocol, and that was an HTTP request; the connection is closed");
      closing_ = http_ = true;
      return done(false);
  }
  return done(true);
}

RespSession::Ran RespSession::RunInTransaction(const CommandSpec* spec, const ThrottleTurn& turn,
                                               const Pass& pass) {
  RespWriter reply(turn.output, client_.version);
  if (transaction_.executing()) return Exec(turn, pass);
  const auto refuse = [&](std::string_view error) {
    if (!error.empty()) reply.Error(error);
    if (transaction_.queuing()) transaction_.Refuse();
    return Ran::kFailed;
  };
  if (spec != nullptr && spec->verb == Verb::kExec && transaction_.queuing() &&
      !spec->AcceptsCount(parser_.size())) {
    transaction_.End();
    reply.Error(
        "EXECABORT Transaction discarded because of: wrong number of arguments for 'exec' command");
    return Ran::kFailed;
  }
  // A login can end between MULTI and EXEC. The error then also ends the transaction, so that its
  // commands are not executed after a later login.
  if (spec != nullptr && spec->verb == Verb::kExec && NeedsLogin(*spec)) {
    transaction_.End();
    reply.Error(fmt::format("EXECABORT Transaction discarded because of: {}", kNoAuth));
    return Ran::kFailed;
  }
  if (!Accepts(spec, reply)) return refuse("");
  switch (spec->verb) {
    case Verb::kReset:
    case Verb::kQuit:
    case Verb::kHttp:
      return RunOther(spec, turn);
    case Verb::kMulti:
      // After the error the transaction stays open, as in Redis.
      if (transaction_.queuing()) {
        reply.Error("ERR MULTI calls can not be nested");
        return Ran::kFailed;
      }
      transaction_.Begin();
      reply.Simple("OK");
      return Ran::kDone;
    case Verb::kDiscard:
      if (!transaction_.queuing()) return refuse("ERR DISCARD without MULTI");
      transaction_.End();
      reply.Simple("OK");
      return Ran::kDone;
    case Verb::kExec:
      if (!transaction_.queuing()) return refuse("ERR EXEC without MULTI");
      if (transaction_.state() == Transaction::State::kRefused) {
        transaction_.End();
        return refuse("EXECABORT Transaction discarded because of previous errors.");
      }
      transaction_.BeginExecution();
      return Exec(turn, pass);
    default:
      break;
  }
  if (transaction_.state() == Transaction::State::kQueuing &&
      !transaction_.Add(pass.rest.substr(0, parser_.consumed_bytes()))) {
    return refuse(fmt::format("ERR more than {} commands or {} bytes in a transaction",
                              Transaction::kCommandsMax, Transaction::kBytesMax));
  }
  reply.Simple("QUEUED");
  return Ran::kDone;
}

RespSession::Ran RespSession::Exec(const ThrottleTurn& turn, const Pass& pass) {
  // The replies are collected first, because the array of EXEC may be written only when all are
  // there. If a command waits, the replies so far stay in the transaction.
  const ThrottleTurn inner{.output = transaction_.replies,
                           .pending = turn.pending,
                           .counts = turn.counts,
                           .now = turn.now};
  bool waits = false;
  while (!waits && !transaction_.rest().empty()) waits = !ExecuteNext(inner);
  if (waits) return Ran::kWaits;
  RespWriter(turn.output, client_.version).Array(transaction_.count());
  turn.output.append(transaction_.replies);
  transaction_.End();
  // The caller continues with the command behind EXEC.
  SetBounds();
  parser_.Parse(pass.rest);
  return Ran::kDone;
}

bool RespSession::ExecuteNext(const ThrottleTurn& turn) {
  const std::string_view rest = transaction_.rest();
  FollowUsers();
  parser_.Forget();
  // The command was accepted when it arrived, perhaps with a login that has been lost since.
  parser_.set_bounds(kBounds);
  HEADGATE_CHECK(parser_.Parse(rest) == RespParser::Step::kCommand);
  const size_t bytes = parser_.consumed_bytes();
  if (transaction_.replies_full()) {
    RespWriter(turn.output, client_.version)
        .Error(fmt::format("ERR not executed: the transaction has more than {} bytes of replies",
                           Transaction::kReplyBytesMax));
    context_.counters.errors.Add();
  } else if (transaction_.awaits_batch) {
    if (!context_.throttle.AnswerSettled(turn)) return false;
    transaction_.awaits_batch = false;
  } else {
    const CommandSpec* const spec = FindCommand(parser_[0]);
    // The batch is empty, so that adding one command does not wait.
    if (CollectOne(spec, turn) != Collected::kNo) {
      transaction_.awaits_batch = !context_.throttle.Flush(turn);
      if (transaction_.awaits_batch) return false;
    } else {
      const Ran ran = RunOther(spec, turn);
      if (ran == Ran::kFailed) context_.counters.errors.Add();
      if (ran == Ran::kWaits) return false;
    }
  }
  transaction_.Next(bytes);
  return true;
}

RespSession::Ran RespSession::RunScript(bool by_text, const ThrottleTurn& turn) {
  // A script without an error was collected with the batch, so this one has an error.
  const auto words = context_.script_verbs.Expand(by_text, parser_);
  const absl::string_view message = words.status().message();
  RespWriter(turn.output, client_.version).Error({message.data(), message.size()});
  return Ran::kFailed;
}

RespSession::Ran RespSession::RunKeyVerb(Verb verb, const ThrottleTurn& turn) {
  KeyVerbs& keys = context_.key_verbs;
  if (verb == Verb::kDel) return Conclude(keys.Del(parser_, turn), turn);
  const absl::Status status =
      verb == Verb::kExists
          ? keys.Exists(parser_, turn)
          : keys.Ttl(verb == Verb::kTtl ? base::Duration(std::chrono::seconds(1))
                                        : base::Duration(std::chrono::milliseconds(1)),
                     parser_, turn);
  return Conclude(status.ok() ? absl::StatusOr<bool>(true) : status, turn);
}

RespSession::Ran RespSession::Conclude(const absl::StatusOr<bool>& answered,
                                       const ThrottleTurn& turn) {
  if (answered.ok()) return *answered ? Ran::kDone : Ran::kWaits;
  const absl::string_view text = answered.status().message();
  const std::string_view message(text.data(), text.size());
  RespWriter(turn.output, client_.version)
      .Error(message == kWrongType ? std::string(message) : fmt::format("ERR {}", message));
  return Ran::kFailed;
}

RespSession::Ran RespSession::RunClient(const ThrottleTurn& turn) {
  RespWriter reply(turn.output, client_.version);
  if (RevealsClients(parser_[1]) && Refuses(Right::kRead, "client|list", reply))
    return Ran::kFailed;
  const bool done = AnswerClient(
      parser_, {.state = client_, .clients = context_.clients, .registration = registration_},
      reply, turn.now);
  registration_.Describe(client_);
  return done ? Ran::kDone : Ran::kFailed;
}

RespSession::Ran RespSession::RunRuleVerb(RuleVerb verb, const ThrottleTurn& turn) {
  const auto answered = verbs_.AnswerNext(verb, parser_, client_.version, turn.now, turn.output);
  if (answered.ok()) return *answered == RuleVerbs::Answered::kNow ? Ran::kDone : Ran::kWaits;
  const absl::string_view message = answered.status().message();
  RespWriter(turn.output, client_.version)
      .Error(fmt::format("ERR {}", std::string_view(message.data(), message.size())));
  return Ran::kFailed;
}

void RespSession::AskAhead(RuleVerb first, std::string_view input, base::Instant now) {
  if (!May(Right::kCheck))
    return;  // the waiting command may be a refund, which needs another right
  verbs_.BeginAhead();
  // The parser is used ahead of the waiting command. Settle makes it forget this position
  // afterwards.
  while (verbs_.has_room() && parser_.Parse(input) == RespParser::Step::kCommand) {
    input.remove_prefix(parser_.consumed_bytes());
    if (parser_.size() == 0) continue;
    const CommandSpec* const spec = FindCommand(parser_[0]);
    if (spec == nullptr || !spec->AcceptsCount(parser_.size())) return;
    const std::optional<RuleVerb> verb = RuleVerbOf(spec->verb);
    if (!verb || !VerbQueue::MayFollow(first, *verb)) return;
    verbs_.AskAhead(*verb, parser_, client_.version, now);
  }
}

void RespSession::AskIncrementsAhead(std::string_view input, const ThrottleTurn& turn) {
  while (parser_.Parse(input) == RespParser::Step::kCommand) {
    input.remove_prefix(parser_.consumed_bytes());
    if (parser_.size() == 0) continue;
    const CommandSpec* const spec = FindCommand(parser_[0]);
    if (spec == nullptr || spec->verb != Verb::kIncrEx || !spec->AcceptsCount(parser_.size()))
      return;
    if (!context_.counter_verbs.AskAhead(parser_, turn)) return;
  }
}

bool RespSession::Unknown(RespWriter& reply) const {
  std::string arguments;
  for (size_t i = 1; i < parser_.size() && arguments.size() < kEchoedMax; ++i) {
    const size_t room = kEchoedMax - arguments.size();
    arguments.append("'").append(parser_[i].substr(0, room)).append("' ");
  }
  reply.Error(fmt::format("ERR unknown command '{}', with args beginning with: {}",
                          parser_[0].substr(0, kEchoedMax), arguments));
  return false;
}

bool RespSession::NeedsLogin(const CommandSpec& spec) const {
  return !spec.before_login && rights_.empty() && !client_.identity.logged_in();
}

bool RespSession::Refuses(Right right, std::string_view command, RespWriter& reply) const {
  if (May(right)) return false;
  if (client_.identity.logged_in()) {
    reply.Error(fmt::format("NOPERM User {} has no permissions to run the '{}' command",
                            client_.identity.user, command));
  } else if (context_.access.has_logins()) {
    reply.Error(kNoAuth);
  } else {
    reply.Error(
        fmt::format("NOPERM '{}' is for clients on the server's own machine while the server has "
                    "no credential; "
                    "set one, and log in with AUTH",
                    command));
  }
  return true;
}

RespSession::Ran RespSession::RunLogin(Verb verb, const ThrottleTurn& turn) {
  using Answered = ConnectionVerbs::Answered;
  const LoginTurn login{
      .client = client_, .pending = login_, .peer = peer_, .wake = wake_, .now = turn.now};
  RespWriter reply(turn.output, client_.version);
  const ConnectionVerbs& verbs = context_.connection_verbs;
  const Answered answered = verb == Verb::kHello ? verbs.Hello(parser_, login, turn.output)
                                                 : verbs.Auth(parser_, login, reply);
  if (answered == Answered::kLater) return Ran::kWaits;
  UpdateRights();
  return answered == Answered::kWell ? Ran::kDone : Ran::kFailed;
}

void RespSession::ResetClient() {
  // The number of a client stays the same for the whole connection.
  const uint64_t id = client_.id;
  client_ = ClientState{.id = id};
  transaction_.End();
  UpdateRights();
}

void RespSession::FollowUsers() {
  // A command that was sent to the store must decide with the rights that it was sent with.
  if (rights_generation_ == context_.access.generation() || sent()) return;
  parser_.Forget();  // the bounds may change, so the next command is read from its beginning
  UpdateRights();
}

void RespSession::UpdateRights() {
  access::Access& access = context_.access;
  rights_generation_ = access.generation();
  rights_ = access.RightsOf(peer_, client_.identity);
  registration_.Describe(client_);
  SetBounds();
}

void RespSession::SetBounds() {
  const bool before_login = context_.access.has_logins() && !client_.identity.logged_in();
  parser_.set_bounds(before_login ? kBoundsBeforeLogin : kBounds);
}

}  // namespace headgate::front::resp
