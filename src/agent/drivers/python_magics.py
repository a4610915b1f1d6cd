"""Shell lines (!cmd) and magic lines (%cd, %%bash) of cells. The driver loads this module on first use.

They are translated only where the compiler reports a syntax error in such a line. So code in which a string or an
expression happens to continue with ! or % keeps its meaning.
"""
import os
import re
import subprocess
import sys

driver = sys.modules["dockbridge_driver"]

k_call = '__import__("dockbridge_magics").'
k_line = re.compile(r"(?P<indent>\s*)(?:(?P<target>[^\s=!%#][^=!%#]*?)\s*=\s*)?(?P<sign>[!%])\s*(?P<text>.*)")
k_expression = re.compile(r"(?<![$\w{])\{([^{}]+)\}")


# Translation

def parse_translated(source, name, error):
    """Parses a cell that is not plain Python. Returns the tree and the translated source.

    Raises the syntax error if no shell or magic line explains it.
    """
    lines = source.split("\n")
    if source.lstrip().startswith("%%"):
        lines = [translate_cell_magic(source, name)]
    elif not translate_line(lines, error, name):
        raise error from None
    while True:
        translated = "\n".join(lines)
        try:
            return driver.parse_cell(translated, name), translated
        except SyntaxError as next_error:
            error = next_error
        if not translate_line(lines, error, name):
            raise error from None


def translate_line(lines, error, name):
    """Translates the line with the syntax error. Returns whether it was a shell or magic line."""
    index = (error.lineno or 0) - 1
    match = k_line.fullmatch(lines[index]) if 0 <= index < len(lines) else None
    if match is None:
        return False
    text = match["text"]
    while text.endswith("\\") and index + 1 < len(lines):
        index += 1
        text = text[:-1] + lines[index].strip()
        lines[index] = ""
    index = error.lineno - 1
    target = match["target"]
    if match["sign"] == "!":
        call = "%s(%r)" % ("capture" if target else "shell", text)
    else:
        word, _, arguments = text.partition(" ")
        if not word.isidentifier() or target and word not in line_magics:
            return False
        check_known(word, line_magics, "%", name, error.lineno, lines[index])
        call = "line_magics[%r](%r)" % (word, arguments.strip())
    lines[index] = match["indent"] + (target + " = " if target else "") + k_call + call
    return True


def translate_cell_magic(source, name):
    head, _, body = source.lstrip().partition("\n")
    word, _, arguments = head[2:].strip().partition(" ")
    line = source[:len(source) - len(source.lstrip())].count("\n") + 1
    check_known(word, cell_magics, "%%", name, line, head)
    return "%scell_magics[%r](%r, %r, %d)" % (k_call, word, arguments.strip(), body, line)


def check_known(word, known, sign, name, line, text):
    if word not in known:
        message = "Unknown magic: %s%s. Known: %s" % (sign, word, ", ".join([sign + each for each in known]))
        raise SyntaxError(message, (name, line, text.find(sign) + 1, text)) from None


def expand(text):
    """Replaces {expression} by its value. What cannot be evaluated is left for the shell, as {a,b} and {print $1}."""
    def replace(match):
        try:
            value = eval(match[1], driver.namespace)
        except Exception:
            return match[0]
        return match[0] if isinstance(value, tuple) else str(value)
    return k_expression.sub(replace, text)


# Shell

def shell(command):
    run_program([find_shell(), "-c", expand(command)])


def capture(command):
    """Returns the lines that a command writes to stdout."""
    driver.flush_streams()
    process = subprocess.Popen([find_shell(), "-c", expand(command)], stdout=subprocess.PIPE)
    with process:
        output = process.communicate()[0]
    report_status(process.returncode)
    return output.decode("utf-8", "backslashreplace").splitlines()


def find_shell():
    return "/bin/bash" if os.path.exists("/bin/bash") else "/bin/sh"


def run_program(words):
    driver.flush_streams()
    report_status(subprocess.call(words))


def report_status(status):
    if status:
        text = "[exit status %d]" % status if status > 0 else "[killed by signal %d]" % -status
        print(text, file=sys.stderr, flush=True)


# Line magics

def pip(arguments):
    import importlib
    import shlex
    run_program([sys.executable, "-m", "pip", *shlex.split(expand(arguments))])
    importlib.invalidate_caches()


def cd(arguments):
    words = expand(arguments).strip("'\"")
    try:
        before = os.getcwd()
    except FileNotFoundError:
        before = None
    if words == "-":
        if cd.previous is None:
            raise ValueError("%cd -: no previous directory")
        words = cd.previous
    os.chdir(os.path.expanduser(words or "~"))
    cd.previous = before
    print(os.getcwd())


cd.previous = None


def env(arguments):
    name, separator, value = arguments.partition("=" if "=" in arguments else " ")
    name = name.strip()
    if separator:
        os.environ[name] = expand(value.strip())
        print("env: %s=%s" % (name, os.environ[name]))
    elif name:
        return os.environ[name]
    else:
        return dict(os.environ)


def time_line(arguments):
    return time_source(arguments, 0)


def time_source(source, lines_before):
    """Runs code in the namespace of the cell, prints its times and returns its value."""
    import time
    codes = driver.compile_cell("\n" * lines_before + source, driver.file_name(driver.session.cell))
    wall, used = time.perf_counter(), os.times()
    try:
        return driver.evaluate(codes)
    finally:
        wall, after = time.perf_counter() - wall, os.times()
        print("CPU times: user %s, sys: %s" % (show_seconds(after.user - used.user),
                                               show_seconds(after.system - used.system)))
        print("Wall time: %s" % show_seconds(wall))


def timeit_line(arguments):
    time_repeatedly(arguments, "pass")


def time_repeatedly(arguments, setup):
    import timeit
    options = re.match(r"((?:-[nr] *\d+ +)*)(.*)", arguments, re.DOTALL)
    limits = {letter: int(number) for letter, number in re.findall(r"-([nr]) *(\d+)", options[1])}
    timer = timeit.Timer(options[2], setup, globals=driver.namespace)
    loops = limits.get("n") or timer.autorange()[0]
    seconds = [total / loops for total in timer.repeat(limits.get("r") or 7, loops)]
    print("%s per loop (best %s, worst %s of %d runs, %d loops each)" % (
        show_seconds(sum(seconds) / len(seconds)), show_seconds(min(seconds)), show_seconds(max(seconds)),
        len(seconds), loops))


def show_seconds(seconds):
    for unit, factor in (("s", 1), ("ms", 1e3), ("us", 1e6)):
        if seconds * factor >= 1:
            return "%.3g %s" % (seconds * factor, unit)
    return "%.3g ns" % (seconds * 1e9)


def who(arguments):
    names = [name for name, value in driver.namespace.items()
             if not name.startswith("_") and type(value) is not type(sys) and name not in driver.session.hidden_names]
    print("  ".join(names) or "No variables are defined.")


def ignore(arguments):
    """For magics without a meaning here, such as %matplotlib inline."""


# Cell magics. The last argument is the number of lines before the body.

def run_shell_cell(program):
    return lambda arguments, body, lines_before: run_program([program, "-c", body])


def time_cell(arguments, body, lines_before):
    return time_source(body, lines_before)


def timeit_cell(arguments, body, lines_before):
    time_repeatedly((arguments.split(";")[0] + " " if arguments.startswith("-") else "") + body, "pass")


def write_cell(arguments, body, lines_before):
    append = arguments.startswith("-a ")
    name = os.path.expanduser(expand(arguments[3:] if append else arguments).strip(" '\""))
    action = "Appending to" if append else "Overwriting" if os.path.exists(name) else "Writing"
    with open(name, "a" if append else "w", encoding="utf-8") as file:
        file.write(body)
    print("%s %s" % (action, name))


line_magics = {"pip": pip, "cd": cd, "env": env, "time": time_line, "timeit": timeit_line, "who": who,
               "matplotlib": ignore}
cell_magics = {"bash": run_shell_cell("bash"), "sh": run_shell_cell("sh"), "time": time_cell,
               "timeit": timeit_cell, "writefile": write_cell}
