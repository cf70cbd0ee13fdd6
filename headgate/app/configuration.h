// Where the settings' values come from: default < headgate.yaml < environment < flag.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/app/settings.h"

namespace headgate::app {

// What is wrong, where, and what to do.
struct ConfigurationProblem {
  std::string where;  // "headgate.yaml:3:1", "HEADGATE_THREADS", "--threads"; empty where `what` says it
  std::string what;
  std::string hint;  // may be empty
};

struct Configuration {
  Settings settings;
  // Per setting that is not at its default: "headgate.yaml:3", "HEADGATE_THREADS", "--threads".
  std::map<std::string, std::string, std::less<>> origins;
  std::vector<ConfigurationProblem> problems;

  std::string_view OriginOf(std::string_view name) const;
  // Something is wrong with what a setting says; without a `hint`, what the setting is.
  void AddProblem(std::string_view setting, std::string_view what, std::string_view hint = {});
  void AddProblem(std::string_view setting, const absl::Status& why) {
    AddProblem(setting, std::string(why.message()));
  }
};

// Values by setting name, as one place gave them.
struct GivenValue {
  std::vector<std::string> values;
  std::string origin;
};
using GivenValues = std::map<std::string, GivenValue, std::less<>>;

// Reads the text of a headgate.yaml: a mapping of settings to a value or, for lists, a sequence of values. What is
// wrong goes to `problems`, all of it.
GivenValues ReadSettingsFile(std::string_view text, const std::string& path,
                             std::vector<ConfigurationProblem>& problems);

// Reads HEADGATE_…; lists hold their values separated by ";". `get` answers like getenv.
GivenValues ReadEnvironment(const std::function<const char*(const char*)>& get);

// Puts one place's values over what is there.
void Apply(const GivenValues& given, Configuration& configuration);

// What the settings contradict, once all places have been read.
void CheckTogether(Configuration& configuration);

// For --print-config: every setting with its value and where that came from. The text is a headgate.yaml again.
std::string PrintConfiguration(const Configuration& configuration);
std::string PrintConfigurationJson(const Configuration& configuration);

// A setting's entry in docs/reference/configuration.md.
std::string DescribeForPage(const Setting& setting);

}  // namespace headgate::app
