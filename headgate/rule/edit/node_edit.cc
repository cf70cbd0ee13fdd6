#include "headgate/rule/edit/node_edit.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "absl/container/flat_hash_map.h"
#include "headgate/rule/edit/same_meaning.h"

namespace headgate::rule::edit {

using read::NodeKind;

namespace {

Quotes QuotesOf(const SourceNode& mapping) {
  return mapping.form == NodeForm::kFlow && WritesJson(mapping) ? Quotes::kAlways
                                                                : Quotes::kIfNeeded;
}

bool ShareKey(const SourceNode& a, const SourceNode& b) {
  absl::flat_hash_map<std::string_view, const SourceNode*> keys;
  for (size_t i = 0; i < a.pair_count(); ++i) keys.emplace(a.key(i).target().text, &a.key(i));
  for (size_t i = 0; i < b.pair_count(); ++i) {
    const auto key = keys.find(b.key(i).target().text);
    if (key != keys.end() && SameKey(*key->second, b.key(i))) return true;
  }
  return false;
}

std::string_view TextOf(const SourceNode& mapping, std::string_view field) {
  std::string_view text;
  if (mapping.target().kind != NodeKind::kMapping) return text;
  for (size_t i = 0; i < mapping.target().pair_count(); ++i) {
    if (mapping.target().key(i).text == field) text = mapping.target().value(i).target().text;
  }
  return text;
}

// For each item of `wanted` the item of `old` that becomes it, in ascending order. Equal items at
// both ends are partners. Between them, descriptors are partners if they have the same key and
// value; other items if they have the same place.
std::vector<std::optional<size_t>> Partners(const SourceNode& old, const SourceNode& wanted,
                                            bool by_name) {
  const std::vector<const SourceNode*>& before = old.children;
  const std::vector<const SourceNode*>& after = wanted.children;
  std::vector<std::optional<size_t>> partners(after.size());
  const size_t shorter = std::min(before.size(), after.size());
  size_t front = 0;
  while (front < shorter && SameMeaning(*before[front], *after[front], {})) {
    partners[front] = front;
    ++front;
  }
  size_t back = 0;
  while (front + back < shorter &&
         SameMeaning(*before[before.size() - 1 - back], *after[after.size() - 1 - back], {})) {
    partners[after.size() - 1 - back] = before.size() - 1 - back;
    ++back;
  }
  if (!by_name) {
    for (size_t i = front; i < shorter - back; ++i) partners[i] = i;
    return partners;
  }
  absl::flat_hash_map<std::pair<std::string_view, std::string_view>, size_t> places;
  for (size_t i = front; i < before.size() - back; ++i)
    places.emplace(std::pair(TextOf(*before[i], "key"), TextOf(*before[i], "value")), i);
  size_t next = front;
  for (size_t i = front; i < after.size() - back; ++i) {
    const auto place = places.find({TextOf(*after[i], "key"), TextOf(*after[i], "value")});
    if (place == places.end() || place->second < next) continue;
    partners[i] = place->second;
    next = place->second + 1;
  }
  return partners;
}

}  // namespace

size_t LineBehind(const TextLines& lines, const SourceNode& child, size_t column) {
  return lines.CommentsBelow(std::max(lines.Next(child.end), child.kept_end), column);
}

absl::StatusOr<size_t> DashOf(const TextLines& lines, const SourceNode& sequence, size_t item) {
  const size_t at = item == 0 ? sequence.open : lines.Skip(sequence.children[item - 1]->end);
  if (at < lines.text().size() && lines.text()[at] == '-') return at;
  return CannotEdit(lines, sequence.begin, "an item has no dash");
}

absl::Status CannotEdit(const TextLines& lines, size_t offset, std::string_view reason) {
  const std::string_view before = lines.text().substr(0, offset);
  return absl::FailedPreconditionError(
      fmt::format("line {}: {}; edit the text by hand",
                  std::count(before.begin(), before.end(), '\n') + 1, reason));
}

absl::Status NodeEdit::CheckOwn(const SourceNode& node) const {
  if (node.is_alias()) return Refuse(node.begin, "this is an alias of another part");
  if (node.aliases > 0)
    return Refuse(node.begin, "other parts are aliases of this one and would change too");
  if (node.form == NodeForm::kFlow && lines_.text()[node.open] != '{' &&
      lines_.text()[node.open] != '[')
    return Refuse(node.begin, "a mapping in a list has no braces");
  if (node.kind != NodeKind::kMapping) return absl::OkStatus();
  absl::flat_hash_map<std::string_view, size_t> places;
  for (size_t i = 0; i < node.pair_count(); ++i) {
    const SourceNode& key = node.key(i).target();
    if (IsMergeKey(key)) return Refuse(node.key(i).begin, "this part uses a merge key (<<)");
    if (key.kind != NodeKind::kScalar) return Refuse(node.key(i).begin, "a key is not a text");
    const bool explicit_key =
        node.form == NodeForm::kBlock &&
        (i == 0 ? node.key(0).begin != node.open : !lines_.IsFirst(node.key(i).begin));
    if (explicit_key) return Refuse(node.key(i).begin, "a key begins with '?'");
    if (!places.emplace(key.text, i).second)
      return Refuse(node.key(i).begin, fmt::format("'{}' occurs twice", key.text));
  }
  return absl::OkStatus();
}

absl::Status NodeEdit::CheckAll(const SourceNode& node) const {
  if (node.aliases > 0)
    return Refuse(node.begin, "other parts are aliases of this one and would change too");
  for (const SourceNode* child : node.children) HEADGATE_RETURN_IF_ERROR(CheckAll(*child));
  return absl::OkStatus();
}

absl::Status NodeEdit::ChangeMapping(const SourceNode& old, const SourceNode& wanted) {
  HEADGATE_RETURN_IF_ERROR(CheckOwn(old));
  Plan plan{.removed = std::vector<bool>(old.pair_count(), true),
            .added = std::vector<std::vector<std::string>>(old.pair_count() + 1)};
  absl::flat_hash_map<std::string_view, size_t> places;
  for (size_t i = 0; i < old.pair_count(); ++i) places.emplace(old.key(i).target().text, i);
  std::vector<size_t> additions;
  for (size_t i = 0; i < wanted.pair_count(); ++i) {
    const auto place = places.find(wanted.key(i).target().text);
    if (place == places.end() || !SameKey(old.key(place->second), wanted.key(i))) {
      additions.push_back(i);
      continue;
    }
    plan.removed[place->second] = false;
    HEADGATE_RETURN_IF_ERROR(ChangeValue(old, place->second, wanted.value(i)));
  }
  for (size_t i = 0; i < old.pair_count(); ++i) {
    if (plan.removed[i]) HEADGATE_RETURN_IF_ERROR(CheckAll(old.value(i)));
    if (plan.removed[i]) HEADGATE_RETURN_IF_ERROR(CheckAll(old.key(i)));
  }
  // New fields of a rule come before its descriptors, unless these are first.
  size_t place = old.pair_count();
  for (size_t i = 1; i < old.pair_count(); ++i) {
    const bool kept_before =
        std::find(plan.removed.begin(), plan.removed.begin() + static_cast<ptrdiff_t>(i), false) !=
        plan.removed.begin() + static_cast<ptrdiff_t>(i);
    if (old.key(i).text == "descriptors" && kept_before) place = i;
  }
  for (const size_t i : additions) {
    const SourceNode& key = wanted.key(i);
    plan.added[place].push_back(
        old.form == NodeForm::kFlow
            ? FlowPair(key, wanted.value(i), QuotesOf(old))
            : BlockPair(key, wanted.value(i), lines_.Column(old.key(0).begin), style_));
  }
  return old.form == NodeForm::kFlow ? ChangeFlow(old, plan) : ChangeBlockMapping(old, plan);
}

absl::Status NodeEdit::ChangeValue(const SourceNode& mapping, size_t pair,
                                   const SourceNode& wanted) {
  const SourceNode& old = mapping.value(pair);
  const SourceNode& key = mapping.key(pair);
  if (SameMeaning(old, wanted, key.target().text)) return absl::OkStatus();
  if (old.is_alias() || old.kind != wanted.kind || old.children.empty())
    return ReplaceValue(mapping, pair, wanted);
  if (wanted.kind == NodeKind::kMapping && ShareKey(old, wanted)) return ChangeMapping(old, wanted);
  if (wanted.kind == NodeKind::kSequence && wanted.children.empty() &&
      old.form == NodeForm::kBlock && !old.has_properties)
    return EmptyBlockSequence(mapping, pair);
  if (wanted.kind == NodeKind::kSequence && !wanted.children.empty())
    return ChangeSequence(old, wanted, key);
  return ReplaceValue(mapping, pair, wanted);
}

absl::Status NodeEdit::ChangeSequence(const SourceNode& old, const SourceNode& wanted,
                                      const SourceNode& key) {
  HEADGATE_RETURN_IF_ERROR(CheckOwn(old));
  Plan plan{.removed = std::vector<bool>(old.children.size(), true),
            .added = std::vector<std::vector<std::string>>(old.children.size() + 1)};
  const auto partners = Partners(old, wanted, key.target().text == "descriptors");
  const size_t column = lines_.Column(old.open);
  const Quotes quotes =
      WritesJson(old.children.back()->target()) ? Quotes::kAlways : Quotes::kIfNeeded;
  // A new item is inserted before the next old item that has a partner.
  std::vector<size_t> places(partners.size());
  for (size_t i = partners.size(), place = old.children.size(); i > 0; --i)
    places[i - 1] = place = partners[i - 1].value_or(place);
  for (size_t i = 0; i < partners.size(); ++i) {
    const SourceNode& item = *wanted.children[i];
    if (partners[i]) {
      plan.removed[*partners[i]] = false;
      HEADGATE_RETURN_IF_ERROR(ChangeItem(*old.children[*partners[i]], item));
    } else {
      plan.added[places[i]].push_back(
          old.form == NodeForm::kFlow ? FlowText(item, quotes) : BlockItem(item, column, style_));
    }
  }
  for (size_t i = 0; i < old.children.size(); ++i) {
    if (plan.removed[i]) HEADGATE_RETURN_IF_ERROR(CheckAll(*old.children[i]));
  }
  return old.form == NodeForm::kFlow ? ChangeFlow(old, plan)
                                     : ChangeBlockSequence(old, plan, lines_.Next(key.end));
}

absl::Status NodeEdit::ChangeItem(const SourceNode& old, const SourceNode& wanted) {
  if (SameMeaning(old, wanted, {})) return absl::OkStatus();
  if (!old.is_alias() && old.kind == NodeKind::kMapping && wanted.kind == NodeKind::kMapping &&
      ShareKey(old, wanted))
    return ChangeMapping(old, wanted);
  HEADGATE_RETURN_IF_ERROR(CheckAll(old));
  ReplaceInline(old, FlowText(wanted, QuotesOf(old)));
  return absl::OkStatus();
}

void NodeEdit::ReplaceInline(const SourceNode& old, std::string text) {
  const std::string_view source = lines_.text();
  const bool is_empty = old.begin == old.end;
  const bool touches = old.begin > 0 && source[old.begin - 1] != ' ';
  edits_.Replace(old.begin, old.end, is_empty && touches ? " " + text : std::move(text));
}

absl::Status NodeEdit::ReplaceValue(const SourceNode& mapping, size_t pair,
                                    const SourceNode& wanted) {
  const SourceNode& key = mapping.key(pair);
  const SourceNode& old = mapping.value(pair);
  HEADGATE_RETURN_IF_ERROR(CheckAll(old));
  HEADGATE_ASSIGN_OR_RETURN(const size_t colon, Colon(mapping, pair));
  if (mapping.form == NodeForm::kFlow) {
    ReplaceInline(old, FlowText(wanted, QuotesOf(mapping)));
    return absl::OkStatus();
  }
  std::string below;
  if (IsWrittenAsBlock(key, wanted, style_)) {
    below =
        BlockLines(wanted.target(), ColumnBelow(wanted, lines_.Column(key.begin), style_), style_);
  }
  const bool old_is_below = !old.is_alias() && old.form == NodeForm::kBlock && !old.has_properties;
  if (old_is_below) {
    // The comment behind the colon stays.
    if (below.empty()) edits_.Insert(colon + 1, " " + FlowText(wanted, Quotes::kIfNeeded));
    const size_t begin = lines_.Next(colon);
    edits_.Replace(begin, After(old, lines_.Column(key.begin)), std::move(below));
    return absl::OkStatus();
  }
  if (!lines_.IsLast(old.end)) return Refuse(old.end, "this line has more than one value");
  if (below.empty()) {
    if (old.form == NodeForm::kBlock) {
      edits_.Replace(colon + 1, old.end, " " + FlowText(wanted, Quotes::kIfNeeded));
    } else {
      ReplaceInline(old, FlowText(wanted, Quotes::kIfNeeded));
    }
    return absl::OkStatus();
  }
  edits_.Delete(colon + 1, old.end);
  edits_.Insert(std::max(lines_.Next(old.end), old.kept_end), std::move(below));
  return absl::OkStatus();
}

absl::Status NodeEdit::EmptyBlockSequence(const SourceNode& mapping, size_t pair) {
  const SourceNode& old = mapping.value(pair);
  HEADGATE_RETURN_IF_ERROR(CheckOwn(old));
  HEADGATE_RETURN_IF_ERROR(CheckAll(old));
  HEADGATE_ASSIGN_OR_RETURN(const size_t colon, Colon(mapping, pair));
  edits_.Insert(colon + 1, " []");
  return ChangeBlockSequence(
      old,
      {.removed = std::vector<bool>(old.children.size(), true),
       .added = std::vector<std::vector<std::string>>(old.children.size() + 1)},
      lines_.Next(colon));
}

absl::Status NodeEdit::ChangeBlockMapping(const SourceNode& old, const Plan& plan) {
  const size_t column = lines_.Column(old.key(0).begin);
  const size_t count = old.pair_count();
  size_t first_kept = 0;
  while (first_kept < count && plan.removed[first_kept]) ++first_kept;
  // If pairs behind a dash are removed, the first remaining pair moves up to the dash, unless
  // comments precede it.
  const bool behind_dash = first_kept > 0 && !lines_.IsFirst(old.key(0).begin);
  if (behind_dash && first_kept < count) {
    const size_t begin = old.key(0).begin;
    const size_t end = old.key(first_kept).begin;
    const size_t after = After(old.value(first_kept - 1), column);
    if (lines_.text().substr(after, end - after).find_first_not_of(" \r\n") ==
        std::string_view::npos) {
      edits_.Delete(begin, end);
    } else {
      const size_t dash = lines_.text().find_last_not_of(' ', begin - 1) + 1;
      edits_.Replace(dash, after, std::string(lines_.line_break()));
    }
  }
  size_t floor = lines_.Begin(old.key(0).begin);
  for (size_t i = 0; i < count; ++i) {
    const size_t after = After(old.value(i), column);
    if (plan.removed[i] && !(behind_dash && i < first_kept)) {
      if (!lines_.IsFirst(old.key(i).begin) || !lines_.IsLast(old.value(i).end))
        return Refuse(old.key(i).begin, "this line has more than one value");
      edits_.Delete(WithComments(old.key(i).begin, floor), after);
    }
    floor = after;
  }
  for (size_t i = 0; i <= count; ++i) {
    if (plan.added[i].empty()) continue;
    // New pairs are added behind the last remaining pair before them.
    size_t last = i;
    while (last > 0 && plan.removed[last - 1]) --last;
    if (last == 0 || !lines_.IsLast(old.value(last - 1).end))
      return Refuse(old.key(0).begin, "this line has more than one value");
    for (const std::string& text : plan.added[i])
      edits_.Insert(After(old.value(last - 1), column), text);
  }
  return absl::OkStatus();
}

absl::Status NodeEdit::ChangeBlockSequence(const SourceNode& old, const Plan& plan, size_t floor) {
  const size_t column = lines_.Column(old.open);
  for (size_t i = 0; i <= old.children.size(); ++i) {
    // New items stand behind the item before them.
    if (!plan.added[i].empty()) {
      if (i > 0 && !lines_.IsLast(old.children[i - 1]->end))
        return Refuse(old.children[i - 1]->end, "this line has more than one value");
      const size_t at = i > 0 ? After(*old.children[i - 1], column) : WithComments(old.open, floor);
      for (const std::string& text : plan.added[i]) edits_.Insert(at, text);
    }
    if (i == old.children.size()) break;
    const size_t after = After(*old.children[i], column);
    if (plan.removed[i]) {
      HEADGATE_ASSIGN_OR_RETURN(const size_t dash, DashOf(lines_, old, i));
      if (!lines_.IsFirst(dash) || !lines_.IsLast(old.children[i]->end))
        return Refuse(dash, "this line has more than one value");
      edits_.Delete(WithComments(dash, floor), after);
    }
    floor = after;
  }
  return absl::OkStatus();
}

absl::Status NodeEdit::ChangeFlow(const SourceNode& old, const Plan& plan) {
  std::vector<Entry> entries;
  if (old.kind == NodeKind::kMapping) {
    for (size_t i = 0; i < old.pair_count(); ++i)
      entries.push_back({.begin = old.key(i).begin, .end = old.value(i).end});
  } else {
    for (const SourceNode* item : old.children)
      entries.push_back({.begin = item->begin, .end = item->end});
  }
  std::optional<size_t> last_kept;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (!plan.removed[i]) last_kept = i;
  }
  const std::vector<std::string>& at_end = plan.added.back();
  if (!at_end.empty()) {
    if (!last_kept) return Refuse(old.begin, "no part of this list stays");
    AppendToFlow(entries, *last_kept, at_end);
  }
  for (size_t i = 0; i < entries.size();) {
    for (const std::string& text : plan.added[i]) {
      const size_t at = entries[i].begin;
      const bool own_line = lines_.IsFirst(at);
      const std::string gap =
          own_line ? style_.line_break + std::string(lines_.Column(at), ' ') : " ";
      edits_.Insert(at, text + "," + gap);
    }
    size_t end = i;
    while (end < entries.size() && plan.removed[end]) ++end;
    if (end > i) RemoveFlowRun(entries, i, end - 1, !at_end.empty());
    i = std::max(end, i + 1);
  }
  return absl::OkStatus();
}

size_t NodeEdit::AfterComma(const Entry& entry) const {
  const size_t next = lines_.Skip(entry.end);
  return next < lines_.text().size() && lines_.text()[next] == ',' ? next + 1 : entry.end;
}

bool NodeEdit::HasOwnLines(const Entry& entry) const {
  const size_t after = AfterComma(entry);
  return lines_.IsFirst(entry.begin) && lines_.IsLast(after) &&
         lines_.Begin(after) == lines_.Begin(entry.end);
}

// Removes the entries from `first` to `last`. Behind `last` is either nothing or an entry that
// remains. `extended`: entries are added at the end.
void NodeEdit::RemoveFlowRun(const std::vector<Entry>& entries, size_t first, size_t last,
                             bool extended) {
  const bool at_end = last + 1 == entries.size();
  bool own_lines = true;
  for (size_t i = first; i <= last; ++i) own_lines = own_lines && HasOwnLines(entries[i]);
  if (own_lines) {
    size_t floor =
        first == 0 ? lines_.Begin(entries[0].begin) : lines_.Next(entries[first - 1].end);
    for (size_t i = first; i <= last; ++i) {
      const size_t after = lines_.Next(AfterComma(entries[i]));
      edits_.Delete(WithComments(entries[i].begin, floor), after);
      floor = after;
    }
    // Also removes the comma behind the entry that is now the last one, unless the collection ended
    // with a comma before.
    if (at_end && first > 0 && !extended && AfterComma(entries[last]) == entries[last].end) {
      const size_t comma = AfterComma(entries[first - 1]) - 1;
      edits_.Delete(comma, comma + 1);
    }
  } else if (!at_end) {
    edits_.Delete(entries[first].begin, entries[last + 1].begin);
  } else if (first > 0) {
    edits_.Delete(entries[first - 1].end, entries[last].end);
  } else {
    edits_.Delete(entries[first].begin, AfterComma(entries[last]));
  }
}

void NodeEdit::AppendToFlow(const std::vector<Entry>& entries, size_t last_kept,
                            const std::vector<std::string>& texts) {
  const Entry& last = entries[last_kept];
  const size_t comma_end = AfterComma(last);
  const bool has_comma = comma_end > last.end;
  const bool ends_with_comma = AfterComma(entries.back()) > entries.back().end;
  std::string joined;
  bool removed_own_lines = true;
  for (size_t i = last_kept + 1; i < entries.size(); ++i)
    removed_own_lines = removed_own_lines && HasOwnLines(entries[i]);
  if (HasOwnLines(last) && removed_own_lines) {
    const std::string indent(lines_.Column(last.begin), ' ');
    for (size_t i = 0; i < texts.size(); ++i) {
      joined += indent + texts[i];
      if (i + 1 < texts.size() || ends_with_comma) joined += ',';
      joined += style_.line_break;
    }
    if (!has_comma) edits_.Insert(last.end, ",");
    edits_.Insert(lines_.Next(comma_end), std::move(joined));
    return;
  }
  for (const std::string& text : texts) joined += ", " + text;
  edits_.Insert(last.end, std::move(joined));
}

absl::StatusOr<size_t> NodeEdit::Colon(const SourceNode& mapping, size_t pair) const {
  const size_t at = lines_.text().find_first_not_of(" \t", mapping.key(pair).end);
  if (at != std::string_view::npos && lines_.text()[at] == ':') return at;
  return Refuse(mapping.key(pair).begin, "a key has no colon behind it");
}

}  // namespace headgate::rule::edit
