"""Writes what CPython makes of many expressions, for TestCPython. Run it in the directory above: python3 testdata/generate.py"""

import collections, json, math, random, re, sys, warnings

warnings.simplefilter("ignore")
rng = random.Random(20260101)


def canonical(v):
    if v is None or isinstance(v, (bool, int)):
        return repr(v)
    if isinstance(v, float):
        if math.isnan(v) or math.isinf(v):
            return repr(v)
        s = "%.17g" % v
        m, e, x = s.partition("e")
        # Go writes at least two digits of an exponent, as C does.
        return "float " + s
    if isinstance(v, str):
        return json.dumps(v, ensure_ascii=False)
    if isinstance(v, (list, range)):
        return "[" + ", ".join(map(canonical, v)) + "]"
    if isinstance(v, tuple):
        return "(" + ", ".join(map(canonical, v)) + ")"
    if isinstance(v, (set, frozenset)):
        return "set " + ", ".join(sorted(map(canonical, v)))
    if isinstance(v, dict):
        return "{" + ", ".join(canonical(k) + ": " + canonical(x) for k, x in v.items()) + "}"
    if isinstance(v, (zip, map, filter, enumerate, type({}.keys()), type({}.values()), type({}.items()), reversed, type(iter([])), type(reversed([])))):
        return canonical(list(v))
    raise TypeError("no canonical form: %r" % (v,))


names = {"json": json, "math": math, "re": re, "collections": collections}


def outcome(expr):
    try:
        v = eval(expr, dict(names))
    except re.error:
        return "!PatternError"
    except Exception as e:
        return "!" + type(e).__name__
    return "!ValueError" if isinstance(v, complex) else canonical(v)


def write(name, exprs, most=4000):
    rows, seen = [], set()
    exprs = list(exprs)
    if len(exprs) > most:
        keep = sorted(rng.sample(range(len(exprs)), most))
        exprs = [exprs[i] for i in keep]
    for e in exprs:
        if e in seen:
            continue
        seen.add(e)
        rows.append([e, outcome(e)])
    with open("testdata/" + name + ".json", "w") as f:
        f.write("[\n" + ",\n".join(json.dumps(r, ensure_ascii=False) for r in rows) + "\n]\n")
    print(name, len(rows))


def lit(v):
    """A literal that both languages read alike."""
    if isinstance(v, str):
        return json.dumps(v, ensure_ascii=False).replace("\u007f", "\\u007f")
    if isinstance(v, float):
        if v != v or v in (math.inf, -math.inf):
            return 'float("%r")' % v
        return repr(v)
    if isinstance(v, list):
        return "[" + ", ".join(map(lit, v)) + "]"
    if isinstance(v, tuple):
        return "(" + ", ".join(map(lit, v)) + ("," if len(v) == 1 else "") + ")"
    if isinstance(v, dict):
        return "{" + ", ".join(lit(k) + ": " + lit(x) for k, x in v.items()) + "}"
    return repr(v)


TEXTS = ["", "a", "abc", "Hello, World", "  two  words ", "ab\tc\n", "Þór", "Μαρία Κ.", "海燕", "Nordlys 🚢", "straße", "ΑΣ ΟΔΟΣ",
         "ǆungla ǅ", "ﬁne", "İi", "x=1;y=2;;z", "aXbXc", "one\r\ntwo\rthree\n", "don't STOP", "123", "٣٤", "½", "²", "-42", "+7", "\u00a0nb\u2003",
         "a_b-c.d", "CamelCaseText", "aaaa", "na\u0301ive", "éÉ", "1a2b", "\u2028line\u0085sep", "ALLUPPER", "Title Case", "tab\tin", "_id9", "9x"]


def strings():
    for s in TEXTS:
        t = lit(s)
        for m in ("upper lower title capitalize swapcase casefold isalnum isalpha isascii isdecimal isdigit isidentifier islower isnumeric "
                  "isprintable isspace istitle isupper strip lstrip rstrip split rsplit splitlines").split():
            yield "%s.%s()" % (t, m)
        yield "len(%s)" % t
        yield "list(%s)" % t
        yield "%s.splitlines(True)" % t
        yield "[ord(c) for c in %s]" % t
        yield "%s.expandtabs(4)" % t
        for sub in ["", "a", "b", " ", "o", "Κ", "ί", "燕", "🚢", "X", ";", "xyz", "aa", "\n"]:
            u = lit(sub)
            for m in "find rfind index rindex count startswith endswith".split():
                yield "%s.%s(%s)" % (t, m, u)
            yield "%s.%s(%s, %d)" % (t, rng.choice(["find", "rfind", "count", "startswith", "endswith"]), u, rng.randint(-12, 12))
            yield "%s.%s(%s, %d, %d)" % (t, rng.choice(["find", "rfind", "index", "count", "startswith", "endswith"]), u, rng.randint(-6, 8), rng.randint(-6, 12))
            for m in "split rsplit partition rpartition removeprefix removesuffix strip lstrip rstrip".split():
                yield "%s.%s(%s)" % (t, m, u)
            for m in ("split", "rsplit"):
                yield "%s.%s(%s, %d)" % (t, m, u, rng.randint(-1, 3))
                yield "%s.%s(None, %d)" % (t, m, rng.randint(-1, 3))
            yield "%s.replace(%s, \"<>\")" % (t, u)
            yield "%s.replace(%s, \"é\", %d)" % (t, u, rng.randint(-1, 3))
            yield "%s in %s" % (u, t)
        for w in (0, 3, 5, 9, 12, 20):
            for m in "center ljust rjust zfill".split():
                yield "%s.%s(%d)" % (t, m, w)
                if m != "zfill":
                    yield "%s.%s(%d, \"é\")" % (t, m, w)
        yield "%s * 3" % t
        yield "repr(%s) != \"\"" % t
    for xs in (["a"], [], ["a", "b", "ç"], ["", ""]):
        for sep in ("", ", ", "é"):
            yield "%s.join(%s)" % (lit(sep), lit(xs))
    yield '", ".join([1, 2])'
    yield '"abc".startswith(("x", "a"))'
    yield '"abc".endswith(("x", "bc"))'
    yield '"abc".startswith(1)'
    yield '"abc".translate(str.maketrans("ab", "xé", "c"))'
    yield '"abc".translate(str.maketrans({"a": "zz", "b": None, 99: 100}))'
    yield '"abc".split("")'
    yield '"a" < "b"'
    yield '"a" + 1'
    yield '1 + "a"'
    yield '"%s" + "é"'
    yield '"abc".center(8, "ab")'
    yield 'str.upper("abc")'
    yield 'sorted(["b", "A"], key=str.lower)'


def slices():
    for s in ["", "a", "abcdef", "Μαρία Κ.", "🚢x海"]:
        for i in range(-9, 9):
            yield "%s[%d]" % (lit(s), i)
    values = ["None", "0", "1", "2", "5", "7", "100", "-1", "-2", "-5", "-7", "-100", str(1 << 62), str(-(1 << 70)), str(1 << 70)]
    for s in ["abcdef", "Μαρία", [1, 2, 3, 4, 5], (1, 2, 3), [], "", range(0, 20, 3)]:
        t = lit(s)
        for _ in range(120):
            a, b, c = (rng.choice(values) for _ in range(3))
            yield "%s[%s:%s:%s]" % (t, a, b, c)
        for a in values:
            yield "%s[%s:]" % (t, a)
            yield "%s[:%s]" % (t, a)
    yield "[1, 2][0.5]"
    yield '[1, 2]["a"]'
    yield '{"a": 1}["b"]'
    yield '"abc"[1:"x"]'
    yield "None[0]"
    yield "(1, 2)[5]"


FLOATS = [0.0, -0.0, 1.0, -1.5, 0.5, 2.5, 3.5, 0.1, 1 / 3, 2 / 3, 1e16, 1e15, 9999999999999998.0, 123456789.0, 1e21, 1e22, 1e-4, 1e-5, 0.00012345, 1234.5678,
          1e100, 1.7976931348623157e308, 5e-324, 2.675, 1.005, 0.045, 100.0, 999999.5, 1e6, 1e5, 99999.95, math.pi, -math.e, 12345678.9, 0.000001,
          math.inf, -math.inf, math.nan, 1e23, 4.35, 0.3, 1.1, 2.2250738585072014e-308]
INTS = [0, 1, -1, 5, 42, -42, 255, 1000, 999, -1000, 1234567, -1234567, 2 ** 31, 2 ** 63, -2 ** 63, 10 ** 20, -10 ** 20, 2 ** 100, True, False]


def specs():
    fills = ["", "", "", "<", ">", "^", "=", "*<", "*>", "*^", "0=", "é^", "x="]
    signs = ["", "", "", "+", "-", " "]
    widths = ["", "", "1", "5", "8", "12", "20"]
    groups = ["", "", "", ",", "_"]
    precisions = ["", "", ".0", ".1", ".2", ".3", ".6", ".10", ".17"]
    types = ["", "", "d", "f", "e", "g", "s", "x", "X", "o", "b", "c", "n", "E", "F", "G", "%", "q"]
    while True:
        yield (rng.choice(fills) + rng.choice(signs) + rng.choice(["", "", "", "#"]) + rng.choice(["", "", "0"]) + rng.choice(widths) + rng.choice(groups)
               + rng.choice(precisions) + rng.choice(types))


def formats():
    spec = specs()
    for f in FLOATS:
        for s in [".2f", ".0f", ",.2f", ".1%", "g", "e", ".3g", "", "10.3f", "+.1f", "010.2f", "n", ".3", ".1", "#.3g", "_.2f", "G", "%", "020,.2f", ".15g", ".17g", "<8", "^12.3e", "z.1f"]:
            yield "format(%s, %s)" % (lit(f), lit(s))
        for _ in range(30):
            yield "format(%s, %s)" % (lit(f), lit(next(spec)))
        for s in ["%f", "%.2f", "%10.3f", "%-10.1f|", "%+.1e", "%g", "%010.2f", "%.0f", "%5.1f%%", "%s", "%r", "%d", "%i", "%#.3g", "% .2f", "%G", "%E"]:
            yield "%s %% %s" % (lit(s), lit(f))
        yield "str(%s)" % lit(f)
        yield "repr(%s)" % lit(f)
    for i in INTS:
        for s in ["d", "05d", ",", "_", "x", "#x", "X", "b", "#b", "o", "+d", " d", ">8", "<8", "^8", "08,", "012_b", "c", "e", ".2f", "%", "n", "=+8d", "*^10", "#010x", "020,", "s", ".2d", "_x"]:
            yield "format(%s, %s)" % (lit(i), lit(s))
        for _ in range(30):
            yield "format(%s, %s)" % (lit(i), lit(next(spec)))
        for s in ["%d", "%5d", "%-5d|", "%05d", "%+d", "% d", "%x", "%#x", "%X", "%o", "%#o", "%.5d", "%8.5d", "%s", "%r", "%f", "%e", "%c", "%i", "%u", "%5s", "%-6s|", "%#X", "%+.3d", "%08.3d"]:
            yield "%s %% %s" % (lit(s), lit(i))
        yield "str(%s)" % lit(i)
        yield '"{:>{w}}|{!r:5}".format(%s, %s, w=9)' % (lit(i), lit(i))
    for s in ["", "a", "Þór", "海燕🚢", "hello"]:
        for p in ["", "5", "<5", ">5", "^5", "*^7", ".2", "6.2", "^6.3", "s", "10s", "05", "=5", "d", "+", ",", ".0", "é>4", "^05"]:
            yield "format(%s, %s)" % (lit(s), lit(p))
        for _ in range(10):
            yield "format(%s, %s)" % (lit(s), lit(next(spec)))
        for p in ["%s", "%5s", "%-5s|", "%.2s", "%6.2s|", "%c", "%d", "%f", "%%", "%x"]:
            yield "%s %% %s" % (lit(p), lit(s))
    yield from ['"%s %s" % (1, 2)', '"%s" % (1,)', '"%s %s" % (1,)', '"%s" % (1, 2)', '"%s" % [1, 2]', '"%s" % None', '"%d" % None', '"%d" % "1"', '"%d" % 1.9',
                '"%(a)s-%(b)05.1f" % {"a": 1, "b": 2.25}', '"%(x)s" % {"a": 1}', '"%(a)s" % 1', '"%*d|%-*d" % (5, 1, 4, 2)', '"%.*f" % (2, 1.239)', '"%" % 1', '"%q" % 1',
                '"100%" % ()', '"100%%" % ()', '"abc" % ()', '"abc" % 1', '"abc" % {}', '"abc" % {"a": 1}', '"%s" % {}', '"%s %%" % 1', '"%(a)%" % {"a": 1}', '"%c" % 9731', '"%c" % "ab"',
                '"%x" % 1.5', '"%5%" % ()', '"%ld" % 3', '"%(a(b))s" % {"a(b)": 1}', '"%s" % True', '"%d" % True']
    yield from ['"{} {}".format(1, 2)', '"{1} {0}".format(1, 2)', '"{a} {b}".format(a=1, b=2)', '"{} {0}".format(1)', '"{0} {}".format(1)', '"{".format()', '"}".format()',
                '"{{}}".format()', '"{{{}}}".format(1)', '"{0[1]}".format([1, 2])', '"{0[a]}".format({"a": 1})', '"{a[b][0]}".format(a={"b": [7]})', '"{0[x]}".format({"a": 1})',
                '"{:{}}".format(3, 5)', '"{:{}.{}f}".format(3.14159, 8, 2)', '"{0:{1}}".format(3, 5)', '"{!s:>5}".format(None)', '"{!x}".format(1)', '"{:d}".format("a")', '"{5}".format(1)',
                '"{:>5}".format(None)', '"{}".format(None)', '"{:,}".format(1234567.891)', '"{x}".format(y=1)', '"{0!a}".format(1)', '"{a}".format_map({"a": 3})', '"{:%}".format(0.5)', '"{0".format(1)',
                '"{!}".format(1)', '"{:5}|".format(True)', '"{}".format(True)', '"{:{w}}".format(1, w=4)', '"{0:{0}}".format(5)', '"{a:{b:{c}}}".format(a=1, b=2, c=3)', '"{0[]}".format([1])',
                '"{ 0 }".format(1)', '"{0[-1]}".format([1])', '"{:c}".format(65)', '"{: }".format(3)', '"{:=^30}".format("title")', '"{0[0]}{0[1]}".format((1, 2))', '"{:}".format(1)',
                '"{0:>{1}{2}}".format("a", 5, "")', '"{:\\u00e9>4}".format("a")']


def numbers():
    for x in FLOATS:
        yield "round(%s)" % lit(x)
        for n in (-3, -2, -1, 0, 1, 2, 3, 5, 10, 20, 400, -400):
            yield "round(%s, %d)" % (lit(x), n)
        for f in ("int", "abs", "bool", "float", "math.floor", "math.ceil", "math.trunc", "math.sqrt", "math.isnan", "math.isinf", "math.isfinite", "math.fabs", "math.frexp", "math.modf", "math.degrees"):
            yield "%s(%s)" % (f, lit(x))
        yield "(%s).is_integer()" % lit(x)
    for i in INTS:
        for n in (-25, -3, -2, -1, 0, 1, 2):
            yield "round(%s, %d)" % (lit(i), n)
        for f in ("abs", "bin", "hex", "oct", "float", "bool", "int", "str", "math.sqrt", "math.factorial", "math.isqrt", "math.log2"):
            if f == "math.factorial" and abs(int(i)) > 3000:
                continue
            yield "%s(%s)" % (f, lit(i))
        yield "(%s).bit_length()" % lit(i)
    for n in (5, 15, 25, 35, -5, -15, -25, 150, 250, 12345, -12345, 10 ** 20 + 5 * 10 ** 4):
        for d in (-1, -2, -5):
            yield "round(%d, %d)" % (n, d)
    operands = [0, 1, -1, 3, -3, 7, 2 ** 64, -2 ** 64 + 1, 10 ** 30, 0.0, 0.5, -0.5, 2.5, -7.25, 1e300, math.inf, math.nan, True, 0.1]
    for a in operands:
        for b in operands:
            for op in ("+", "-", "*", "/", "//", "%", "==", "<", ">=", "!="):
                yield "%s %s %s" % (lit(a), op, lit(b))
            yield "divmod(%s, %s)" % (lit(a), lit(b))
            if not (isinstance(a, int) and isinstance(b, int) and abs(a) > 1 and b > 300) and not (isinstance(a, float) and a < 0 and b == b and abs(b) != math.inf and b != int(b)):
                yield "pow(%s, %s)" % (lit(a), lit(b))
            if all(isinstance(v, int) for v in (a, b)):
                for op in ("&", "|", "^"):
                    yield "%s %s %s" % (lit(a), op, lit(b))
                if -5 < b < 300:
                    yield "%s << %s" % (lit(a), lit(b))
                yield "%s >> %s" % (lit(a), lit(b))
                yield "math.gcd(%s, %s)" % (lit(a), lit(b))
                yield "math.lcm(%s, %s)" % (lit(a), lit(b))
    for s in ["1", " 12 ", "-5", "+5", "1_000", "1__0", "_1", "1_", "", " ", "0x1f", "0b101", "0o17", "1.5", "abc", "ff", "z", "٣", "0", "00", "007", "- 1", "1e5", "0x", "1 2", "\n3\t", "--1", "0_7", "0x_f"]:
        yield "int(%s)" % lit(s)
        for b in (0, 2, 8, 10, 16, 36):
            yield "int(%s, %d)" % (lit(s), b)
    for s in ["1", "1.5", " -2.5e3 ", "inf", "-Infinity", "nan", "1_0.5", "1e", ".5", "5.", ".", "", "0x1p3", "1__0", "1e400", "-1e-400", "abc", "1,5", "infinit", "+nan", "1e5_0", "٣.٥", "1 2"]:
        yield "float(%s)" % lit(s)
    yield from ["int(None)", "float(None)", "int([])", "float([])", "int(1, 2)", 'int("1", 99)', 'int("1", 1)', "round(None)", "abs(None)", 'abs("a")', "round(2.5, None)", "int()", "float()", "bool()", "str()",
                "pow(2, 10, 1000)", "pow(2, -1, 7)", "pow(2, -1, 4)", "pow(2, 10, -7)", "pow(2, 5, 0)", "pow(2, -2)", "pow(0, -1)", "2 ** 3" and "pow(2, 3)", "pow(0.0, -1.0)", "pow(10, 400) * 1.0", "pow(10, 400) / pow(10, 399)",
                "pow(10, 400) / 3", "float(pow(10, 400))", "1 << -1", "1 >> -1", "hex(1.5)", "bin(True)", "chr(0x1f6a2)", "ord(\"é\")", 'ord("ab")', "chr(-1)", "chr(0x110000)", "divmod(1, 0)", "divmod(7.5, 2)",
                "True + True", "True & False", "True | 1", "True == 1", "1.0 == 1", "0.1 + 0.2 == 0.3", "None == 0", "None < 1", '"a" < 1', "[1, 2] < [1, 3]", "[1] < [1, 0]", "(1, 2) == (1, 2)", "[1] == (1,)", "[1] + (1,)",
                "(1, 2) < (1, 2.5)", "{1: 2} == {1: 2.0}", "{1: 2} < {1: 3}", "set([1]) < set([1, 2])", "set([1, 2]) == set([2, 1])", "set([1]) <= set([2])", "[None] < [1]", "[1, None] < [1, None]", "[float(\"nan\")] == [1]",
                "sum([])", "sum([1, 2.5, True])", "sum([0.1] * 10)", 'sum(["a"])', "sum([[1], [2]], [])", "sum([1, None])", "sum([1, 2], 10)", "sum([1, 2], start=5)", "sum(range(1000))", 'sum([], "")',
                "min([])", "max([], default=None)", "min(3, 1, 2)", "max([1, 5, 3], key=lambda x: -x)", "max(\"abc\")", "min([1, \"a\"])", "max(1)", "min([1], [0])", "max(1, 2.0, 2)", "max(True, 0)", "min((), default=3)",
                "sorted([3, 1, 2])", "sorted([3, 1, 2], reverse=True)", "sorted([\"b\", \"a\", \"C\"])", "sorted([(1, \"b\"), (0, \"c\")])", "sorted([1, None])", "sorted([1, 2.5, True])", "sorted({\"b\": 1, \"a\": 2})",
                "sorted([\"bb\", \"a\", \"cc\", \"d\"], key=len)", "sorted([\"bb\", \"a\", \"cc\", \"d\"], key=len, reverse=True)", "sorted(\"hello\")", "sorted([[2], [1, 5]])", "sorted([1], lambda x: x)", "sorted(None)",
                "all([])", "any([])", "all([1, 0])", "any([0, 2])", "all(\"a\")", "any(None)", "list(range(5))", "range(3)[1]", "len(range(0, 10, 3))", "5 in range(10)", "5.0 in range(10)", '"a" in range(3)', "list(range(5, 0, -2))",
                "range(1, 2, 0)", "range(1.5)", "list(enumerate(\"ab\", start=1))", "list(enumerate([5, 6]))", "list(zip([1, 2], \"ab\"))", "list(zip())", "list(zip([1], [2, 3], strict=True))", "list(zip([1, 2], [2, 3], strict=True))",
                "list(map(str, [1, 2]))", "list(map(lambda a, b: a + b, [1, 2], [3, 4, 5]))", "list(filter(None, [0, 1, \"\", \"a\"]))", "list(filter(lambda x: x > 1, [1, 2, 3]))", "list(reversed([1, 2]))", "list(reversed(\"abc\"))",
                "list(reversed(range(3)))", "list(5)", "list(None)", "tuple(\"ab\")", "tuple([1])", "set(\"aab\")", "set([[1]])", "dict([(1, 2), (3, 4)])", "dict(a=1)", "dict({\"a\": 1}, b=2)", "dict([1])", "dict([(1, 2, 3)])",
                "next(iter([1, 2]))", "next(iter([]), 5)", "next(iter([]))", "callable(len)", "callable(1)", "isinstance(True, int)", "isinstance(1, (str, int))", "isinstance(1.0, int)", "isinstance(None, type(None))",
                "isinstance([], list)", "isinstance((), tuple)", "isinstance({}, dict)", "isinstance(set(), set)", "isinstance(\"a\", str)", "isinstance(1, \"int\")", "type(1) == int", "type(\"a\").__name__", "type(None).__name__",
                "type([]) == list", "type(1) == float", "str(type({}))", "str.__name__", "len(5)", "len(None)", "hash([])", "hash(\"a\") == hash(\"a\")", "ascii(\"é\") != \"\"", "repr(None)", "str([1, 2.0, None, True])",
                "str((1,))", "str({1: 2})", "str({})", "str(())", "str(set())", "str({3})" if False else "str([[], {}, ()])", "[1, 2] * 2", "2 * [1]", "[1] * -1", "(1,) * 2", "\"ab\" * 0", "[1] * 1.5", "[1] + [2]", "[1] - [1]",
                "not []", "1 in [1, 2]", "[1] in [[1]]", "1 in {1: 2}", "[] in {1: 2}", "1 in \"a\"", "1 in None", "None in [None]", "True in [1]", "1 in (1,)", "2 in set([1])", "1.0 in {1: 2}"]


def collections_():
    xs = [[], [3, 1, 2], [1, 1, 2], ["a", "b"], [None, 1]]
    for x in xs:
        t = lit(x)
        for v in (1, 2, "a", None, 1.0, True):
            for m in ("index", "count", "remove"):
                yield "[x.%s(%s) for x in [%s]]" % (m, lit(v), t)
            yield "[(x.append(%s), x) for x in [%s]][0][1]" % (lit(v), t)
        for i in (-5, -1, 0, 1, 2, 5):
            yield "[(x.pop(%d), x) for x in [%s]]" % (i, t)
            yield "[(x.insert(%d, 9), x) for x in [%s]]" % (i, t)
            yield "%s.index(1, %d)" % (t, i)
        for m in ("pop", "sort", "reverse", "clear", "copy"):
            yield "[(x.%s(), x) for x in [%s]]" % (m, t)
        yield "[(x.sort(reverse=True), x) for x in [%s]]" % t
        yield "[(x.sort(key=lambda v: str(v)), x) for x in [%s]]" % t
        yield "[(x.extend(\"ab\"), x) for x in [%s]]" % t
        yield "[(x.extend(x), x) for x in [%s]]" % t
        yield "[(x.extend(5), x) for x in [%s]]" % t
    for d in ({}, {"a": 1, "b": 2}, {1: "x", None: "y"}):
        t = lit(d)
        for k in ("a", 1, None, "zz", [1]):
            u = lit(k)
            yield "%s.get(%s)" % (t, u)
            yield "%s.get(%s, 7)" % (t, u)
            yield "[(d.pop(%s), d) for d in [%s]]" % (u, t)
            yield "[(d.pop(%s, 5), d) for d in [%s]]" % (u, t)
            yield "[(d.setdefault(%s, []), d) for d in [%s]]" % (u, t)
            yield "%s[%s]" % (t, u)
        for m in ("keys", "values", "items", "copy"):
            yield "%s.%s()" % (t, m)
        yield "[(d.popitem(), d) for d in [%s]]" % t
        yield "[(d.clear(), d) for d in [%s]]" % t
        yield "[(d.update({\"c\": 3}), d) for d in [%s]]" % t
        yield "[(d.update([(\"c\", 3)], e=4), d) for d in [%s]]" % t
        yield "[(d.update(d), d) for d in [%s]]" % t
        yield "[(d.update(5), d) for d in [%s]]" % t
        yield "%s | {\"a\": 9}" % t
        yield "list(%s)" % t
        yield "len(%s)" % t
    yield 'dict.fromkeys(["a", "b"], 0)'
    yield 'dict.fromkeys("ab")'
    sets = ["set()", "set([1, 2, 3])", "set([2, 3, 4])", "set([\"a\", 1])"]
    for a in sets:
        for b in sets + ["[1, 2]", "\"a\""]:
            for m in "union intersection difference symmetric_difference issubset issuperset isdisjoint".split():
                yield "%s.%s(%s)" % (a, m, b)
            for m in "update intersection_update difference_update symmetric_difference_update".split():
                yield "[(s.%s(%s), s) for s in [%s]]" % (m, b, a)
            if b in sets:
                for op in ("|", "&", "-", "^", "<", "<=", ">", ">=", "==", "!="):
                    yield "%s %s %s" % (a, op, b)
        for v in (1, 9, "a", [1]):
            for m in ("add", "discard", "remove"):
                yield "[(s.%s(%s), s) for s in [%s]]" % (m, lit(v), a)
    yield "set([1]).union([2], [3])"
    yield "set([1, 2]).intersection()"
    yield "set().pop()"
    yield "set([5]).pop()"
    yield "set([1]) | [2]"
    yield "(1, 2, 1).count(1)"
    yield "(1, 2, 1).index(2)"
    yield "(1, 2).index(5)"
    for s in ("\"hello\"", "[3, 1, 3, 3, 1]", "{\"a\": 3, \"b\": 1}", "\"\""):
        yield "collections.Counter(%s).most_common()" % s
        yield "collections.Counter(%s).most_common(1)" % s
        yield "sorted(collections.Counter(%s).elements())" % s
        yield "collections.Counter(%s).total()" % s
        yield "collections.Counter(%s)[\"zz\"]" % s
        yield "dict(collections.Counter(%s))" % s
        yield "[(c.update(%s), c.most_common()) for c in [collections.Counter(%s)]]" % (s, s)
        yield "[(c.subtract(%s), dict(c)) for c in [collections.Counter(%s)]]" % (s, s)
        yield "dict(collections.Counter(%s) + collections.Counter(\"hex\"))" % s
        yield "dict(collections.Counter(%s) - collections.Counter(\"hex\"))" % s
        yield "dict(collections.Counter(%s) | collections.Counter(\"hex\"))" % s
        yield "dict(collections.Counter(%s) & collections.Counter(\"hex\"))" % s
    yield "collections.Counter(a=2, b=1).most_common()"
    yield "[(d[\"x\"].append(1), d[\"x\"].append(2), dict(d)) for d in [collections.defaultdict(list)]]"
    yield "[(d[\"x\"], dict(d)) for d in [collections.defaultdict(int)]]"
    yield "[(d.get(\"x\"), dict(d)) for d in [collections.defaultdict(int, {\"a\": 1})]]"
    yield "collections.defaultdict(None)[1]"
    yield "collections.defaultdict(5)"
    yield "collections.OrderedDict([(\"a\", 1)])[\"a\"]"


def res():
    cases = [(r"\d+", "a1b22c333"), (r"(\w)(\d)?", "a1 b é2"), (r"\bfoo\b", "foo food foo"), (r"x*", "axb"), ("", "abc"), (r"a|b", "cab"), (r"(?i)HELLO", "hello Hello"), (r"^\w+", "line one\nline two"),
             (r"(?m)^\w+", "line one\nline two"), (r"(?P<y>\d{4})-(?P<m>\d\d)", "on 2026-03-01 and 2025-12-31"), (r"[^\W\d_]+", "ab1_cé!"), (r"[\w.-]+@[\w.-]+", "mail a.b@c.de now"), (r"\s+", " a \t b\n"), (r"(a)|(b)", "ab"),
             (r"[,;]\s*", "a, b;c,d"), (r"(\d+):(\d+)", "09:30 10:45"), (r"é+", "éé caféé"), (r"\w+", "Þór Μαρία 海燕"), (r"[\]\[]", "a[b]c"), (r"[[a]", "[a"), (r"a{,2}", "aaaa"), (r"a{2,}", "aaaa"), (r"a{2}", "aaaa"), (r".", "a\nb"),
             (r"(?s).", "a\nb"), (r"\Aab\Z", "ab"), (r"[^\s,]+", "a b,c"), (r"\.", "a.b"), (r"(?x) a # x\n b", "ab"), (r"(?#note)a", "a"), (r"\u00e9", "é"), (r"[\d.]+", "1.5 x 2"), (r"\D+", "a1b"), (r"\S+", "a b"), (r"\W", "a b-é"), (r"(a(b)?)+", "abaab"),
             (r"(?:ab)+", "ababx"), (r"a.*?b", "axxb ayb"), (r"$", "ab"), (r"\b", "ab cd"), (r"(?i:A)b", "ab Ab aB"), (r"", ""), (r"a", ""), (r"🚢+", "x🚢🚢y"), (r"(\w+) (\w+)", "one two three four"), (r"[a-z]+(?P<n>\d*)", "ab12cd"), (r"-", "a-b-c"), (r"(-)", "a-b-c"),
             (r"\\", "a\\b"), (r"\"", "a\"b"), (r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?", "1 -2.5 3e10"), (r"[^a]", "a\nb"), (r"\t", "a\tb"), (r"\x41", "A"), (r"[\b]", "a\bb"), (r"\d", "٣4")]
    for p, s in cases:
        q, t = lit(p), lit(s)
        yield "re.findall(%s, %s)" % (q, t)
        yield "[(m.group(), m.groups(), m.span(), m.start(), m.end(), m.groupdict()) for m in re.finditer(%s, %s)]" % (q, t)
        for f in ("search", "match", "fullmatch"):
            yield "[m and (m.group(0), m.span(), m.groups(\"\")) for m in [re.%s(%s, %s)]]" % (f, q, t)
        yield "re.sub(%s, \"<>\", %s)" % (q, t)
        yield "re.sub(%s, r\"[\\g<0>]\", %s, count=1)" % (q, t)
        yield "re.subn(%s, lambda m: m.group(0).upper() + \"!\", %s)" % (q, t)
        yield "re.split(%s, %s)" % (q, t)
        yield "re.split(%s, %s, maxsplit=1)" % (q, t)
        yield "[m and m.span() for m in [re.compile(%s).search(%s, 1)]]" % (q, t)
        yield "[m and m.span() for m in [re.compile(%s).match(%s, 2)]]" % (q, t)
        yield "re.compile(%s).findall(%s, 1)" % (q, t)
        yield "bool(re.search(%s, %s, re.I))" % (q, t)
        yield "re.findall(%s, %s, flags=re.MULTILINE | re.DOTALL)" % (q, t)
        yield "re.escape(%s)" % t
    yield from ['re.sub(r"(\\d+)-(\\d+)", r"\\2-\\1", "1-2 3-4")', 're.sub(r"(?P<a>x)", r"<\\g<a>>", "axb")', 're.sub("a", r"\\n", "bab")', 're.sub("(a)|b", r"[\\1]", "ab")', 're.sub("a", "\\\\q", "a")', 're.sub("a", r"\\3", "a")',
                're.sub("a", "b", "aaa", 2)', 're.match("a", "ba")', 're.search("(", "a")', 're.search("[", "a")', 're.search("*", "a")', 're.search("a", None)', 're.search(None, "a")', 're.search(r"\\q", "q")', 're.search("a**", "a")',
                're.match("(a)(b)?", "a").groups()', 're.match("(a)(b)?", "a").group(2)', 're.match("(a)(b)?", "a").group(1, 2)', 're.match("(a)", "a").group(3)', 're.match("(a)", "a")[1]', 're.match("(?P<x>a)", "a")["x"]', 're.match("(?P<x>a)", "a").group("y")',
                're.match("(a)(b)?", "a").span(2)', 're.match("(a)(b)?", "ab").lastindex', 're.match("(?P<q>a)", "a").lastgroup', 're.match("a", "a").string', 're.compile("a(b)").pattern', 're.compile("a(b)(?P<c>x)").groups', 'dict(re.compile("a(b)(?P<c>x)").groupindex)',
                're.match("(a)", "a").expand(r"<\\1>")', 're.fullmatch("a|ab", "ab").group()', 're.findall("a", "aaa", re.I)', 're.compile("a").sub("b", "aa", 1)', 're.compile("(,)").split("a,b", 1)', 're.fullmatch("a", "a\\n")', 're.findall(re.compile("a"), "aa")',
                're.split("", "abc")', 're.split("x*", "axbc")', 're.sub("x*", "-", "abxd")', 're.sub("", "-", "abc")', 're.sub("^", "> ", "a\\nb", flags=re.M)', 're.sub("$", "!", "a\\nb", flags=re.M)', 're.findall("(?m)$", "a\\nb")']


def jsons():
    values = [None, True, 1, -2.5, 1e16, 1e22, 0.1, "é\"\\\n\t\u0001/\u007f 🚢", [], {}, [1, [2, {}]], {"b": 1, "a": [1, 2]}, {"a": None}, (1, 2), {1: 2, None: 3, True: 4, 1.5: 5}, [[]], {"é": {"x": []}}, 10 ** 25, float("nan"), float("inf"), ""]
    options = ["", ", indent=2", ", indent=0", ", indent=\"\\t\"", ", sort_keys=True", ", ensure_ascii=False", ", separators=(\",\", \":\")", ", indent=1, separators=(\", \", \" = \")", ", allow_nan=False", ", default=str"]
    for v in values:
        for o in options:
            yield "json.dumps(%s%s)" % (lit(v), o)
    yield 'json.dumps({"a": set([1])})'
    yield 'json.dumps(set([1]), default=list)'
    yield 'json.dumps({(1, 2): 3})'
    yield 'json.dumps({(1, 2): 3, "a": 1}, skipkeys=True)'
    yield 'json.dumps([len])'
    for s in ["1", "-0", "1.5", "1e5", "1E+2", "true", "null", '"a"', '"\\u00e9\\n"', '"\\ud83d\\udea2"', "[]", "[1, 2]", "{}", '{"a": [1, {"b": null}]}', " 1 ", "", " ", "[1,]", "{,}", "{'a': 1}", "nul", "[1", '{"a"}', '{"a": 1', "1 2", "[1] x", "01", "1.", "+1", ".5",
              '"a', '"\\x"', "tru", "[1, 2]]", '{"a": 1, "a": 2}', "-", "--1", "1e", '"\t"', "{1: 2}", "9007199254740993", "1e400", "123456789012345678901234567890", "\ufeff1"]:
        yield "json.loads(%s)" % lit(s)
    yield "json.loads(None)"
    yield "json.loads({})"


def maths():
    xs = [0, 1, -1, 0.5, 2, 10, 100, -0.5, 1e-10, 3.7, 710, math.inf]
    for f in "acos acosh asin asinh atan atanh cos cosh erf erfc exp expm1 gamma lgamma log1p sin sinh sqrt tan tanh log log2 log10 radians degrees floor ceil trunc cbrt exp2".split():
        for x in xs:
            try:
                r = eval("math.%s(%s)" % (f, lit(x)), dict(names))
            except Exception:
                yield "math.%s(%s)" % (f, lit(x))
                continue
            if isinstance(r, float) and math.isfinite(r):
                # The last digits of a transcendental function are a library's own.
                yield "math.isclose(math.%s(%s), %s, rel_tol=1e-13, abs_tol=1e-15)" % (f, lit(x), lit(r))
            else:
                yield "math.%s(%s)" % (f, lit(x))
    yield from ["math.hypot(3, 4)", "math.hypot(1, 2, 2)", "math.hypot()", "math.dist([0, 0], [3, 4])", "math.dist([0], [1, 2])", "math.atan2(1, 1)", "math.copysign(1, -0.0)", "math.fmod(-7, 3)", "math.fmod(1, 0)", "math.pow(2, 0.5)", "math.pow(0, -1)", "math.pow(-8, 1/3)",
                "math.remainder(7, 4)", "math.isclose(1, 1 + 1e-10)", "math.isclose(1, 1.1, abs_tol=0.2)", "math.fsum([0.1] * 10)", "math.fsum([1e100, 1, -1e100])", "math.prod([1, 2, 3.5])", "math.prod([])", "math.prod([2, 3], start=4)", "math.gcd()", "math.gcd(12, 18, 27)", "math.lcm(4, 6)",
                "math.lcm()", "math.factorial(20)", "math.factorial(-1)", "math.factorial(1.5)", "math.comb(10, 3)", "math.comb(3, 10)", "math.comb(60, 30)", "math.perm(5, 2)", "math.perm(5)", "math.isqrt(17)", "math.isqrt(-1)", "math.ldexp(1.5, 4)", "math.log(8, 2)", "math.log(100, 10)", "math.log(0)",
                "math.log(-1)", "math.log(pow(10, 400))", "math.sqrt(\"a\")", "math.floor(None)", "math.inf", "math.tau", "math.pi", "math.e", "math.log10(1000)", "math.log2(8)", "math.nextafter(1, 2)", "math.floor(1e300)", "math.ceil(-0.5)", "math.floor(float(\"nan\"))", "math.floor(float(\"inf\"))"]


for name, make in [("strings", strings), ("slices", slices), ("formats", formats), ("numbers", numbers), ("collections", collections_), ("regexps", res), ("json", jsons), ("math", maths)]:
    write(name, make())
