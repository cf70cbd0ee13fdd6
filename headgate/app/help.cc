#include "headgate/app/help.h"

#include <fmt/format.h>

#include <array>

#include "headgate/app/settings/settings.h"

namespace headgate::app {
namespace {

constexpr std::string_view kOverview =
    R"(Headgate decides, for every request, whether it may pass now.

Run it
  headgate serve                        answer on 127.0.0.1:8080, HTTP and the Redis protocol
  headgate serve --rules rules.yaml     with rules, reloaded when the file changes
  headgate serve --print-config         every setting, its value and where the value came from
  headgate sidecar --upstream URL       a proxy whose clients share the capacity of a service

Ask it
  headgate check edge api_key=k1        may this request pass? exit status 0 yes, 1 no
  redis-cli -p 8080 CL.THROTTLE user123 15 30 60

Work on rules
  headgate validate rules.yaml          show every problem in a rule file
  headgate explain edge api_key=k1      show which rule applies, and why the others do not
  headgate rules list                   show and change the rules of a running fleet

Measure it
  headgate bench --rate 20000           how long the answers take, corrected for coordinated omission
  headgate help COMMAND                 the options and examples of one command
  also: headgate scenario, store, hash-password, completion, man, version

Exit status: 0 done or allowed, 1 denied or a scenario failed, 2 wrong usage, files or settings, 3 server not reached
or address not available, 4 snapshot not written, 5 undecided, 6 output not written.
)";

constexpr std::string_view kServe = R"(headgate serve: answer whether requests may pass

  headgate serve [--config PATH] [--SETTING VALUE]…
  headgate serve --rules rules.yaml --snapshot buckets.snapshot
  headgate serve --rule 'api_key: 100/minute burst 20'
  headgate serve --rules rules.yaml --store redis://127.0.0.1:6379
  headgate serve --listen :8080 --credential-file /run/secrets/headgate
  headgate serve --listen-proxy :8000 --upstream http://127.0.0.1:9000 --capacity 40      also a proxy, as a sidecar

Settings come from headgate.yaml (--config PATH, HEADGATE_CONFIG, else ./headgate.yaml if it exists), the environment
(HEADGATE_IDLE_TIMEOUT=1m; separate the values of a list by ";") and flags. Flags override the environment, which
overrides the file. SIGHUP reloads the rules; SIGTERM finishes requests in progress, writes the snapshot and exits.

  --config PATH        the settings file
  --print-config       show every setting, its value and where the value came from, and exit; --json: as JSON

The most used settings; those with … may be given more than once:
)";

constexpr std::string_view kServeEnd = R"(
`headgate help serve --all` lists all settings; docs/reference/configuration.md says when to change them.

Exit status: 0 stopped by a signal, 2 wrong settings or rules, 3 cannot listen on an address, 4 the last snapshot could
not be written.
)";

// The settings in the short help.
constexpr std::array<std::string_view, 11> kCommonSettings = {
    "listen",           "admin_listen",    "rules",       "rule",        "snapshot", "store",
    "on_store_failure", "credential_file", "max_buckets", "drain_delay", "log_level"};

constexpr std::string_view kSidecar =
    R"(headgate sidecar: a proxy in front of one service, whose clients share its capacity fairly

  headgate sidecar [--config PATH] --upstream URL[,URL]… --capacity N [--SETTING VALUE]…
  headgate sidecar --listen :8080 --upstream http://127.0.0.1:9000 --capacity 40 --cycle 10s
  headgate sidecar --upstream h2c://127.0.0.1:50051 --capacity auto
  headgate sidecar --listen tls::443 --tls-certificate-file c.pem --tls-key-file k.pem --upstream http://a --capacity 40
  headgate sidecar --upstream http://127.0.0.1:9000 --capacity 40 --rule 'client: 100/minute burst 20'
  headgate sidecar --plan access.log --capacity 40      what fair share would have done with these requests

All clients begin with equal shares of the capacity. A client that needs more borrows what others leave, and they get
their own back when they need it. A request beyond its client's share is answered 429. Requests, answers and tunnels
(WebSocket, gRPC) are streamed. Clients speak HTTP/1.1 or HTTP/2 (ALPN, prior knowledge). GET /v1/sidecar on the admin
address shows mode and upstream; PATCH changes them without a restart: {"mode":"passthrough"}, {"upstream":"URL[,URL]"}.

Settings come from a file (--config PATH, HEADGATE_CONFIG), the environment (HEADGATE_DRAIN_TIMEOUT=1m; separate the
values of a list by ";") and flags. Flags override the environment, which overrides the file. SIGHUP reads rules,
mappings and certificates again; SIGTERM finishes requests in progress and exits.

  --config PATH        the settings file
  --print-config       show every setting, its value and where the value came from, and exit
  --json               with --print-config: as JSON
  --plan PATH          serve nothing; say what the pool would have done with this access log (- is stdin)
  --plan-client PLACE  the client's id in a line: the word 1, 2, … or -1 (the last), or a member of JSON (1)

The most used settings; those with … may be given more than once:
)";

constexpr std::string_view kSidecarEnd = R"(
`headgate help sidecar --all` lists all settings; docs/reference/sidecar-settings.md says when to change them.

Exit status: 0 stopped by a signal, 2 wrong settings or rules, 3 cannot listen on an address.
)";

constexpr std::array<std::string_view, 16> kCommonSettingsOfSidecar = {
    "listen",        "admin_listen", "credential_file", "upstream", "capacity", "cycle",
    "client_header", "anonymous",    "scope",           "mode",     "rules",    "rule",
    "store",         "check_path",   "handover",        "log_level"};

constexpr std::string_view kCheck = R"(headgate check: may this request pass now?

  headgate check [--server HOST:PORT] [DOMAIN] k=v,k=v… [k=v,k=v…]…
  headgate check edge api_key=k1
  headgate check edge --cost 5 api_key=k1,path=/search remote_address=192.0.2.1
  headgate check --rules rules.yaml edge api_key=k1
  headgate check --rule 'api_key: 100/minute burst 20' api_key=k1

Each k=v,k=v is a descriptor; the request passes if all descriptors allow it. Put a value with a comma or a space in
double quotes. The command asks the server, which counts the request. With --rules or --rule it decides by itself, as a
server with fresh buckets would.

  --server HOST:PORT    the server to ask (127.0.0.1:8080); also tls:HOST:PORT and unix:PATH
  --credential-file PATH  log in with its first line: USER:PASSWORD, or the credential
  --ca-file PATH        the authority of the server's certificate (the system's)
  --tls-name NAME       the name that must be in the certificate (the host of --server)
  --domain DOMAIN       the rules' domain, if it is not the first argument ("default")
  --cost N              how much each descriptor takes (1); 0 shows the state and takes nothing
  --peek                show what a check would answer; takes nothing
  --timeout DURATION    how long to wait for the server (2s)
  --rules PATH          decide without a server by these rules; a file or a directory; repeatable
  --rule TEXT           decide without a server by this rule too; repeatable
  --merge-domains       with --rules: several files may have the same domain
  --json                print the JSON answer of /v1/check

Exit status: 0 allowed, 1 denied, 2 wrong usage or a request that the server refuses, 3 no Headgate at the address,
5 the server cannot decide now: it has no rules yet, or the shared store cannot be reached.
)";

constexpr std::string_view kRulesHelp =
    R"(headgate rules: show and change the rules of a running fleet

  headgate rules list                         the documents that rules come from
  headgate rules get NAME                     print one of them
  headgate rules put NAME [PATH]              replace it by a file, or by stdin
  headgate rules delete NAME
  headgate rules rollout edge api_key=gold --percent 5 limits.yaml    new limits for 5 % of the keys first
  headgate rules history [NAME]               who changed what
  headgate rules rollback NAME [CHANGE]       undo the latest change, or go back to the text after CHANGE
  headgate rules confirm                      deletions that were taken for an accident were intended
  headgate rules put edge api_key=gold - <gold.yaml

NAME is a document. Where it stands, DOMAIN k=v,k=v names one rule of a rule file (k= for any value of k), and --key KEY
the limit of one API key in ZooKeeper. A change shows first what differs, and asks. All instances follow the source of
the rules. If somebody else was faster, nothing is changed.

  --server HOST:PORT    the admin address of any instance (127.0.0.1:8081); also tls:HOST:PORT and unix:PATH
  --credential-file PATH  log in with its first line: USER:PASSWORD, or the credential
  --ca-file PATH        the authority of the server's certificate (the system's)
  --tls-name NAME       the name that must be in the certificate (the host of --server)
  --key KEY             the limit of this API key
  --percent N           with rollout: the limits (rate_limit or rate_limits) in the file hold for N percent of the keys;
                        without a file, the limits of the present roll-out
  --shadow              with rollout: count what the limits would decide, beside the rule's own; they deny nothing
  --promote             with rollout: its limits become those of the rule
  --stop                with rollout: take it back; the rule keeps its limits
  --dry-run             show what would change, and change nothing
  --yes                 do not ask
  --timeout DURATION    how long to wait for the server (10s)
  --json                print the JSON answer of the server

Exit status: 0 done, 2 wrong usage or refused, 3 no Headgate at the address, 5 the server cannot do it now.
)";

constexpr std::string_view kValidate =
    R"(headgate validate: show every problem in rule files

  headgate validate FILES…
  headgate validate rules.yaml /etc/headgate/rules.d
  headgate validate --rule 'api_key: 100/minute burst 20'
  headgate validate --auth auth.yaml

  --auth PATH        check this file of mappings instead, for `serve --auth`
  --mappings PATH    the same for `sidecar --mappings`, which needs no trusted_proxies
  --rule TEXT        check this rule too; repeatable
  --merge-domains    several files may have the same domain
  --json             print JSON

Exit status: 0 valid, 2 not valid. At most 100 problems of each file are shown; all are counted.
)";

constexpr std::string_view kExplain =
    R"(headgate explain: which rule applies to a descriptor, and why

  headgate explain [--rules PATH]… [--rule TEXT]… [DOMAIN] k=v,k=v…
  headgate explain --rules rules.yaml edge api_key=gold-17,path=/search
  headgate explain --auth auth.yaml --request 'GET /search?q=1' --header 'X-API-Key: k1'

Shows each step down the tree of rules, what was tried there, the resulting limit, and the key of its bucket. Without
--rules or --rule it uses the rules of headgate.yaml and the environment, as `headgate serve` does.

  --domain DOMAIN    the rules' domain, if it is not the first argument ("default")
  --rules PATH       a rule file, or a directory of them; repeatable
  --rule TEXT        a rule as text, in the domain "default"; repeatable
  --merge-domains    several files may have the same domain
  --request TEXT     explain how this request of a client becomes descriptors, and which rules apply to them
  --header TEXT      with --request: a header of the request, "Host: example.com" too; repeatable
  --client-address IP  with --request: the client's address
  --auth PATH        with --request: the mappings; by default those of headgate.yaml and the environment
  --auth-header NAME   with --request: the mapping of `serve --auth-header`
  --json             print JSON

Exit status: 0 explained, whether or not a rule applies; 2 wrong usage or rules.
)";

constexpr std::string_view kScenario =
    R"(headgate scenario: run a test of rules, written as text, in virtual time

  headgate scenario FILES…

A scenario holds rules, requests at given times, and the expected answers:

  rule login = 1 per 10s burst 5
  at 0s    login:ann x5    allow remaining 0
  at 0s    login:ann       deny retry 10s reset 50s

Exit status: 0 all as expected, 1 a line differs (the expected and the actual answer are shown), 2 a file cannot be
read.
)";

constexpr std::string_view kVersionHelp = R"(headgate version: which build this is

  --json    as JSON
)";

constexpr std::string_view kHashPassword =
    R"(headgate hash-password: the hash of a password, for the file of users

  headgate hash-password                type the password twice; it is not shown
  headgate hash-password <password.txt  its first line

The hash goes into a line of the file that the setting users_file names:

  NAME RIGHTS HASH                      RIGHTS: check,refund,read,admin

Exit status: 0 printed, 2 no password, or two different ones.
)";

constexpr std::string_view kStore =
    R"(headgate store: prepare what a shared store needs, and look into it

  headgate store create-table URL
  headgate store create-table 'dynamodb://limits?region=eu-west-1'
  headgate store show URL NAME
  headgate store show zk://127.0.0.1:2181/rate-limiter 'hg:{r|edge|api_key=k1#0}'

show prints the bucket of this name: its limit, what remains, when it is full again by the clock of this machine, and
what instances hold on lease. docs/reference/redis-state.md lists the names, which are the same in all stores.

create-table makes the table of strict buckets in DynamoDB if it is not there, waits until it is active, and turns on its time to
live, so that old buckets are removed. It is paid by request. The command can be repeated; it does not change a table
that has another key. Credentials come from the environment, the shared credentials file or a role.

  --ca-file PATH       the authority of the server's certificate (the system's)
  --timeout DURATION   how long to wait: for the table (2m), for the bucket (5s)

Exit status: 0 the table is there, or the bucket shown, 2 wrong usage, missing rights, a table with another key, or a
damaged bucket, 3 the store not reached.
)";

constexpr std::string_view kBench =
    R"(headgate bench: how many decisions a server gives, and how long they take

  headgate bench                              as many CL.THROTTLE as it answers, over 50 connections
  headgate bench --rate 20000 --plot out.svg  how long clients wait if 20,000 requests come each second
  headgate bench --http --key api_key         /v1/check

Without --rate (closed loop) each connection sends its next request when it has the answer to the last one. With --rate
(open loop) requests become due at that rate, whatever the server does, and a latency begins when its request is due: a
server that stalls cannot hide the requests that it kept from being sent.

  --server HOST:PORT    the server to ask (127.0.0.1:8080); also tls:HOST:PORT and unix:PATH
  --credential-file PATH  log in with its first line: USER:PASSWORD, or the credential
  --ca-file PATH        the authority of the server's certificate (the system's)
  --tls-name NAME       the name that must be in the certificate (the host of --server)
  --http                ask /v1/check instead of CL.THROTTLE
  --rate N              requests per second, in all; 0: as many as are answered
  --connections N       connections (50)
  --duration DURATION   how long (10s)
  --pipeline N          without --rate: CL.THROTTLE sent at once on each connection (1)
  --keys N              different keys, drawn evenly (1000)
  --domain DOMAIN       with --http: the rules' domain ("default")
  --key NAME            with --http: the descriptor's key ("api_key"); its values are bench0, bench1, ...
  --plot PATH           write a picture of the latencies (SVG): a file, a pipe or /dev/stdout
  --json                print JSON

CL.THROTTLE has a limit of 1,000,000 per minute with a burst of 1,000,000 for each key. Progress goes to stderr.

Answers that are errors are counted by their status or first word, and the first one is shown. A login that is refused
is an error, not a denial.

The soft limit on open files (`ulimit -n`) is raised to the hard one; more connections than that allows are refused.

Exit status: 0 done, 1 some answers were errors or none came, 2 wrong usage, 3 server not reached, or it closed a
connection, 6 report or picture not written.
)";

constexpr std::string_view kCompletion =
    R"text(headgate completion: complete commands and options in a shell

  headgate completion bash|zsh|fish     print the script

  eval "$(headgate completion bash)"                        in ~/.bashrc
  headgate completion zsh >~/.zfunc/_headgate               with ~/.zfunc in fpath, before compinit
  headgate completion fish >~/.config/fish/completions/headgate.fish

Exit status: 0 printed, 2 another shell.
)text";

constexpr std::string_view kMan = R"(headgate man: the manual page

  headgate man | man -l -               read it
  headgate man >headgate.1              install it

Exit status: 0 printed.
)";

const std::array<std::string, 13> kCommands = {
    "serve", "sidecar", "check",         "validate",   "explain", "scenario", "rules",
    "bench", "store",   "hash-password", "completion", "man",     "version"};

std::string LineOf(const Setting& setting, const Settings& defaults, size_t width) {
  const std::vector<std::string> values = ShowValue(setting, defaults);
  const bool shown = !values.empty() && !values.front().empty();
  return fmt::format("  {:<{}}  {}{}\n", FlagOf(setting) + (setting.is_list() ? " …" : ""), width,
                     setting.help, shown ? fmt::format(" [{}]", values.front()) : "");
}

std::string Screen(Command command, std::string_view begin,
                   std::span<const std::string_view> settings, std::string_view end) {
  const Settings defaults = DefaultsOf(command);
  std::string text(begin);
  for (const std::string_view name : settings)
    text += LineOf(*FindSetting(name, command), defaults, 19);
  return text.append(end);
}

std::string AllOf(Command command) {
  const Settings defaults = DefaultsOf(command);
  std::string text = fmt::format("headgate {}: all settings\n", NameOf(command));
  std::string_view group;
  for (const Setting& setting : AllSettings(command)) {
    if (setting.group != group) {
      group = setting.group;
      text += fmt::format("\n{}\n", group);
    }
    text += LineOf(setting, defaults, 32);
  }
  return text;
}

}  // namespace

std::string_view Overview() { return kOverview; }

std::string HelpOf(std::string_view command, HelpLength length) {
  const bool all = length == HelpLength::kAll;
  if (command == "serve") {
    return all ? AllOf(Command::kServe)
               : Screen(Command::kServe, kServe, kCommonSettings, kServeEnd);
  }
  if (command == "sidecar") {
    return all ? AllOf(Command::kSidecar)
               : Screen(Command::kSidecar, kSidecar, kCommonSettingsOfSidecar, kSidecarEnd);
  }
  if (command == "check") return std::string(kCheck);
  if (command == "validate") return std::string(kValidate);
  if (command == "explain") return std::string(kExplain);
  if (command == "scenario") return std::string(kScenario);
  if (command == "rules") return std::string(kRulesHelp);
  if (command == "hash-password") return std::string(kHashPassword);
  if (command == "bench") return std::string(kBench);
  if (command == "store") return std::string(kStore);
  if (command == "completion") return std::string(kCompletion);
  if (command == "man") return std::string(kMan);
  if (command == "version") return std::string(kVersionHelp);
  return "";
}

std::span<const std::string> CommandNames() { return kCommands; }

}  // namespace headgate::app
