// Reads the values of settings and records where each came from. Precedence, lowest first: default,
// settings file, environment, flag.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headgate/app/settings/settings.h"
#include "headgate/base/secret.h"
#include "headgate/rule/mark.h"

namespace headgate::app {

// The place where a value was given.
struct Origin {
  std::string place;      // "headgate.yaml:3:1", "HEADGATE_THREADS", "--threads"
  rule::Mark mark{0, 0};  // position in the settings file; line 0: not from the file
  // The place of each item of a list in a settings file.
  std::vector<std::string> item_places{};
};

// A problem with a setting: its place, a message and a hint.
struct ConfigurationProblem {
  Origin where;  // may have no place; then `what` names it
  std::string what;
  std::string hint;  // may be empty
};

struct Configuration {
  explicit Configuration(Command of = Command::kServe) : command(of), settings(DefaultsOf(of)) {}

  Command command;
  Settings settings;
  std::string file;  // the settings file that was read, as an absolute path; empty: none
  // By setting; settings at their default are absent.
  std::map<std::string, Origin, std::less<>> origins;
  std::vector<ConfigurationProblem> problems;

  // The place that gave the setting, or "default".
  std::string_view OriginOf(std::string_view name) const;
  // The place that gave one item of a list.
  std::string_view OriginOfItem(std::string_view name, size_t index) const;
  // Adds a problem with the value of a setting. Without a `hint`, the setting's help is the hint.
  void AddProblem(std::string_view setting, std::string_view what, std::string_view hint = {});
  void AddProblem(std::string_view setting, const absl::Status& reason,
                  std::string_view hint = {}) {
    AddProblem(setting, std::string(reason.message()), hint);
  }
  // Adds a problem that begins with a flag: "--pool without --scope fleet". The place of its
  // setting is named too, unless that is the flag.
  void Refuse(std::string_view what, std::string_view hint);
  bool ok() const { return problems.empty(); }
  // Reads the first line of the file that `setting` names into `secret`. Leaves it alone if no file
  // is named. If the file is unreadable, that is a problem, and `secret` gets a placeholder, to
  // suppress follow-on errors.
  void ReadSecret(std::string_view setting, const std::string& path, std::string& secret);
  // The same for a password with which this process logs in elsewhere, and which may be replaced
  // there: the file is read again each time the password is needed. If that fails, the password
  // that was read last is used.
  void ReadSecret(std::string_view setting, const std::string& path, base::Secret& secret);
};

// The values that one place gives, by the name of the setting.
struct GivenValue {
  std::vector<std::string> values;
  Origin origin;
};
using GivenValues = std::map<std::string, GivenValue, std::less<>>;

// Variables by name.
using Environment = std::map<std::string, std::string, std::less<>>;
Environment ProcessEnvironment();

// Reads the text of a settings file: a mapping of settings to a value or, for lists, a sequence of
// values. Relative paths in it are relative to the directory of `path`. All problems go to
// `problems`.
GivenValues ReadSettingsFile(std::string_view text, const std::string& path,
                             std::vector<ConfigurationProblem>& problems,
                             Command command = Command::kServe);

// Reads HEADGATE_…; the values of a list are separated by ";". A variable that does not name a
// setting is a problem, except the ones that Kubernetes sets for a service called headgate, and the
// ones that our tests use.
GivenValues ReadEnvironment(const Environment& environment,
                            std::vector<ConfigurationProblem>& problems,
                            Command command = Command::kServe);

// Overrides the current values by those of one place.
void Apply(const GivenValues& given, Configuration& configuration);

// Reports contradictions between settings. Call it after all places have been applied.
void CheckTogether(Configuration& configuration);

// For --print-config: every setting with its value and the place that gave it. The text is a valid
// settings file that works from any directory: paths are absolute, and settings that hold a secret
// are commented out.
std::string PrintConfiguration(const Configuration& configuration);
std::string PrintConfigurationJson(const Configuration& configuration);

// A setting's entry in docs/reference/configuration.md or docs/reference/sidecar-settings.md.
std::string DescribeForPage(const Setting& setting);

}  // namespace headgate::app
