// How a call of OnBytes turns bytes into replies. Invariant: replies leave in the order of the
// commands. So the batch is decided before any other command writes a reply, and a reply behind one
// that waits is kept in the queue.
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

// None if the verb uses no rules.
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

CommandKind KindOf(const CommandSpec* spec) {
  if (spec == nullptr) return CommandKind::kAlone;
  if (spec->verb == Verb::kIncrEx) return CommandKind::kCount;
  const std::optional<RuleVerb> verb = RuleVerbOf(spec->verb);
  return verb ? KindOf(*verb) : CommandKind::kAlone;
}

}  // namespace

RespSession::RespSession(Context& context, const net::Peer& peer)
    : context_(context),
      peer_(peer),
      client_{.id = context.NextClientId()},
      registration_(context.clients, client_, peer.address) {
  UpdateRights();
}

net::Session::Progress RespSession::OnBytes(std::span<const char> input, std::string& output,
                                            base::Instant now) {
  registration_.OnInput(now);
  Pass pass{.output = output,
            .rest = {input.data(), input.size()},
            .output_pause = output.size() + kOutputPauseBytes,
            .now = now};
  Progress progress;
  const uint64_t added_before = queue_.added_commands();
  WriteLate(pass, progress);
  Collect(pass);
  context_.throttle.Flush(TurnAtOnce(pass));
  const uint64_t added = queue_.added_commands() - added_before - pass.executed;
  progress.answered += pass.commands - added;
  context_.counters.commands.Add(progress.answered);
  progress.consumed = input.size() - pass.rest.size();
  const bool waits = !queue_.empty();
  progress.close = closing_ || (draining_ && pass.rest.empty() && !waits);
  progress.protocol_error = pass.protocol_error || http_;
  progress.more = pass.more && !waits;
  progress.mid_request = !pass.rest.empty() && !progress.more && !waits;
  // The replies of a transaction are written by EXEC.
  if (!transaction_.executing()) queue_.KeepPermits();
  wait_.Report(waits, now, progress);
  progress.ends_with_peer = waits && queue_.acquires();
  return progress;
}

void RespSession::WriteLate(Pass& pass, Progress& progress) {
  if (queue_.empty()) return;
  const bool executes = transaction_.executing();
  const ReplyQueue::Written written =
      queue_.Write(executes ? transaction_.replies : pass.output, pass.now);
  context_.counters.errors.Add(written.errors);
  if (!executes) progress.answered += written.commands;
}

void RespSession::Collect(Pass& pass) {
  if (transaction_.executing()) Execute(pass);
  while (!closing_ && !transaction_.executing()) {
    FollowUsers();
    const RespParser::Step step = parser_.Parse(pass.rest);
    if (step == RespParser::Step::kIncomplete) return;
    if (step == RespParser::Step::kError) return RefuseInput(pass);
    const size_t bytes = parser_.consumed_bytes();
    if (parser_.size() > 0 && !TakeCommand(pass)) return parser_.Forget();
    pass.rest.remove_prefix(bytes);
    if (transaction_.executing()) {
      Execute(pass);
      continue;
    }
    if (context_.throttle.full() && !context_.throttle.Flush(TurnAtOnce(pass))) return;
    // Small requests with large answers must not fill the memory, so the loop writes first and
    // calls again.
    if (pass.output.size() >= pass.output_pause) {
      pass.more = !pass.rest.empty();
      return;
    }
  }
}

bool RespSession::TakeCommand(Pass& pass) {
  const CommandSpec* const spec = FindCommand(parser_[0]);
  registration_.OnCommand(spec);
  if (transaction_.state() == Transaction::State::kNone && queue_.empty()) {
    const Collected collected = CollectOne(spec, TurnAtOnce(pass));
    if (collected == Collected::kYes) ++pass.commands;
    if (collected != Collected::kNo) return collected == Collected::kYes;
  }
  if (!context_.throttle.Flush(TurnAtOnce(pass)) || !queue_.Admits(KindOf(spec))) return false;
  const Answered answered =
      Run(spec, pass.rest.substr(0, parser_.consumed_bytes()), NextTurn(pass));
  if (answered == Answered::kWithError) context_.counters.errors.Add();
  if (!transaction_.executing()) ++pass.commands;
  return true;
}

RespSession::Collected RespSession::CollectOne(const CommandSpec* spec, const Turn& turn) {
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

void RespSession::RefuseInput(Pass& pass) {
  if (!context_.throttle.Flush(TurnAtOnce(pass)) || !queue_.empty()) return parser_.Forget();
  RespWriter(pass.output, client_.version).Error(fmt::format("ERR {}", parser_.error()));
  pass.protocol_error = true;
  closing_ = true;
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
  return transaction_.held_bytes() + queue_.kept_bytes();
}

Answered RespSession::Run(const CommandSpec* spec, std::string_view bytes, const Turn& turn) {
  // Between MULTI and EXEC every command is queued, except the ones that end the transaction.
  const bool of_transaction =
      transaction_.state() != Transaction::State::kNone ||
      (spec != nullptr &&
       (spec->verb == Verb::kMulti || spec->verb == Verb::kExec || spec->verb == Verb::kDiscard));
  return of_transaction ? RunInTransaction(spec, bytes, turn) : RunOther(spec, turn);
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
Answered RespSession::RunOther(const CommandSpec* spec, const Turn& turn) {
  const auto done = [](bool well) { return well ? Answered::kWell : Answered::kWithError; };
  const base::Instant now = turn.now;
  RespWriter reply(turn.output, client_.version);
  if (!Accepts(spec, reply)) return Answered::kWithError;
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
      return context_.throttle_group.Answer(parser_, turn);
    case Verb::kIncrEx:
      return context_.counter_verbs.Answer(parser_, client_.version, turn);
    case Verb::kDel:
      return context_.key_verbs.Del(parser_, turn);
    case Verb::kExists:
      return context_.key_verbs.Exists(parser_, turn);
    case Verb::kTtl:
      return context_.key_verbs.Ttl(std::chrono::seconds(1), parser_, turn);
    case Verb::kPttl:
      return context_.key_verbs.Ttl(std::chrono::milliseconds(1), parser_, turn);
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
      return context_.rule_verbs.Answer(*RuleVerbOf(spec->verb), parser_, client_.version, turn);
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

Answered RespSession::RunInTransaction(const CommandSpec* spec, std::string_view bytes,
                                       const Turn& turn) {
  RespWriter reply(turn.output, client_.version);
  const auto refuse = [&](std::string_view error) {
    if (!error.empty()) reply.Error(error);
    if (transaction_.queuing()) transaction_.Refuse();
    return Answered::kWithError;
  };
  if (spec != nullptr && spec->verb == Verb::kExec && transaction_.queuing() &&
      !spec->AcceptsCount(parser_.size())) {
    transaction_.End();
    reply.Error(
        "EXECABORT Transaction discarded because of: wrong number of arguments for 'exec' command");
    return Answered::kWithError;
  }
  // A login can end between MULTI and EXEC. The error then also ends the transaction, so that its
  // commands are not executed after a later login.
  if (spec != nullptr && spec->verb == Verb::kExec && NeedsLogin(*spec)) {
    transaction_.End();
    reply.Error(fmt::format("EXECABORT Transaction discarded because of: {}", kNoAuth));
    return Answered::kWithError;
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
        return Answered::kWithError;
      }
      transaction_.Begin();
      reply.Simple("OK");
      return Answered::kWell;
    case Verb::kDiscard:
      if (!transaction_.queuing()) return refuse("ERR DISCARD without MULTI");
      transaction_.End();
      reply.Simple("OK");
      return Answered::kWell;
    case Verb::kExec:
      if (!transaction_.queuing()) return refuse("ERR EXEC without MULTI");
      if (transaction_.state() == Transaction::State::kRefused) {
        transaction_.End();
        return refuse("EXECABORT Transaction discarded because of previous errors.");
      }
      transaction_.BeginExecution();
      return Answered::kLater;
    default:
      break;
  }
  if (transaction_.state() == Transaction::State::kQueuing && !transaction_.Add(bytes)) {
    return refuse(fmt::format("ERR more than {} commands or {} bytes in a transaction",
                              Transaction::kCommandsMax, Transaction::kBytesMax));
  }
  reply.Simple("QUEUED");
  return Answered::kWell;
}

// The replies are collected first, because the array of EXEC may be written only when all are
// there. Nothing is sent ahead: each command is executed when the one before it is answered.
void RespSession::Execute(Pass& pass) {
  const Turn inner{.output = transaction_.replies, .queue = queue_, .now = pass.now};
  const uint64_t added_before = queue_.added_commands();
  while (queue_.empty() && !transaction_.rest().empty()) ExecuteNext(inner);
  pass.executed += queue_.added_commands() - added_before;
  parser_.Forget();
  if (!queue_.empty()) return;
  ++pass.commands;
  RespWriter(pass.output, client_.version).Array(transaction_.count());
  pass.output.append(transaction_.replies);
  transaction_.End();
  SetBounds();
}

void RespSession::ExecuteNext(const Turn& turn) {
  const std::string_view rest = transaction_.rest();
  FollowUsers();
  parser_.Forget();
  // The command was accepted when it arrived, perhaps with a login that has been lost since.
  parser_.set_bounds(kBounds);
  HEADGATE_CHECK(parser_.Parse(rest) == RespParser::Step::kCommand);
  const CommandSpec* const spec = FindCommand(parser_[0]);
  Answered answered = Answered::kWell;
  if (transaction_.replies_full()) {
    RespWriter(turn.output, client_.version)
        .Error(fmt::format("ERR not executed: the transaction has more than {} bytes of replies",
                           Transaction::kReplyBytesMax));
    answered = Answered::kWithError;
  } else if (CollectOne(spec, turn) != Collected::kNo) {
    // The batch was empty.
    context_.throttle.Flush(turn);
  } else {
    answered = RunOther(spec, turn);
  }
  if (answered == Answered::kWithError) context_.counters.errors.Add();
  transaction_.Next(parser_.consumed_bytes());
}

Answered RespSession::RunScript(bool by_text, const Turn& turn) {
  // A script without an error was collected with the batch, so this one has an error.
  const auto words = context_.script_verbs.Expand(by_text, parser_);
  const absl::string_view message = words.status().message();
  RespWriter(turn.output, client_.version).Error({message.data(), message.size()});
  return Answered::kWithError;
}

Answered RespSession::RunClient(const Turn& turn) {
  RespWriter reply(turn.output, client_.version);
  if (RevealsClients(parser_[1]) && Refuses(Right::kRead, "client|list", reply))
    return Answered::kWithError;
  const bool done = AnswerClient(
      parser_, {.state = client_, .clients = context_.clients, .registration = registration_},
      reply, turn.now);
  registration_.Describe(client_);
  return done ? Answered::kWell : Answered::kWithError;
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

// A login whose password is verified on another thread.
class RespSession::LateLogin final : public LateReply {
 public:
  LateLogin(RespSession& session, Greeting greeting)
      : LateReply(CommandKind::kAlone), session_(session), greeting_(std::move(greeting)) {
    greeting_.login.reset();  // its texts are gone by then
  }

  access::PendingLogin& pending() { return pending_; }
  Answered Write(std::string& output, base::Instant /*now*/) override {
    if (!pending_.result()) return Answered::kLater;
    return session_.CompleteLogin(greeting_, pending_.result(), output);
  }

 private:
  RespSession& session_;
  Greeting greeting_;
  access::PendingLogin pending_{[this] { Wake(); }};
};

Answered RespSession::RunLogin(Verb verb, const Turn& turn) {
  const ConnectionVerbs& verbs = context_.connection_verbs;
  RespWriter reply(turn.output, client_.version);
  const auto greeting = verb == Verb::kHello ? verbs.ReadHello(parser_, client_, reply)
                                             : verbs.ReadAuth(parser_, client_, reply);
  if (!greeting) return Answered::kWithError;
  if (!greeting->login) return CompleteLogin(*greeting, std::nullopt, turn.output);
  auto late = std::make_unique<LateLogin>(*this, *greeting);
  const std::optional<access::Login> login =
      verbs.LogIn(*greeting->login, peer_, turn.now, late->pending());
  if (login) return CompleteLogin(*greeting, login, turn.output);
  turn.queue.Add(std::move(late));
  return Answered::kLater;
}

Answered RespSession::CompleteLogin(const Greeting& greeting, std::optional<access::Login> login,
                                    std::string& output) {
  const Answered answered =
      context_.connection_verbs.Complete(greeting, std::move(login), client_, peer_, output);
  UpdateRights();
  return answered;
}

void RespSession::ResetClient() {
  // The number of a client stays the same for the whole connection.
  const uint64_t id = client_.id;
  client_ = ClientState{.id = id};
  transaction_.End();
  UpdateRights();
}

void RespSession::FollowUsers() {
  if (rights_generation_ == context_.access.generation()) return;
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
