package secretscan

import (
	"strings"
	"testing"
)

// tail makes up what follows a prefix: n bytes that look random, in a different
// way for each seed, so that no secret stands in this file.
func tail(n int, letters string, seed uint32) string {
	var b strings.Builder
	x := seed*2654435761 + 12345
	for range n {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		b.WriteByte(letters[int(x%uint32(len(letters)))])
	}
	return b.String()
}

const (
	lowers  = "abcdefghijklmnopqrstuvwxyz"
	capital = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	figures = "0123456789"
	hexes   = figures + "abcdef"
	anyCase = lowers + capital + figures
	urlSafe = anyCase + "-_"
	base    = anyCase + "+/"
)

// made is a secret of a rule, with a text that holds it.
type made struct{ rule, secret, before, after string }

// secrets gives one or more secrets of each rule, of the shapes that are
// documented, made up.
func secrets() []made {
	var out []made
	add := func(rule, secret string, around ...string) {
		m := made{rule: rule, secret: secret, before: "the key is ", after: " and no other"}
		if len(around) > 0 {
			m.before, m.after = around[0], around[1]
		}
		out = append(out, m)
	}
	letters := map[class]string{
		alnum: anyCase, hexadecimal: hexes, upperDigit: capital + figures, word64: urlSafe, dotted: anyCase, underscore: anyCase + "_", base64: base,
	}
	for i, k := range keyRules() {
		if k.name == "sendgrid-key" {
			add(k.name, k.prefix+tail(22, urlSafe, 7)+"."+tail(43, anyCase, 8))
			continue
		}
		n := k.min
		if k.max == 0 {
			n += 3
		}
		add(k.name, k.prefix+tail(n-1, letters[k.of], uint32(i+1))+"7")
	}
	aws := tail(39, base, 99) + "a"
	add(ruleAWSSecret, aws, "AKIA"+tail(16, capital, 5)+", ", "\n")
	pem := "-----BEGIN RSA " + "PRIVATE KEY-----\n" + tail(64, base, 1) + "\n" + tail(64, base, 2) + "\n" + tail(20, base, 3) + "==\n-----END RSA " + "PRIVATE KEY-----"
	add("private-key", pem)
	add("private-key", strings.ReplaceAll(pem, "RSA", "OPENSSH"))
	add("private-key", strings.ReplaceAll(pem, "\n", `\n`), `{"key": "`, `"}`)
	add("private-key", "-----BEGIN EC "+"PRIVATE KEY-----\n"+tail(64, base, 4)+"\n"+tail(40, base, 5), "", "\n\nThe end of it is missing, and this goes on")
	add("private-key", "PuTTY-User-Key-"+"File-3: ssh-ed25519\nPrivate-"+"Lines: 1\n"+tail(64, base, 4)+"\nPrivate-"+"MAC: "+tail(64, hexes, 5))
	token := "eyJ" + tail(33, urlSafe, 11) + "." + tail(60, urlSafe, 12) + "." + tail(43, urlSafe, 13)
	add("jwt", token)
	add("jwt", token, "令牌值：", "。")
	add("bearer-token", tail(30, anyCase, 14)+"4", "curl -H 'X-Auth: Bearer ", "' example.com")
	add("authorization-header", tail(20, anyCase, 15)+"3==", "Authorization: Basic ", "\r\n")
	add("authorization-header", tail(20, anyCase, 16)+"3", `"Authorization": "token `, `"`)
	add("url-password", "pa55"+tail(5, lowers, 17), "postgres://keeper:", "@db.example.com:5432/tides")
	add("url-password", "a@"+tail(5, lowers, 17), "amqp://keeper:", "@mq.example.com")
	add("telegram-token", tail(9, "123456789", 18)+":AA"+tail(33, urlSafe, 19))
	add("terraform-token", tail(14, anyCase, 20)+".atlas"+"v1."+tail(64, anyCase, 21))
	add("slack-webhook", "services/T"+tail(9, capital, 22)+"/B"+tail(9, capital, 23)+"/"+tail(23, anyCase, 24)+"5", "https://hooks.slack.com/", " posts")
	add("discord-webhook", tail(18, figures, 25)+"/"+tail(68, urlSafe, 26), "https://discord.com/api/webhooks/", " posts")
	add("password", "Hunter"+"22!", "password: ", "\nuser: me")
	add("password", "tide"+"4711", "密码是", "，别忘了")
	add("password", "12"+"3456", "密码：", "。")
	add("password", "x"+tail(9, anyCase, 27)+"8", "DB_PASSWORD=", " ./run")
	add("password", "x"+tail(9, anyCase, 28)+"8", `config["password"] = "`, `"`)
	add("password", "s3cr"+"et,pw", "pwd=", ";host=x")
	add("password", "hunter"+"2", "The password is ", ". Keep it")
	add("password", "hunter"+"2x", "**Password:** ", "\n")
	add("password", "p@ssW"+"0rd99", "DB_PASS='", "'")
	add("password", "Xk9$"+"mmQ2pl", "Passwort: ", "\n")
	add("password", "hunter"+"2X9!", "mysql --password ", " -h db")
	add("password", "hunter"+"2X9!", "x --db-password ", "")
	add("password", "S3cr3t"+"Passw0rd", "curl -u admin:", " https://example.com")
	add("password", "S3cr3t"+"Passw0rd", "curl --user 'ad.min:", "' https://example.com")
	add("secret", tail(40, hexes, 34), "run --api-key ", " now")
	add("secret", tail(40, hexes, 29), "api_key = '", "'")
	add("secret", tail(32, anyCase, 30), "https://example.com/x?access_token=", "&page=2")
	add("secret", tail(32, anyCase, 31), "客户端密钥：", "，请保管")
	add("secret", tail(86, base, 32)+"==", "AccountName=x;AccountKey=", ";EndpointSuffix=y")
	add("secret", "550e8400-"+"e29b-41d4-a716-446655440000", "client_secret: ", "\n")
	for _, n := range []string{"4111 1111 " + "1111 1111", "4111-1111-" + "1111-1111", "411111" + "1111111111", "5555 5555 " + "5555 4444", "3782 822463 " + "10005",
		"37828224" + "6310005", "6011 1111 " + "1111 1117", "3530 1113 " + "3330 0000", "2223 0031 " + "2200 3222", "6222 0200 " + "0000 0000 " + "001"} {
		digits := strings.NewReplacer(" ", "", "-", "").Replace(n)
		if !luhn(digits) { // made up: find the last digit
			for d := '0'; d <= '9'; d++ {
				if luhn(digits[:len(digits)-1] + string(d)) {
					n = n[:len(n)-1] + string(d)
				}
			}
		}
		add(ruleCard, n, "pay with ", ", please")
		add(ruleCard, n, "卡号", "，有效期")
		add(ruleCard, n, "it was ", " 12/27")
	}
	add("secret", tail(5000, hexes, 33), "session_token=", "\n")
	return out
}

func TestEveryRuleFinds(t *testing.T) {
	tested := map[string]bool{}
	for _, m := range secrets() {
		tested[m.rule] = true
		text := m.before + m.secret + m.after
		r := &Redactor{}
		if got, want := r.Text(text), m.before+Mark(m.rule)+m.after; m.rule != ruleAWSSecret && got != want {
			t.Errorf("%s: %q\n got %q\nwant %q", m.rule, text, got, want)
		} else if strings.Contains(got, m.secret) {
			t.Errorf("%s: the secret stays in %q", m.rule, got)
		}
		again := &Redactor{}
		if clean := r.Text(text); again.Text(clean) != clean || again.Counts() != nil {
			t.Errorf("%s: what is redacted is redacted again: %q", m.rule, again.Text(clean))
		}
		// In Chinese nothing parts a word from what follows it.
		if m.before == "the key is " {
			if got, want := (&Redactor{}).Text("钥匙"+m.secret+"在此"), "钥匙"+Mark(m.rule)+"在此"; got != want {
				t.Errorf("%s in Chinese: got %q, want %q", m.rule, got, want)
			}
		}
	}
	for _, rule := range Rules() {
		if !tested[rule] {
			t.Errorf("no secret of the rule %s is tested", rule)
		}
	}
}

// TestNearMisses holds what looks like a secret at a glance and is none.
func TestNearMisses(t *testing.T) {
	uuid := "550e8400-e29b-41d4-a716-446655440000"
	for _, text := range []string{
		"", "a", "password", "password:", "password: \n", "The password is required.", "the password is wrong", "password: string", "密码是必填项",
		"Passwords must be 8 characters long", "password_reset_url=https://example.com/a1b2c3", "password: ${DB_PASSWORD1}", "password=$DB_PASS1",
		"password = getpass.getpass('v2')", "password: [redacted: password]", "password: <your password 1>", "pwd: /srv/user1/x", "password=$db_pass_1",
		"use --password to give it", "give --password-file a1b2c3d4", "a --password $DB_PASS1", "password hunter was here", "docker run -u 1000:1000 x", "chown -u root:staff1 x",
		"bypass: v2beta1x", "high_pass: 12000Hz", "compass: N42E17x",
		"password1", "passwordless: v2beta1", "PASSWORD=" + strings.Repeat("*", 12), "the password is two-factor2", "password: xxxxxx1",
		"token: 4096", "max_tokens=128000", "tokenizer: cl100k_base_version_2_of_it", "a token of esteem: gratitude1", "token_type: Bearer", "token_count: 123456789012345678",
		"secretary: Mr.A1b2C3d4E5f6G7h8", "secret: my_favourite_place_by_the_sea_2", "api_key: your_api_key_goes_here_1a2B3c", "api_key_id: " + uuid,
		"access_key_id=AKIA", "the secret is that tides come twice a day", "credential: none", "令牌：无", "密钥：见附件",
		"id " + uuid, "commit 3f786850e387550fdab836ed7e6dc881de23001b", "sha256:" + tail(64, hexes, 1), "md5 d41d8cd98f00b204e9800998ecf8427e",
		"ghp_short", "xghp_" + tail(36, anyCase, 1), "ghp_" + strings.Repeat("x", 36), "sk-" + "learn and sk-" + "image are libraries", "sk-" + strings.Repeat("a", 40),
		"AKIAthisisnot", "SKU12345678901234567890123456789012", "hf_transformers_and_other_libraries", "task-anthropic", "npm_config_cache", "key-value",
		"AIza", "a risk-" + lowers + lowers, "eyJ is how a token begins", "Bearer authentication is used", "bearer of good news and of bad ones too",
		"Authorization: Bearer <token>", "Authorization: required", "Authorization: Basic realm", "https://example.com/a:b@c", "http://user@example.com", "see https://user:$PASSWORD@host",
		"https://example.com:8080/x@y", "-----BEGIN " + "CERTIFICATE-----\n" + tail(64, base, 1) + "\n-----END " + "CERTIFICATE-----", "-----BEGIN " + "PUBLIC KEY-----\nabc",
		"12:30:AAB", "1700000000000", "1700000000000000", "at 1751234567890123 us", "id 4111111111111111", "order 4111111111111111", "4111111111111112", "4111 1111 1111 1112",
		"41111111111111111111", "订单4111111111111111", "x4111111111111111", "/4111111111111111", "4111111111111111.5", "0.4111111111111111", "1234 5678 4111 1111 1111 1111",
		"4111 1111 1111 1111 2222", "4111 1111-1111 1111", "978-4-1111-1111-1", "0000 0000 0000 0000", "4444444444444", "tel 4111 111 111 111", "1701411834604692317",
		"62010219900101123" + "4", "AKIA" + tail(20, capital, 3), "dapi" + "documentation and more of it, long",
	} {
		if hits := Find(text); len(hits) > 0 {
			t.Errorf("%q: found %s %q", text, hits[0].Rule, text[hits[0].Start:hits[0].End])
		}
	}
}

func TestLines(t *testing.T) {
	text := "before\n-----BEGIN " + "PRIVATE KEY-----\r\n" + tail(64, base, 1) + "\r\n-----END " + "PRIVATE KEY-----\nafter"
	r := &Redactor{}
	if got, want := r.Lines(text), "before\n[redacted: private-key]\n\n\nafter"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := r.Text(text), "before\n[redacted: private-key]\nafter"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if c := r.Counts(); len(c) != 1 || c[0] != (Count{"private-key", 2}) {
		t.Errorf("counts %v", c)
	}
}

func TestJSON(t *testing.T) {
	key := "ghp_" + tail(36, anyCase, 4)
	for _, c := range []struct{ in, want string }{
		{"", ""}, {"{}", "{}"}, {`{"a" : [1.50, {"b":"x <&> \u00e9"}]}`, `{"a" : [1.50, {"b":"x <&> \u00e9"}]}`},
		{`{"a": "` + key + `", "b" :1e3}`, `{"a": "[redacted: github-token]", "b" :1e3}`},
		{`{"` + key + `":"` + key + ` <b>"}`, `{"` + key + `":"[redacted: github-token] <b>"}`},
		{`{"a":{"password" : "tide` + `4711"},"n":["x","` + key + `"]}`, `{"a":{"password" : "[redacted: password]"},"n":["x","[redacted: github-token]"]}`},
		{`{"password": "it is \"` + key + `\""}`, `{"password": "it is \"[redacted: github-token]\""}`},
		{`{"card": 4111` + `111111111111}`, `{"card": 4111` + `111111111111}`},
		{`{"a": "` + key, `{"a": "` + key},
	} {
		r := &Redactor{}
		if got := string(r.JSON([]byte(c.in))); got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.in, got, c.want)
		}
	}
}

func TestNoRedactor(t *testing.T) {
	var r *Redactor
	key := "ghp_" + tail(36, anyCase, 4)
	if r.Text(key) != key || r.Lines(key) != key || r.Under("password", key) != key || string(r.JSON([]byte(`"`+key+`"`))) != `"`+key+`"` ||
		r.Texts([]string{key})[0] != key || r.Map(map[string][]string{"a": {key}})["a"][0] != key || r.Counts() != nil {
		t.Error("no redactor takes something out")
	}
}

func TestListsStay(t *testing.T) {
	key := "ghp_" + tail(36, anyCase, 4)
	list, all := []string{"a", key}, map[string][]string{"token": {"b", key}}
	r := &Redactor{}
	if out := r.Texts(list); out[0] != "a" || out[1] != Mark("github-token") || list[1] != key {
		t.Errorf("%q of %q", out, list)
	}
	if out := r.Map(all); out["token"][0] != "b" || out["token"][1] != Mark("github-token") || all["token"][1] != key {
		t.Errorf("%q of %q", out, all)
	}
}

// TestManyTriggers reads texts that are nothing but beginnings. Were one of them
// read again for each, this would not end.
func TestManyTriggers(t *testing.T) {
	for _, piece := range []string{
		"-----BEGIN " + "PRIVATE KEY-----", "PuTTY-User-Key-File-", "PuTTY-User-Key-File-Private-" + "Lines:", "eyJ", "eyJ.", "sk-", "sk-ant-", "ghp_", "://a:", "://a:@", "token=", "token:", "密码是",
		"Bearer ", "bearer a/", "Authorization: Basic ", ":AA", "1:AA", ".atlasv1.", "4111 ", "4", "41-", "AKIA" + strings.Repeat("A", 16), "hooks.slack.com/", "discord.com/api/webhooks/1/",
		"password=\\\"", " -u ", " -u a:", "--password ", "--", "a", "AKIA" + tail(16, capital, 1) + " ",
	} {
		text := strings.Repeat(piece, 1<<20/len(piece))
		(&Redactor{}).Text(text)
	}
}

func FuzzFind(f *testing.F) {
	for _, m := range secrets() {
		f.Add(m.before + m.secret + m.after)
	}
	f.Fuzz(func(t *testing.T, text string) {
		last := 0
		for _, h := range Find(text) {
			if h.Start < last || h.End <= h.Start || h.End > len(text) || h.Rule == "" {
				t.Fatalf("%+v after %d of %d bytes", h, last, len(text))
			}
			last = h.End
		}
		r := &Redactor{}
		clean := r.Text(text)
		if strings.ToValidUTF8(text, "") == text && strings.ToValidUTF8(clean, "") != clean {
			t.Fatalf("%q is no UTF-8 any more: %q", text, clean)
		}
		(&Redactor{}).Lines(text)
		(&Redactor{}).JSON([]byte(text))
		Named(text, text)
	})
}

func BenchmarkFind(b *testing.B) {
	text := strings.Repeat("Low tide on the 3rd of May 2026 was at 06:42; the token of the day, 潮汐表每周更新一次。 See https://example.com/a?page=2.\n", 1000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		Find(text)
	}
}
