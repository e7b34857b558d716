package transport

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// The cases of TestRFC6455, by the sections of the Autobahn test suite.

// rfcLimit is the longest message that the server of the cases takes.
const rfcLimit = 256 << 10

var rfcSections = map[string]func(rfcDoor) map[string]rfcPlay{
	"1 lengths":       rfcLengths,
	"2 pings":         rfcPings,
	"3 reserved bits": rfcReservedBits,
	"4 opcodes":       rfcOpcodes,
	"5 fragments":     rfcFragments,
	"6 UTF-8":         rfcUTF8,
	"7 closing":       rfcClosing,
	"7 close codes":   rfcCloseCodes,
	"9 sizes":         rfcSizes,
}

func join(parts ...[]byte) []byte { return slices.Concat(parts...) }

func rfcLengths(d rfcDoor) map[string]rfcPlay {
	plays := map[string]rfcPlay{
		"text of 0":    {send: rawFrame(textFrame, ""), says: []string{junked}},
		"text of 1":    {send: rawFrame(textFrame, "*"), says: []string{junked}},
		"text of 125":  {send: rawFrame(textFrame, strings.Repeat("*", 125)), says: []string{junked}},
		"length in 2":  {send: longFrame(textFrame, 126, 5, "*****"), says: []string{junked}, rfc: 1002, why: "the library takes a length in more bytes than it needs; no harm comes of it"},
		"length in 8":  {send: longFrame(textFrame, 127, 5, "*****"), says: []string{junked}, rfc: 1002, why: "the library takes a length in more bytes than it needs; no harm comes of it"},
		"length of 63": {send: longFrame(textFrame, 127, 1<<63-1, strings.Repeat("*", rfcLimit+2)), code: 1009},
		"length of 64": {send: longFrame(textFrame, 127, 1<<63, "*"), code: 1002},
		"unmasked":     {send: unmasked(textFrame, "*"), code: 1002},
		"unmasked late": {
			send: rawFrame(textFrame, d.call("once")), says: []string{"once"}, then: unmasked(pingFrame, ""), code: 1002,
		},
		"unmasked in a message": {send: join(rawFrame(opText, "a"), unmasked(fin|opContinue, "b")), code: 1002},
	}
	for _, n := range []int{126, 127, 128, 65535, 65536} {
		message, text := d.sized(n)
		plays[fmt.Sprintf("text of %d", n)] = rfcPlay{send: rawFrame(textFrame, message), says: []string{text}}
	}
	message, text := d.sized(65536)
	plays["text of 65536, chopped"] = rfcPlay{send: rawFrame(textFrame, message), chop: 997, says: []string{text}}
	for _, n := range []int{0, 125, 126, 127, 128, 65535, 65536} {
		plays[fmt.Sprintf("binary of %d", n)] = rfcPlay{send: rawFrame(binaryFrame, strings.Repeat("\xfe", n)), code: 1003}
	}
	return plays
}

func rfcPings(d rfcDoor) map[string]rfcPlay {
	const binaryPayload = "\x00\xff\xfe\xfd\xfc\xfb\x00\xff"
	full := strings.Repeat("\xfe", 125)
	ten, payloads := []byte(nil), []string(nil)
	for i := range 10 {
		payloads = append(payloads, fmt.Sprintf("payload-%d", i))
		ten = append(ten, rawFrame(pingFrame, payloads[i])...)
	}
	return map[string]rfcPlay{
		"empty":                 {send: rawFrame(pingFrame, ""), pongs: []string{""}},
		"text":                  {send: rawFrame(pingFrame, "Hello, world!"), pongs: []string{"Hello, world!"}},
		"binary":                {send: rawFrame(pingFrame, binaryPayload), pongs: []string{binaryPayload}},
		"of 125":                {send: rawFrame(pingFrame, full), pongs: []string{full}},
		"of 125, chopped":       {send: rawFrame(pingFrame, full), chop: 1, pongs: []string{full}},
		"of 126":                {send: rawFrame(pingFrame, full+"\xfe"), code: 1002},
		"length in 2":           {send: longFrame(pingFrame, 126, 1, "x"), pongs: []string{"x"}, rfc: 1002, why: "the library takes a length in more bytes than it needs; no harm comes of it"},
		"pong unasked, empty":   {send: rawFrame(pongFrame, "")},
		"pong unasked":          {send: rawFrame(pongFrame, "unsolicited")},
		"pong of 126":           {send: rawFrame(pongFrame, full+"\xfe"), code: 1002},
		"pong unasked and ping": {send: join(rawFrame(pongFrame, "unsolicited"), rawFrame(pingFrame, "ping")), pongs: []string{"ping"}},
		"ten":                   {send: ten, pongs: payloads},
		"ten, chopped":          {send: ten, chop: 1, pongs: payloads},
		"between calls": {
			send:  join(rawFrame(textFrame, d.call("one")), rawFrame(pingFrame, "p"), rawFrame(textFrame, strings.Replace(d.call("two"), `"id":7`, `"id":8`, 1))),
			pongs: []string{"p"}, says: []string{"one", "two"},
		},
	}
}

func rfcReservedBits(d rfcDoor) map[string]rfcPlay {
	plays := map[string]rfcPlay{}
	for rsv := byte(1); rsv < 8; rsv++ {
		for kind, frame := range map[string][]byte{
			"text": rawFrame(textFrame|rsv<<4, d.call("x")), "binary": rawFrame(binaryFrame|rsv<<4, "x"), "ping": rawFrame(pingFrame|rsv<<4, "x"),
			"pong": rawFrame(pongFrame|rsv<<4, ""), "close": rawFrame(closingFrame|rsv<<4, "\x03\xe8"),
			"first fragment":  join(rawFrame(opText|rsv<<4, "a"), rawFrame(fin|opContinue, "b")),
			"second fragment": join(rawFrame(opText, "a"), rawFrame(fin|opContinue|rsv<<4, "b")),
		} {
			for how, chop := range map[string]int{"": 0, ", chopped": 1} {
				plays[fmt.Sprintf("%03b in %s%s", rsv, kind, how)] = rfcPlay{send: frame, chop: chop, code: 1002}
			}
		}
	}
	plays["after a call, before a ping"] = rfcPlay{
		send: rawFrame(textFrame, d.call("x")), says: []string{"x"},
		then: join(rawFrame(textFrame|2<<4, d.call("y")), rawFrame(pingFrame, "")), code: 1002,
	}
	return plays
}

func rfcOpcodes(d rfcDoor) map[string]rfcPlay {
	plays := map[string]rfcPlay{}
	for _, op := range []byte{3, 4, 5, 6, 7, 11, 12, 13, 14, 15} {
		plays[fmt.Sprintf("%d", op)] = rfcPlay{send: rawFrame(fin|op, ""), code: 1002}
		plays[fmt.Sprintf("%d with a payload", op)] = rfcPlay{send: rawFrame(fin|op, "reserved"), code: 1002}
		plays[fmt.Sprintf("%d among fragments", op)] = rfcPlay{send: join(rawFrame(opText, "a"), rawFrame(fin|op, ""), rawFrame(fin|opContinue, "b")), code: 1002}
		plays[fmt.Sprintf("%d after a call, before a ping, chopped", op)] = rfcPlay{
			send: rawFrame(textFrame, d.call("x")), chop: 1, says: []string{"x"},
			then: join(rawFrame(fin|op, "reserved"), rawFrame(pingFrame, "")), code: 1002,
		}
	}
	return plays
}

func rfcFragments(d rfcDoor) map[string]rfcPlay {
	call := d.call("fragment")
	a, b := call[:len(call)/2], call[len(call)/2:]
	ping := rawFrame(pingFrame, "ping")
	said := []string{"fragment"}
	first, last, stray := rawFrame(opText, a), rawFrame(fin|opContinue, b), rawFrame(fin|opContinue, "stray")
	unfinished := rawFrame(opContinue, "stray")
	plays := map[string]rfcPlay{
		"of a ping":                     {send: join(rawFrame(opPing, "a"), rawFrame(fin|opContinue, "b")), code: 1002},
		"of a pong":                     {send: join(rawFrame(opPong, "a"), rawFrame(fin|opContinue, "b")), code: 1002},
		"of a close":                    {send: join(rawFrame(opClose, "\x03"), rawFrame(fin|opContinue, "\xe8")), code: 1002},
		"two":                           {send: join(first, last), says: said},
		"two, chopped":                  {send: join(first, last), chop: 1, says: said},
		"ping between":                  {send: join(first, ping, last), says: said, pongs: []string{"ping"}},
		"ping between, chopped":         {send: join(first, ping, last), chop: 1, says: said, pongs: []string{"ping"}},
		"pong between":                  {send: join(first, rawFrame(pongFrame, "pong"), last), says: said},
		"nothing to continue":           {send: join(stray, rawFrame(textFrame, call)), code: 1002},
		"nothing to continue, chopped":  {send: join(stray, rawFrame(textFrame, call)), chop: 1, code: 1002},
		"nothing to continue, and more": {send: join(unfinished, rawFrame(textFrame, call)), code: 1002},
		"nothing to continue, empty":    {send: rawFrame(fin|opContinue, ""), code: 1002},
		"continued when done":           {send: join(first, last), says: said, then: join(unfinished, rawFrame(textFrame, call)), code: 1002},
		"continued when all in one":     {send: rawFrame(textFrame, call), says: said, then: stray, code: 1002},
		"text amid":                     {send: join(first, rawFrame(textFrame, b)), code: 1002},
		"first again":                   {send: join(first, rawFrame(opText, b), last), code: 1002},
		"binary amid":                   {send: join(first, rawFrame(binaryFrame, "x"), last), code: 1002},
		"of binary":                     {send: join(rawFrame(opBinary, "a"), rawFrame(fin|opContinue, "b")), code: 1003},
		"never ended":                   {send: join(first, closing(1000, "")), code: 1000},
		"empty between":                 {send: pieces("", a, "", "", b, ""), says: said},
		"all empty":                     {send: pieces("", "", ""), says: []string{junked}},
		"close after two":               {send: join(first, last), says: said, then: closing(1001, ""), code: 1001},
	}
	for how, chop := range map[string]int{"": 0, ", chopped": 1} {
		five := join(rawFrame(opText, call[:3]), rawFrame(opContinue, call[3:9]), rawFrame(pingFrame, "1"), rawFrame(opContinue, call[9:10]),
			rawFrame(opContinue, call[10:20]), rawFrame(pingFrame, "2"), rawFrame(fin|opContinue, call[20:]))
		plays["five, pings between"+how] = rfcPlay{send: five, chop: chop, says: said, pongs: []string{"1", "2"}}
	}
	return plays
}

// rfcTexts are what UTF-8 can be, and what it cannot (Autobahn 6.2 to 6.23).
var (
	rfcTexts = map[string]string{
		"greek": "κόσμε", "2 bytes": "\u0080\u07ff", "3 bytes": "\u0800\uffff", "4 bytes": "\U00010000\U0010ffff", "before surrogates": "\ud7ff", "after surrogates": "\ue000",
		"replacement": "\ufffd", "noncharacters": "\ufffe\U0001fffe\U0001ffff", "a bit of all": "Hello-µ@ßöäüàá-UTF-8!! 𝄞",
	}
	rfcNoTexts = map[string]string{
		"continuation alone": "\x80", "continuations": "\x80\xbf\x80", "lead alone": "\xc2", "lead and space": "\xc2 ", "3 cut": "\xe2\x82", "4 cut": "\xf0\x9f\x98",
		"overlong 2": "\xc0\xaf", "overlong NUL": "\xc0\x80", "overlong 3": "\xe0\x80\xaf", "overlong 4": "\xf0\x80\x80\xaf", "overlong 5": "\xf8\x80\x80\x80\xaf",
		"overlong max 2": "\xc1\xbf", "overlong max 3": "\xe0\x9f\xbf", "overlong max 4": "\xf0\x8f\xbf\xbf",
		"high surrogate": "\xed\xa0\x80", "low surrogate": "\xed\xbf\xbf", "surrogate pair": "\xed\xa0\x80\xed\xb0\x80",
		"above U+10FFFF": "\xf4\x90\x80\x80", "5 bytes": "\xf8\x88\x80\x80\x80", "6 bytes": "\xfc\x84\x80\x80\x80\x80", "FE": "\xfe", "FF": "\xff",
		"edited greek": "\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5\xed\xa0\x80edited",
	}
)

func rfcUTF8(d rfcDoor) map[string]rfcPlay {
	plays := map[string]rfcPlay{}
	for name, text := range rfcTexts {
		call := d.call(text)
		plays[name] = rfcPlay{send: rawFrame(textFrame, call), says: []string{text}}
		plays[name+", bytes in frames"] = rfcPlay{send: fragments(opText, call, 1), says: []string{text}}
		plays[name+", bytes in writes"] = rfcPlay{send: rawFrame(textFrame, call), chop: 1, says: []string{text}}
		cut := strings.Index(call, text) + 1 // in the middle of a code point
		plays[name+", pings in a code point"] = rfcPlay{
			send:  join(rawFrame(opText, call[:cut]), rawFrame(pingFrame, "\xff"), rawFrame(fin|opContinue, call[cut:])),
			pongs: []string{"\xff"}, says: []string{text},
		}
	}
	for name, text := range rfcNoTexts {
		call := strings.Replace(d.call("@"), "@", text, 1)
		plays["no "+name] = rfcPlay{send: rawFrame(textFrame, call), code: 1007}
		plays["no "+name+", alone"] = rfcPlay{send: rawFrame(textFrame, text), code: 1007}
		plays["no "+name+", bytes in frames"] = rfcPlay{send: fragments(opText, call, 1), code: 1007}
		plays["no "+name+", bytes in writes"] = rfcPlay{send: rawFrame(textFrame, call), chop: 1, code: 1007}
	}
	plays["no more after it"] = rfcPlay{send: join(rawFrame(textFrame, "\xff"), rawFrame(textFrame, d.call("late")), rawFrame(pingFrame, "")), code: 1007}
	return plays
}

func rfcClosing(d rfcDoor) map[string]rfcPlay {
	long := strings.Repeat("r", 123)
	_, text := d.sized(128 << 10)
	return map[string]rfcPlay{
		"empty":              {send: rawFrame(closingFrame, ""), code: noStatus},
		"empty, length in 2": {send: longFrame(closingFrame, 126, 0, ""), code: noStatus, rfc: 1002, why: "the library takes a length in more bytes than it needs; no harm comes of it"},
		"1 byte":             {send: rawFrame(closingFrame, "\x03"), code: 1002},
		"no reason":          {send: closing(1000, ""), code: 1000},
		"reason":             {send: closing(1000, "going home"), code: 1000},
		"reason in Greek":    {send: closing(1000, "κόσμε"), code: 1000},
		"reason of 123":      {send: closing(1000, long), code: 1000},
		"reason of 124":      {send: closing(1000, long+"r"), code: 1002},
		"chopped":            {send: closing(1000, long), chop: 1, code: 1000},
		"reason not UTF-8":   {send: closing(1000, "\xce\xba\xed\xa0\x80"), code: 1000, rfc: 1007, why: "the library answers a close frame by itself and does not look at its reason; nobody shows or logs it"},
		"twice":              {send: join(closing(1000, ""), closing(1001, "")), code: 1000},
		"then a ping":        {send: join(closing(1000, ""), rawFrame(pingFrame, "late")), code: 1000},
		"then a call":        {send: join(closing(1000, ""), rawFrame(textFrame, d.call("late"))), code: 1000},
		"then a fragment":    {send: join(rawFrame(opText, d.call("late")[:9]), closing(1000, ""), rawFrame(fin|opContinue, d.call("late")[9:])), code: 1000},
		"then rubbish":       {send: join(closing(1000, ""), bytes.Repeat([]byte{0xff}, 100)), code: 1000},
		"after a call":       {send: rawFrame(textFrame, d.call("first")), says: []string{"first"}, then: closing(1000, ""), code: 1000},
		"after a long call":  {send: rawFrame(textFrame, d.call(text)), says: []string{text}, then: join(closing(1000, ""), rawFrame(pingFrame, "")), code: 1000},
	}
}

func rfcCloseCodes(rfcDoor) map[string]rfcPlay {
	plays := map[string]rfcPlay{}
	for _, code := range []uint16{1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000, 3999, 4000, 4999} {
		plays[fmt.Sprint(code)] = rfcPlay{send: closing(code, ""), code: int(code)}
		plays[fmt.Sprint(code, " with a reason")] = rfcPlay{send: closing(code, "reason"), code: int(code)}
	}
	for _, code := range []uint16{0, 1, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65535} {
		plays[fmt.Sprint(code)] = rfcPlay{send: closing(code, ""), code: 1002}
		plays[fmt.Sprint(code, " with a reason")] = rfcPlay{send: closing(code, "reason"), code: 1002}
	}
	return plays
}

func rfcSizes(d rfcDoor) map[string]rfcPlay {
	plays := map[string]rfcPlay{}
	for _, n := range []int{64 << 10, rfcLimit - 1, rfcLimit} {
		message, text := d.sized(n)
		plays[fmt.Sprint(n)] = rfcPlay{send: rawFrame(textFrame, message), says: []string{text}}
		for _, size := range []int{256, 4 << 10, 64 << 10} {
			plays[fmt.Sprintf("%d in fragments of %d", n, size)] = rfcPlay{send: fragments(opText, message, size), says: []string{text}}
		}
	}
	message, text := d.sized(128 << 10)
	for _, chop := range []int{64, 128, 512, 1300} {
		plays[fmt.Sprintf("chops of %d", chop)] = rfcPlay{send: rawFrame(textFrame, message), chop: chop, says: []string{text}}
	}
	small, word := d.sized(150)
	plays["dribbled"] = rfcPlay{send: fragments(opText, small, 4, rawFrame(pongFrame, "")...), chop: 1, says: []string{word}}
	over, _ := d.sized(rfcLimit + 1)
	plays["over the limit"] = rfcPlay{send: rawFrame(textFrame, over), code: 1009}
	plays["over the limit in fragments"] = rfcPlay{send: fragments(opText, over, 64<<10), code: 1009}
	plays["over the limit, chopped"] = rfcPlay{send: rawFrame(textFrame, over), chop: 64 << 10, code: 1009}
	plays["binary over the limit"] = rfcPlay{send: rawFrame(binaryFrame, over), code: 1009}
	plays["at the limit in Greek"] = rfcPlay{send: rawFrame(textFrame, strings.Repeat("κ", rfcLimit/2)), says: []string{junked}}
	plays["many small fragments"] = rfcPlay{send: fragments(opText, small+strings.Repeat(" ", 2_000), 1), says: []string{word}}
	return plays
}
