// Where the settings' values come from: default < headgate.yaml < environment < flag.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/app/settings.h"
#include "headgate/rule/document.h"

namespace headgate::app {

// Where a value was given.
struct Origin {
  std::string place;      // "headgate.yaml:3:1", "HEADGATE_THREADS", "--threads"
  rule::Mark mark{0, 0};  // in the settings file; line 0: not there
  // The place of each item of a list in a settings file.
  std::vector<std::string> item_places{};
};

// A problem: its place, and what to do.
struct ConfigurationProblem {
  Origin where;  // no place: `what` says it
  std::string what;
  std::string hint;  // may be empty
};

struct Configuration {
  Settings settings;
  std::string file;  // the settings file that was read, as an absolute path; empty: none
  // Per setting that is not at its default.
  std::map<std::string, Origin, std::less<>> origins;
  std::vector<ConfigurationProblem> problems;

  // "default" if nothing gave it.
  std::string_view OriginOf(std::string_view name) const;
  // The place of one item of a list.
  std::string_view OriginOfItem(std::string_view name, size_t index) const;
  // Something is wrong with what a setting says; without a `hint`, what the setting is.
  void AddProblem(std::string_view setting, std::string_view what, std::string_view hint = {});
  void AddProblem(std::string_view setting, const absl::Status& why, std::string_view hint = {}) {
    AddProblem(setting, std::string(why.message()), hint);
  }
};

// Values by setting name, as one place gave them.
struct GivenValue {
  std::vector<std::string> values;
  Origin origin;
};
using GivenValues = std::map<std::string, GivenValue, std::less<>>;

// Variables by name.
using Environment = std::map<std::string, std::string, std::less<>>;
Environment ProcessEnvironment();

// Reads the text of a headgate.yaml: a mapping of settings to a value or, for lists, a sequence of
// values. Relative paths in it are relative to the directory of `path`. All problems go to
// `problems`.
GivenValues ReadSettingsFile(std::string_view text, const std::string& path,
                             std::vector<ConfigurationProblem>& problems);

// Reads HEADGATE_…; lists hold their values separated by ";". A variable that names no setting is a
// problem, unless it is one that Kubernetes sets for a service called headgate, or one of our
// tests.
GivenValues ReadEnvironment(const Environment& environment,
                            std::vector<ConfigurationProblem>& problems);

// Puts one place's values over what is there.
void Apply(const GivenValues& given, Configuration& configuration);

// Finds contradictions between settings, once all places have been read.
void CheckTogether(Configuration& configuration);

// For --print-config: every setting with its value and where that came from. The text is a
// headgate.yaml that works as it stands, from any directory: paths are absolute, and what holds a
// secret is commented out.
std::string PrintConfiguration(const Configuration& configuration);
std::string PrintConfigurationJson(const Configuration& configuration);

// A setting's entry in docs/reference/configuration.md.
std::string DescribeForPage(const Setting& setting);

}  // namespace headgate::app
