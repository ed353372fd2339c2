package secretscan

import "strings"

// keyRule is a token that a service marks with a beginning of its own.
type keyRule struct {
	name     string
	prefix   string
	of       class
	min, max int // bytes after the prefix; a max of 0 is none
	// needs says what else those bytes must be.
	needs func(tail string) bool
}

// keyRules are the tokens of services whose documentation tells their form.
// Where prefixes of one byte compete the more exact rule stands first.
func keyRules() []keyRule {
	var rules []keyRule
	add := func(name string, of class, least, most int, needs func(string) bool, prefixes ...string) {
		for _, p := range prefixes {
			rules = append(rules, keyRule{name, p, of, least, most, needs})
		}
	}
	// Clouds.
	add("aws-access-key-id", upperDigit, 16, 16, nil, "AKIA", "ASIA", "ABIA", "ACCA")
	add("google-api-key", word64, 35, 35, varied, "AIza")
	add("google-oauth", dotted, 20, 0, mixed, "ya29.", "GOCSPX-")
	add("alibaba-access-key-id", alnum, 12, 26, mixed, "LTAI")
	add("tencent-secret-id", alnum, 32, 32, mixed, "AKID")
	add("digitalocean-token", hexadecimal, 64, 64, varied, "dop_v1_", "doo_v1_", "dor_v1_")
	add("databricks-token", hexadecimal, 32, 32, varied, "dapi")
	add("flyio-token", base64, 40, 0, mixed, "fm2_", "fm1r_", "fm1a_")
	add("planetscale-token", dotted, 32, 0, mixed, "pscale_tkn_", "pscale_pw_", "pscale_oauth_")
	add("supabase-token", alnum, 40, 0, varied, "sbp_")
	add("supabase-token", underscore, 20, 0, mixed, "sb_secret_")
	add("loci-token", word64, 43, 43, varied, "loci_") // our own
	// Where code lies.
	add("github-token", alnum, 36, 255, varied, "ghp_", "gho_", "ghu_", "ghs_", "ghr_")
	add("github-token", underscore, 60, 255, varied, "github_pat_")
	add("gitlab-token", dotted, 20, 255, varied, "glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glft-", "glsoat-", "glimt-", "glagent-", "gloas-")
	add("npm-token", alnum, 36, 36, varied, "npm_")
	add("pypi-token", word64, 50, 0, varied, "pypi-")
	add("rubygems-token", hexadecimal, 48, 48, varied, "rubygems_")
	add("docker-token", word64, 27, 0, varied, "dckr_pat_", "dckr_oat_")
	add("atlassian-token", word64, 100, 0, varied, "ATATT3", "ATCTT3")
	add("linear-key", alnum, 40, 40, varied, "lin_api_", "lin_oauth_")
	add("postman-key", word64, 50, 70, varied, "PMAK-")
	// Models.
	add("anthropic-key", word64, 24, 0, varied, "sk-ant-")
	add("openrouter-key", hexadecimal, 64, 64, varied, "sk-or-v1-")
	add("langfuse-key", word64, 36, 36, varied, "sk-lf-")
	add("openai-key", word64, 40, 0, varied, "sk-proj-", "sk-svcacct-", "sk-admin-")
	add("openai-key", alnum, 32, 64, mixed, "sk-") // also of services that speak its protocol
	add("huggingface-token", alnum, 30, 60, twoCases, "hf_", "api_org_")
	add("groq-key", alnum, 40, 0, mixed, "gsk_")
	add("replicate-token", alnum, 37, 37, mixed, "r8_")
	add("perplexity-key", alnum, 40, 0, mixed, "pplx-")
	add("xai-key", alnum, 60, 0, mixed, "xai-")
	add("nvidia-key", word64, 60, 0, mixed, "nvapi-")
	add("jina-key", word64, 50, 0, mixed, "jina_")
	add("tavily-key", word64, 24, 0, mixed, "tvly-")
	add("langsmith-key", underscore, 36, 0, mixed, "lsv2_pt_", "lsv2_sk_")
	// Messages and payments.
	add("slack-token", word64, 20, 0, hasDigit, "xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxo-", "xoxc-", "xoxd-", "xoxe-", "xapp-")
	add("slack-token", dotted, 20, 0, hasDigit, "xoxe.xox")
	add("stripe-key", alnum, 16, 0, mixed, "sk_live_", "sk_test_", "rk_live_", "rk_test_")
	add("stripe-key", base64, 32, 0, mixed, "whsec_")
	add("twilio-key", hexadecimal, 32, 32, varied, "SK")
	add("sendgrid-key", dotted, 60, 80, sendgrid, "SG.")
	add("mailgun-key", hexadecimal, 32, 32, varied, "key-")
	add("shopify-token", hexadecimal, 32, 32, varied, "shpat_", "shpca_", "shppa_", "shpss_")
	add("square-token", word64, 22, 60, varied, "sq0atp-", "sq0csp-")
	add("notion-token", alnum, 43, 50, mixed, "ntn_", "secret_")
	// Those who keep watch, and secrets.
	add("grafana-token", base64, 32, 0, mixed, "glc_", "glsa_")
	add("newrelic-key", upperDigit, 27, 27, varied, "NRAK-")
	add("dynatrace-token", dotted, 80, 120, varied, "dt0c01.", "dt0s01.")
	add("vault-token", word64, 24, 0, mixed, "hvs.", "hvb.", "hvr.")
	add("doppler-token", alnum, 40, 44, varied, "dp.pt.", "dp.st.", "dp.ct.", "dp.sa.", "dp.scim.", "dp.audit.")
	add("age-key", upperDigit, 58, 58, varied, "AGE-SECRET-KEY-1")
	return rules
}

// key looks for a token with a beginning of its own.
func (c *scanner) key(k *keyRule, i int) (Hit, bool) {
	if !strings.HasPrefix(c.s[i:], k.prefix) || !c.begins(i) {
		return Hit{}, false
	}
	from := i + len(k.prefix)
	end := c.run(k.of, from)
	for end > from && c.s[end-1] == '.' { // that of the sentence
		end--
	}
	if n := end - from; n < k.min || k.max > 0 && n > k.max || end < len(c.s) && isAlnum(c.s[end]) {
		return Hit{}, false
	}
	// A look at the beginning is enough, and bounds what a text of one token costs.
	if k.needs != nil && !k.needs(c.s[from:min(end, from+looked)]) {
		return Hit{}, false
	}
	if k.name == "aws-access-key-id" {
		c.keyID = end
	}
	return Hit{i, end, k.name}, true
}

// looked is how many bytes of a token are looked at.
const looked = 256

// nearKeyID is how far from the id of an AWS key its secret may stand.
const nearKeyID = 64

// awsSecret looks for the secret that belongs to the id of an AWS key, which has
// no mark but its form and its neighbour.
func (c *scanner) awsSecret(i int) (Hit, bool) {
	if i > c.keyID+nearKeyID {
		c.keyID = 0
		return Hit{}, false
	}
	if i > 0 && base64.has(c.s[i-1]) && c.s[i-1] != '=' {
		return Hit{}, false
	}
	if end := c.run(base64, i); end-i == awsSecretBytes && mixed(c.s[i:end]) && twoCases(c.s[i:end]) {
		return Hit{i, end, ruleAWSSecret}, true
	}
	return Hit{}, false
}

const (
	awsSecretBytes = 40
	ruleAWSSecret  = "aws-secret-access-key"
)

// varied says that a text is no row of the same few characters, such as xxxx or
// 0000, which stand for a key in examples.
func varied(s string) bool { return distinct(s) >= min(8, len(s)/2) }

// mixed is varied for texts that hold letters and digits: words hold no digits.
func mixed(s string) bool { return varied(s) && hasDigit(s) && hasLetter(s) }

// twoCases is varied for texts that hold small and capital letters.
func twoCases(s string) bool {
	return varied(s) && strings.ContainsAny(s, "abcdefghijklmnopqrstuvwxyz") && strings.ContainsAny(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
}

func hasDigit(s string) bool { return strings.ContainsAny(s, "0123456789") }

func hasLetter(s string) bool {
	for i := range len(s) {
		if isAlnum(s[i]) && !isDigit(s[i]) {
			return true
		}
	}
	return false
}

// distinct counts the different bytes of a text.
func distinct(s string) int {
	var seen [256]bool
	n := 0
	for i := range len(s) {
		if !seen[s[i]] {
			seen[s[i]] = true
			n++
		}
	}
	return n
}

// sendgrid says that a token has the two parts that SendGrid's have.
func sendgrid(tail string) bool {
	id, secret, ok := strings.Cut(tail, ".")
	return ok && len(id) >= 20 && len(id) <= 24 && len(secret) >= 40 && !strings.Contains(secret, ".") && mixed(tail)
}
