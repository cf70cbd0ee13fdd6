"""Finds the programs that scripts and tests start, without running them. Each function returns a
dictionary from a program to the number of a line that starts it. A program that is known only at run
time is "?" and its source."""

import ast
import re

# ---- Python: the first words of commands that reach subprocess, os.exec*, shutil.which or these wrappers

STARTS = re.compile(r"run|Popen|subprocess\.(run|Popen|check_\w+|call|getoutput|getstatusoutput)|os\.(exec|spawn|posix_spawn|popen|system)\w*|shutil\.which")
WRAPPERS = {"require": None, "done": 1, "self.run_in_root": 0, "output_of": 0, "cls._run": 0, "self._run": 0}  # None: each argument


def of_python(text):
    file, found = PythonFile(text), {}
    for call in ast.walk(file.tree):
        if not isinstance(call, ast.Call):
            continue
        function = ast.unparse(call.func)
        position = WRAPPERS.get(function, 0 if STARTS.fullmatch(function) else -1)
        commands = call.args if position is None else call.args[position : position + 1] if position >= 0 else []
        for command in commands + [keyword.value for keyword in call.keywords if keyword.arg == "prefix"]:
            for program in file.first_words(command):
                found.setdefault(program, call.lineno)
            if makes_for_make(ast.unparse(call)):
                found.setdefault("make", call.lineno)
    return found


def makes_for_make(command):
    """Whether CMake's default generator is used, whose build calls make."""
    return bool(re.search(r"\bcmake\b.* '?-B\b", command)) and not re.search(r"-G\b|--preset", command)


def name_of(node):
    return getattr(node, "id", None) or getattr(node, "attr", None)


class PythonFile:
    def __init__(self, text):
        self.tree = ast.parse(text)
        self.functions = {}  # by node: the functions around it, innermost first
        self.values = {}  # by name of a variable or an attribute: (its function or None, value)
        self.returns = {}  # by name of a function: its values
        self._visit(self.tree, ())

    def _visit(self, node, around):
        self.functions[node] = around
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self._bind(target, node.value, around)
        elif isinstance(node, ast.For):
            for element in getattr(node.iter, "elts", []):
                self._bind(node.target, element, around)
        elif isinstance(node, ast.Return) and node.value:
            self.returns.setdefault(around[0].name, []).append(node.value)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            around = (node, *around)
        for child in ast.iter_child_nodes(node):
            self._visit(child, around)

    def _bind(self, target, value, around):
        if isinstance(target, ast.Tuple):
            for one, part in zip(target.elts, getattr(value, "elts", [])):
                self._bind(one, part, around)
        elif name_of(target):
            scope = around[0] if around and isinstance(target, ast.Name) else None
            self.values.setdefault(name_of(target), []).append((scope, value))

    def first_words(self, node, seen=frozenset()):
        if node in seen:
            return set()

        def of(nodes):
            return set().union(*(self.first_words(one, seen | {node}) for one in nodes))

        if isinstance(node, ast.Constant):
            return {node.value} if isinstance(node.value, str) else set()
        if isinstance(node, (ast.List, ast.Tuple)):
            return of(node.elts[: 2 if node.elts and isinstance(node.elts[0], ast.Starred) else 1])
        if isinstance(node, (ast.BoolOp, ast.Dict)):
            return of(node.values)
        if isinstance(node, (ast.Starred, ast.Subscript)):
            return of([node.value])
        if isinstance(node, ast.IfExp):
            return of([node.body, node.orelse])
        if isinstance(node, ast.BinOp):
            return of([node.left])
        if isinstance(node, ast.ListComp):
            return of([node.elt])
        if isinstance(node, ast.Call) and name_of(node.func) in self.returns:
            return of(self.returns[name_of(node.func)])
        values = self._values_of(node) if isinstance(node, (ast.Name, ast.Attribute)) else []
        return of(values) if values else {f"?{ast.unparse(node)}"}

    def _values_of(self, node):
        values = self.values.get(name_of(node), [])
        scopes = [*self.functions[node], None] if isinstance(node, ast.Name) else [None]
        for scope in scopes:
            parameters = [one.arg for one in ast.walk(scope.args) if isinstance(one, ast.arg)] if scope else []
            local = [value for function, value in values if function is scope]
            if local or name_of(node) in parameters:
                return local
        return []


# ---- Shell: the words at the places of commands

TOKEN = re.compile(r"""\\.|'[^']*'|\$'[^']*'|\$?\(\(.*?\)\)|\$\(|\$\{(?:[^{}]|\{[^}]*\})*\}|\$.|"|;;|[()]|[;&|\n]+|[ \t]+|.""", re.DOTALL)
QUOTED_TOKEN = re.compile(r"""\\.|\$\(\(.*?\)\)|\$\(|\$\{(?:[^{}]|\{[^}]*\})*\}|"|.""", re.DOTALL)
# They are followed by a command.
BEFORE_COMMANDS = set("then do else elif if while until ! { time exec env nice command xargs nohup run".split())
WORD = re.compile(r"[A-Za-z][\w.+-]*")


def of_shell(text, not_programs):
    """`not_programs`: builtins and keywords. Functions of the script are none either."""
    text = re.sub(r"<<-?'?(\w+)'?(.*?\n).*?\n\1$", r"\2", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"(^|(?<=\s))#.*|\\\n", "", text, flags=re.MULTILINE)
    not_programs = not_programs | BEFORE_COMMANDS | set(re.findall(r"^\s*(\w+)\(\)", text, re.MULTILINE))
    found, line, word, words, stack = {}, 1, "", [], []
    on_line = []  # the commands since the last line or `;;`, which may be the pattern of a case

    def end_word():
        nonlocal word
        if word and not (words and words[-1] is None):
            words.append(word)
        word = ""

    def end_command():
        nonlocal words
        end_word()
        on_line.append(list(words))
        words = []

    def end_line():
        end_command()
        for command in on_line:
            rest = [one for one in command if not re.match(r"\w+\+?=", one)]
            while rest and rest[0] in BEFORE_COMMANDS:
                rest = [one for one in rest[1:] if not one.startswith("-")]
            if rest and WORD.fullmatch(rest[0]) and rest[0] not in not_programs:
                found.setdefault(rest[0], line)
            if makes_for_make(" ".join(command)):
                found.setdefault("make", line)
        on_line.clear()

    at = 0
    while at < len(text):
        quoted = bool(stack) and stack[-1] == '"'
        token = (QUOTED_TOKEN if quoted else TOKEN).match(text, at).group()
        at += len(token)
        if token == '"':
            stack.pop() if quoted else stack.append('"')
            word += "?"
        elif token == "$(" or (token == "(" and not quoted):
            stack.append((word, words))
            word, words = "", []
        elif quoted:
            pass
        elif token == ")" and stack:
            end_command()
            word, words = stack.pop()
            word += "?"
        elif token == ")":
            word, words = "", []
            on_line.clear()
        elif "\n" in token or token == ";;":
            end_line()
        elif token[0] in ";&|":
            end_command()
        elif token.isspace():
            end_word()
        else:
            word += token if WORD.match(token) or len(token) == 1 else "?"
        line += token.count("\n")
    end_line()
    return found


# ---- C++: the servers of tests/server_process.h, and the commands of std::system

CPP_STARTS = re.compile(r"posix_spawn|std::system\(|popen\(|\bexec[lv]p?e?\(|\bfork\(\)")


def of_cpp(text):
    pattern = r"""(?:Start\(|words|arguments_ = )\{"([\w.-]+)"|\brun\("([\w.-]+) |: "([\w.-]+)";"""
    return {next(filter(None, match.groups())): text.count("\n", 0, match.start()) + 1 for match in re.finditer(pattern, text)}
