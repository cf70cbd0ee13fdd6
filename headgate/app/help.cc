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

  headgate sidecar --upstream URL[,URL]… --capacity N [--cycle DURATION]
  headgate sidecar --listen :8080 --upstream http://127.0.0.1:9000 --capacity 40 --cycle 10s
  headgate sidecar --upstream h2c://127.0.0.1:50051 --capacity auto
  headgate sidecar --listen tls::443 --tls-certificate-file c.pem --tls-key-file k.pem --upstream http://a --capacity 40
  headgate sidecar --config sidecar.yaml --print-config   every setting, its value and where the value came from
  headgate sidecar --plan access.log --capacity 40      what fair share would have done with these requests

All clients begin with equal shares of the capacity. A client that needs more borrows what others leave, and they get
their own back when they need it. A request beyond its client's share is answered 429. Requests, answers and tunnels
(WebSocket, gRPC) are streamed. Clients speak HTTP/1.1 or HTTP/2 (ALPN, prior knowledge). GET /v1/sidecar on the admin
address shows mode and upstream; PATCH changes them without a restart: {"mode":"passthrough"}, {"upstream":"URL[,URL]"}.

  --listen ADDRESS          HOST:PORT, :PORT or unix:PATH, with tls: before it for TLS (127.0.0.1:8080); repeatable
  --tls-certificate-file PATH  for tls: addresses; a certificate chain (PEM), followed while it runs; repeatable
  --tls-key-file PATH       the key of the certificate at the same position
  --tls-client-ca-file PATH    clients need a certificate that one of these authorities has signed
  --tls-client-name NAME    a DNS, URI or email name; clients' certificates must have one of them; repeatable
  --client-from-certificate    a client is the name in its certificate; --client-header passes it on
  --admin-listen ADDRESS    metrics and health (127.0.0.1:8081); none turns it off
  --credential-file PATH    the admin address asks everybody for its first line
  --known-host NAME         the admin address may be asked by this name too, as in Kubernetes: *.NAME for all names below
                            it, * for any; repeatable
  --upstream URL            http://HOST:PORT, h2c://HOST:PORT (HTTP/2) or http://unix:PATH; with TLS https://HOST or
                            h2://HOST (HTTP/2); several with commas. Each address of a name is an upstream
  --upstream-resolve DURATION  between two lookups of a name in --upstream, from 100ms to 1h (5s)
  --upstream-ca-file PATH   the authorities that sign the upstream's certificate, followed (the system's)
  --upstream-tls-name NAME  the name that must be in it (the host of --upstream)
  --upstream-certificate-file PATH  the sidecar's own certificate for the upstream, followed
  --upstream-key-file PATH  its key
  --capacity N              requests in each cycle, for all clients together; auto finds it
  --cycle DURATION          the shares are divided anew after this time (10s)
  --reservation PERCENT     the part of its even share that an idle client keeps (10%)
  --on-new-client redivide|restart  what happens to the running cycle (redivide)
  --lending proportional|max_min  how clients that ask for more than an even share divide what
                        others leave: in proportion to what they lack, or equally (proportional)
  --reclaim next_cycle|at_once  when a client gets its own back (next_cycle)
  --minimum-cycle DURATION  restart and at_once cut no cycle short before this time (a tenth of --cycle)
  --leave-after CYCLES      a client without a request for this many cycles leaves; 0: never (10)
  --limit-min N             with --capacity auto: at least this many requests may be in flight, from 2 (2)
  --limit-max N             with --capacity auto: at most this many (4096)
  --client-weight NAME=WEIGHT  a client with 3 gets three times the even share of others, up to 1024 (1); repeatable
  --scope replica|fleet     a pool for this replica, or one that all with the same --pool share (replica)
  --pool NAME               the pool in --store that a fleet shares (default)
  --client-header NAME      the field with the client's id (X-Client-Id); none: its address is its id
  --anonymous NAME          requests without an id are one client of this name; else they are refused
  --clients N               the most clients that share (1024)
  --cors-origin ORIGIN      pages of this origin may read refusals with their fields; * is every page; repeatable
  --preflights pass|count   whether preflights of browsers, which name no client, pass without being counted (pass)
  --mode enforce|passthrough  passthrough decides and counts, and lets everything through (enforce)
  --rules PATH              rules in front of the pool: files, and directories of *.yaml; repeatable, followed live
  --rule TEXT               a rule in one line, for example 'client: 100/minute burst 20'; repeatable
  --watch zk://HOST:PORT/path  rules in ZooKeeper, followed live; repeatable
  --watch-password-file PATH  its first line is the password for the user in --watch zk://USER@HOST:PORT/path
  --watch-copy PATH         a file for the last good rules of --watch, for a start while ZooKeeper is away
  --merge-domains           several rule files, or a file and ZooKeeper, may have the same domain
  --mappings PATH           which rules a request meets, as with `serve --auth`; without it: client=ID
  --max-buckets N           the most buckets of rules in memory (1048576)
  --store URL               rules, and with --scope fleet the pool, count in this store, together with other
                            instances: redis://HOST:PORT, zk://…
  --store-password-file PATH  its first line is the store's password
  --store-timeout DURATION  for one call of the store; then --on-store-failure decides (10ms; zk: 250ms)
  --on-store-failure WORD   local, allow or deny (local; zk: deny)
                            TLS and the other settings of the store are flags too: `headgate help sidecar --all`
  --rate-limit-fields WORD  the fields that describe a share: all, draft, draft-7, … none (draft)
  --refusal-file PATH       the content type and the body of refusals; without it: application/problem+json
  --x-forwarded append|replace|off  X-Forwarded-For, -Proto, -Host (append)
  --forwarded append|replace|off  the field Forwarded (off)
  --via NAME                this proxy in Via and Proxy-Status (headgate); a request that has it 8 times is answered 508.
                            none: Via is passed on, and a request that goes in circles is not noticed
  --no-reason               no Proxy-Status in answers about a failure of the upstream
  --abandoned cancel|finish  requests over HTTP/1.1 whose client closes its direction before the answer begins (cancel).
                            finish: for clients that send all, close their direction, and read the answer
  --connect-timeout DURATION  for a connection to the upstream (5s)
  --answer-timeout DURATION   from the end of a request to the head of its answer (1m)
  --idle-timeout DURATION     without a byte in either direction, in a request or between two (5m)
  --tunnel-idle-timeout DURATION  the same for tunnels, such as WebSocket (1h)
  --queue-timeout DURATION    for a request that waits for a connection (5s)
  --drain-timeout DURATION    for requests in progress when the process stops (10s)
  --handover PATH           a Unix socket: a new process with the same PATH takes over the listening sockets and the
                            shares of the old one, which then leaves, so that a restart fails no request
  --check-path PATH         ask each address of the upstream for this path; it gets no requests while it fails, unless
                            all addresses fail
  --check-interval DURATION   between two checks of an address by an event loop, from 200ms (5s)
  --upstream-connections N    to each address of the upstream, also to each address of a name (512)
  --queue N                 requests that wait for a connection, and as many that queues of rules hold (1024)
  --max-connections N       of clients (10000)
  --max-connections-per-address N  of clients at one address (--max-connections: a load balancer has one address)
  --threads N               event loops (one for each core)
  --log-level debug|info|warning|error  the least important events that are logged (info)
  --log-format text|json    how an event is written (text)
  --config PATH             a settings file: each flag is a setting (--drain-timeout is drain_timeout); HEADGATE_CONFIG names
                            it too. HEADGATE_DRAIN_TIMEOUT in the environment comes before the file, and a flag before both
  --print-config            serve nothing; print each setting, its value and where it came from
  --json                    with --print-config: as JSON
  --plan PATH               serve nothing; say what the pool would have done with this access log (- is stdin)
  --plan-client PLACE       the client's id in a line: the word 1, 2, … or -1 (the last), or a member of JSON (1)

Exit status: 0 stopped by a signal, 2 wrong usage, 3 cannot listen on an address.
)";

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

std::string LineOf(const Setting& setting, size_t width) {
  const std::vector<std::string> values = ShowValue(setting, Settings{});
  const bool shown = !values.empty() && !values.front().empty();
  return fmt::format("  {:<{}}  {}{}\n", FlagOf(setting) + (setting.is_list() ? " …" : ""), width,
                     setting.help, shown ? fmt::format(" [{}]", values.front()) : "");
}

std::string Serve() {
  std::string text(kServe);
  for (const std::string_view name : kCommonSettings) text += LineOf(*FindSetting(name), 19);
  return text.append(kServeEnd);
}

std::string AllOfSidecar() {
  std::string text(kSidecar);
  const auto add_group = [&](std::string_view title, bool (*is_in)(const Setting&)) {
    text += fmt::format("\n{}\n", title);
    for (const Setting& setting : AllSettings()) {
      if (is_in(setting)) text += LineOf(setting, 32);
    }
  };
  add_group("Rules in ZooKeeper", IsOfWatch);
  add_group(FindSetting("store")->group, IsOfStore);
  return text;
}

std::string AllOfServe() {
  std::string text = "headgate serve: all settings\n";
  std::string_view group;
  for (const Setting& setting : AllSettings()) {
    if (setting.group != group) {
      group = setting.group;
      text += fmt::format("\n{}\n", group);
    }
    text += LineOf(setting, 32);
  }
  return text;
}

}  // namespace

std::string_view Overview() { return kOverview; }

std::string HelpOf(std::string_view command, HelpLength length) {
  if (command == "serve") return length == HelpLength::kAll ? AllOfServe() : Serve();
  if (command == "sidecar")
    return length == HelpLength::kAll ? AllOfSidecar() : std::string(kSidecar);
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
