package note

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
	"pgregory.net/rapid"

	"github.com/loci-memory/loci/internal/errs"
)

func encodeUTF16(s string, order binary.AppendByteOrder) string {
	var out []byte
	for _, u := range utf16.Encode([]rune(s)) {
		out = order.AppendUint16(out, u)
	}
	return string(out)
}

func mustEncode(t testing.TB, enc interface{ String(string) (string, error) }, s string) string {
	t.Helper()
	out, err := enc.String(s)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

const (
	tides = "# 潮汐表\n\n今日起锚，风力五级。淡水三桶已经装船，守夜人在灯塔上换班。\nThe tide is in.\n"
	rare  = "镕 㐀 𠀀 喆"
)

func TestDecode(t *testing.T) {
	le, be := binary.LittleEndian, binary.BigEndian
	gbk := mustEncode(t, simplifiedchinese.GBK.NewEncoder(), tides)
	gb18030 := mustEncode(t, simplifiedchinese.GB18030.NewEncoder(), tides+rare)
	cases := []struct{ name, in, text, enc string }{
		{"nothing", "", "", UTF8},
		{"only a mark", "\xef\xbb\xbf", "", UTF8},
		{"utf-8", tides, tides, UTF8},
		{"utf-8 with a mark", "\ufeff" + tides, tides, UTF8},
		{"a form feed", "a\fb\x1b[1m", "a\fb\x1b[1m", UTF8},
		{"utf-16le with a mark", "\xff\xfe" + encodeUTF16(tides+"😀", le), tides + "😀", UTF16LE},
		{"utf-16be with a mark", "\xfe\xff" + encodeUTF16(tides+"😀", be), tides + "😀", UTF16BE},
		{"utf-16le", encodeUTF16(tides, le), tides, UTF16LE},
		{"utf-16be", encodeUTF16(tides, be), tides, UTF16BE},
		{"english utf-16le", encodeUTF16("ab\r\n", le), "ab\r\n", UTF16LE},
		{"english utf-16be", encodeUTF16("ab\r\n", be), "ab\r\n", UTF16BE},
		{"gbk", gbk, tides, GBK},
		{"a few characters of gbk", mustEncode(t, simplifiedchinese.GBK.NewEncoder(), "灯塔"), "灯塔", GBK},
		{"gb18030", gb18030, tides + rare, GB18030},
		{"long gbk", strings.Repeat(gbk, 20), strings.Repeat(tides, 20), GBK},

		{"no character", "\xff\xfe\xfd", "", ""},
		{"a mark and no utf-8", "\xef\xbb\xbf\xff", "", ""},
		{"half a pair", "\xff\xfe\x00\xd8", "", ""},
		{"a lone half", "\xff\xfe\x00\xdca\x00", "", ""},
		{"zeros", "\x00\x00\x00\x00", "", ""},
		{"utf-16 of zeros", "\xff\xfe\x00\x00", "", ""},
		{"an image", "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x01\x00", "", ""},
		{"an archive", "PK\x03\x04\x14\x00\x08\x08\x08\x00\xb5\xa1", "", ""},
		{"a program", "\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00", "", ""},
		{"control characters", strings.Repeat("\x01\x02", 20), "", ""},
		{"a broken end", gbk + "\xb5", "", ""},
		{"broken utf-8", strings.Repeat(tides, 3) + "\xe6\xbd" + tides, "", ""},
		{"french", mustEncode(t, charmap.Windows1252.NewEncoder(), "l'été à la mer, très près du phare"), "", ""},
		{"german", mustEncode(t, charmap.Windows1252.NewEncoder(), "Größe über alles, schön"), "", ""},
		{"big5", mustEncode(t, traditionalchinese.Big5.NewEncoder(), strings.Repeat("燈塔的守夜人換班，今日風力五級，淡水已經裝船。", 5)), "", ""},
		{"shift-jis", mustEncode(t, japanese.ShiftJIS.NewEncoder(), strings.Repeat("灯台の番人は今日も船を待っている。", 5)), "", ""},
		{"euc-jp", mustEncode(t, japanese.EUCJP.NewEncoder(), strings.Repeat("灯台の番人は今日も船を待っている。", 5)), "", ""},
		{"long euc-kr", mustEncode(t, korean.EUCKR.NewEncoder(), strings.Repeat("등대지기는 오늘도 배를 기다린다 ", 20)), "", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			text, enc, err := Decode([]byte(c.in))
			if text != c.text || enc != c.enc {
				t.Errorf("got %q in %q, %v", text, enc, err)
			}
			if (err != nil) != (c.enc == "") || err != nil && !errors.Is(err, errs.Validation) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// Text of any kind comes back from the encodings that say what they are.
func TestDecodeRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := strings.Map(func(r rune) rune {
			if r < ' ' && r != '\n' || r == utf8.RuneError || r == '\ufeff' {
				return -1
			}
			return r
		}, rapid.String().Draw(t, "text"))
		for enc, data := range map[string]string{
			UTF8:    "\ufeff" + s,
			UTF16LE: "\xff\xfe" + encodeUTF16(s, binary.LittleEndian),
			UTF16BE: "\xfe\xff" + encodeUTF16(s, binary.BigEndian),
		} {
			text, got, err := Decode([]byte(data))
			if text != s || got != enc || err != nil {
				t.Fatalf("%s: %q in %s, %v", enc, text, got, err)
			}
		}
		if text, enc, err := Decode([]byte(s)); text != s || enc != UTF8 || err != nil {
			t.Fatalf("%q in %s, %v", text, enc, err)
		}
	})
}

// Every real note is recognised in every encoding that can hold it.
func TestDecodeRealNotes(t *testing.T) {
	gbk := 0
	for name, s := range realNotes(t) {
		if s == "" {
			continue
		}
		for enc, data := range map[string]string{
			UTF16LE: encodeUTF16(s, binary.LittleEndian),
			UTF16BE: encodeUTF16(s, binary.BigEndian),
		} {
			if text, got, err := Decode([]byte(data)); text != s || got != enc || err != nil {
				t.Errorf("%s: %s: taken for %q: %v", name, enc, got, err)
			}
		}
		data, err := simplifiedchinese.GBK.NewEncoder().String(s)
		if err != nil || !strings.Contains(name, "/zh/") {
			continue // some character is not in it, or few are Chinese
		}
		gbk++
		if text, got, err := Decode([]byte(data)); text != s || err != nil || got != GBK && got != UTF8 {
			t.Errorf("%s: gbk: taken for %q: %v", name, got, err)
		}
	}
	t.Logf("%d notes in GBK", gbk)
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{"", tides, "\ufeffa", "\xff\xfea\x00", "\xfe\xff\x00a", "a\x00b\x00", "\xb5\xc6\xcb\xfe", "\x81\x30\x81\x30", "\xff\xfe\xfd"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		text, enc, err := Decode(data)
		if (err == nil) != (enc != "") || !utf8.ValidString(text) || strings.IndexByte(text, 0) >= 0 {
			t.Fatalf("%q %q %v", text, enc, err)
		}
	})
}
