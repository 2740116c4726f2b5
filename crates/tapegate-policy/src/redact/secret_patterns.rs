//! The formats of well-known secrets: a flat list.
//!
//! Each pattern has keywords without which it cannot match; its expression is compiled and run only
//! on a text that contains one of them. The first group of an expression is the secret; without a
//! group, the whole match is. A distinctive prefix needs no word boundary before it, so that a `\n`
//! in a text that is itself escaped JSON does not hide what follows.

use super::pattern_search::SecretPattern;

/// All built-in patterns. Several may share a name; where two match the same text, the earlier
/// names it.
pub(super) static PATTERNS: [SecretPattern; 28] = [
    SecretPattern::new(
        "private-key",
        &["PRIVATE KEY", "AGE-SECRET-KEY-1"],
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----[\s\S]*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\z)|AGE-SECRET-KEY-1[0-9A-Z]{20,}",
    ),
    SecretPattern::with_check(
        "url-credentials",
        &["://", r":\/\/"],
        r#"(?:://|:\\/\\/)([^\x00-\x20/?#"'<>\\`]+)@"#,
        is_login,
    ),
    SecretPattern::new("anthropic", &["sk-ant-"], r"sk-ant-[A-Za-z0-9_-]{16,}"),
    SecretPattern::with_check(
        "openai",
        &["sk-"],
        r"(?:^|[^A-Za-z0-9_-]|\\[nrt])(sk-[A-Za-z0-9_-]{20,})",
        is_mixed,
    ),
    SecretPattern::new(
        "github",
        &["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"],
        r"gh[pousr]_[A-Za-z0-9_]{20,}(?:\.[A-Za-z0-9_-]{16,})*|github_pat_[A-Za-z0-9_]{20,}",
    ),
    SecretPattern::new(
        "gitlab",
        &[
            "glpat-", "gldt-", "glrt-", "glrtr-", "glcbt-", "glptt-", "glft-", "glimt-",
            "glagent-", "gloas-", "glsoat-",
        ],
        r"gl(?:pat|dt|rtr?|cbt|ptt|ft|imt|agent|oas|soat)-[A-Za-z0-9_-]{16,}(?:\.[A-Za-z0-9_-]{2,})*",
    ),
    SecretPattern::new(
        "aws",
        &["AKIA", "ASIA", "ABIA", "ACCA"],
        r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16,}",
    ),
    SecretPattern::new(
        "aws",
        &["aws_secret_access_key", "AWS_SECRET_ACCESS_KEY", "ecretAccessKey"],
        r#"(?:aws_secret_access_key|AWS_SECRET_ACCESS_KEY|[Ss]ecretAccessKey)[\\"']*\s*[:=]\s*[\\"']*([A-Za-z0-9/+=]{30,})"#,
    ),
    SecretPattern::new(
        "google",
        &["AIza", "ya29.", "GOCSPX-", "1//0"],
        r"AIza[A-Za-z0-9_-]{30,}|ya29\.[A-Za-z0-9._-]{20,}|GOCSPX-[A-Za-z0-9_-]{20,}|1//0[A-Za-z0-9_-]{30,}",
    ),
    SecretPattern::new(
        "azure",
        &["AccountKey=", "SharedAccessKey=", "sig="],
        r"(?:AccountKey|SharedAccessKey)=([A-Za-z0-9+/]{40,}={0,2})|[?&]sig=([A-Za-z0-9%+/_-]{40,}=?)",
    ),
    SecretPattern::new(
        "slack",
        &["xox", "xapp-", "hooks.slack.com"],
        r"xox[a-z](?:\.xox[a-z])?-[A-Za-z0-9-]{10,}|xapp-[0-9]+-[A-Za-z0-9-]{10,}|hooks\.slack\.com/((?:services|workflows|triggers)/[A-Za-z0-9/_+-]{16,})",
    ),
    SecretPattern::new(
        "stripe",
        &["sk_live_", "sk_test_", "rk_live_", "rk_test_", "whsec_"],
        r"[sr]k_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9+/=]{20,}",
    ),
    SecretPattern::new("npm", &["npm_"], r"npm_[A-Za-z0-9]{30,}"),
    SecretPattern::new("pypi", &["pypi-"], r"pypi-[A-Za-z0-9_-]{40,}"),
    SecretPattern::new("huggingface", &["hf_"], r"hf_[A-Za-z0-9]{30,}"),
    SecretPattern::new(
        "digitalocean",
        &["do_v1_", "dop_v1_", "doo_v1_", "dor_v1_"],
        r"do[por]?_v1_[a-f0-9]{40,}",
    ),
    SecretPattern::new("sendgrid", &["SG."], r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    SecretPattern::new(
        "shopify",
        &["shpat_", "shpca_", "shppa_", "shpss_"],
        r"shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{32,}",
    ),
    SecretPattern::new("vault", &["hvs.", "hvb.", "hvr."], r"hv[sbr]\.[A-Za-z0-9_-]{20,}"),
    SecretPattern::new("telegram", &[":AA"], r"[0-9]{8,10}:AA[A-Za-z0-9_-]{30,}"),
    SecretPattern::new("docker", &["dckr_pat_"], r"dckr_pat_[A-Za-z0-9_-]{20,}"),
    SecretPattern::new("atlassian", &["ATATT3", "ATCTT3"], r"AT[AC]TT3[A-Za-z0-9_=-]{40,}"),
    SecretPattern::new(
        "linear",
        &["lin_api_", "lin_oauth_"],
        r"lin_(?:api|oauth)_[A-Za-z0-9]{30,}",
    ),
    SecretPattern::new("notion", &["ntn_"], r"ntn_[A-Za-z0-9]{30,}"),
    SecretPattern::new("groq", &["gsk_"], r"gsk_[A-Za-z0-9]{40,}"),
    SecretPattern::new("jwt", &["eyJ"], r"eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]+){1,4}"),
    SecretPattern::with_check(
        "bearer",
        &["Bearer", "bearer", "BEARER"],
        r"(?i:bearer)(?:\s|%20|\+)+([A-Za-z0-9._~+/=-]{16,})",
        is_mixed,
    ),
    SecretPattern::new(
        "bearer",
        &["uthorization", "UTHORIZATION"],
        r#"(?i:authorization)[\\"']*\s*[:=]\s*[\\"']*(?i:basic|token|bearer|digest|apikey)?\s+([A-Za-z0-9._~+/=-]{8,})"#,
    ),
];

/// Whether the userinfo of a URL has a password, or is itself a token; a user name alone is not a
/// secret.
fn is_login(userinfo: &str) -> bool {
    match userinfo.split_once(':') {
        Some((_, password)) => !password.is_empty(),
        None => userinfo.len() >= 16 && is_mixed(userinfo),
    }
}

/// Whether letters and digits both occur: random text has both, words joined by dashes do not.
fn is_mixed(text: &str) -> bool {
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    digits > 0 && digits < text.len() && text.bytes().any(|byte| byte.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::super::pattern_search::SecretPatterns;
    use super::*;

    /// A secret of each format, assembled here so that no scanner takes this file for a leak.
    fn samples() -> Vec<(&'static str, String)> {
        let letters = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0";
        let hex = "0123456789abcdef".repeat(4);
        let upper = "ABCDEFGH23456789";
        let of = |name, prefix: &str, rest: &str| (name, format!("{prefix}{rest}"));
        vec![
            of("anthropic", "sk-ant-", &format!("api03-{letters}")),
            of("openai", "sk-", letters),
            of("openai", "sk-proj-", letters),
            of("github", "ghp_", letters),
            of("github", "ghs_", letters),
            of("github", "github_pat_", &format!("11A_{letters}")),
            of("gitlab", "glpat-", letters),
            of("gitlab", "glrt-", letters),
            of("aws", "AKIA", upper),
            of("aws", "ASIA", upper),
            of("google", "AIza", &letters[..35]),
            of("google", "ya29.", letters),
            of("google", "GOCSPX-", letters),
            of("google", "1//0", letters),
            of("slack", "xoxb-", "123456789012-123456789012-abcdefABCDEF"),
            of("slack", "xapp-", "1-A012-3456-abcdef0123"),
            of("stripe", "sk_live_", letters),
            of("stripe", "whsec_", letters),
            of("npm", "npm_", &letters[..36]),
            of("pypi", "pypi-", &letters.repeat(2)),
            of("huggingface", "hf_", letters),
            of("digitalocean", "dop_v1_", &hex),
            of("sendgrid", "SG.", &format!("{}.{letters}", &letters[..22])),
            of("shopify", "shpat_", &hex[..32]),
            of("vault", "hvs.", letters),
            of("telegram", "123456789:AA", &letters[..33]),
            of("docker", "dckr_pat_", letters),
            of("atlassian", "ATATT3", &letters.repeat(3)),
            of("linear", "lin_api_", letters),
            of("notion", "ntn_", letters),
            of("groq", "gsk_", &letters.repeat(2)),
            of("jwt", "eyJ", "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl"),
            of("private-key", "AGE-SECRET-KEY-1", &upper.repeat(3)),
            of(
                "private-key",
                "-----BEGIN RSA ",
                "PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----",
            ),
            of("private-key", "-----BEGIN ", "PRIVATE KEY-----\\nMII cut off"),
        ]
    }

    #[test]
    fn every_pattern_compiles() {
        for shape in &PATTERNS {
            assert!(shape.compiles(), "{}", shape.name);
        }
    }

    #[test]
    fn every_shape_is_found_alone_and_among_other_text() {
        let all = SecretPatterns::all();
        for (name, secret) in samples() {
            for (before, after) in
                [("", ""), ("it is ", ""), ("\"", "\""), ("é=", "\u{2028}"), ("x\\n", "\\n")]
            {
                let open = name == "private-key" && !secret.contains("END");
                let after = if open { "" } else { after };
                let text = format!("{before}{secret}{after}");
                let found = all.hits(&text);
                assert_eq!(found.len(), 1, "{text}");
                assert_eq!(
                    (&text[found[0].span.clone()], found[0].name),
                    (secret.as_str(), name),
                    "{text}"
                );
            }
        }
    }

    #[test]
    fn every_name_has_a_sample_or_a_case_below() {
        let sampled: Vec<_> = samples().into_iter().map(|(name, _)| name).collect();
        for shape in &PATTERNS {
            let below = matches!(shape.name, "url-credentials" | "bearer" | "azure");
            assert!(below || sampled.contains(&shape.name), "{}", shape.name);
        }
    }

    #[test]
    fn only_the_secret_part_is_taken() {
        let all = SecretPatterns::all();
        for (text, secret) in [
            ("postgres://app:p@ss:w0rd@db:5432/x", "app:p@ss:w0rd"),
            (r"https:\/\/u:pw@host", "u:pw"),
            ("Authorization: Bearer abcdefgh12345678=", "abcdefgh12345678="),
            ("authorization: Basic dXNlcjpwdw==", "dXNlcjpwdw=="),
            ("bearer%20abcdefgh12345678", "abcdefgh12345678"),
            (
                "AccountKey=0123456789012345678901234567890123456789ab==;x",
                "0123456789012345678901234567890123456789ab==",
            ),
            (
                "https://b.example/c?sv=1&sig=0123456789012345678901234567890123456789ab%3D",
                "0123456789012345678901234567890123456789ab%3D",
            ),
            ("https://hooks.slack.com/services/T000/B000/abcdefgh", "services/T000/B000/abcdefgh"),
            (
                "aws_secret_access_key = abcdefghij0123456789abcdefghij0123456789",
                "abcdefghij0123456789abcdefghij0123456789",
            ),
        ] {
            let found = all.hits(text);
            assert_eq!(found.len(), 1, "{text}");
            assert_eq!(&text[found[0].span.clone()], secret);
        }
    }

    #[test]
    fn ordinary_text_is_no_secret() {
        let all = SecretPatterns::all();
        for text in [
            "https://example.com/a@b?c=d",
            "ssh://git@github.com/x",
            "mailto:someone@example.com",
            "task-management-for-large-teams-of-people",
            "sk-fading-circle-of-something-long",
            "the bearer of this-very-long-letter-here",
            "Bearer token required",
            "npm_config_registry",
            "eyJ is how they start",
            "xoxo",
            "AKIA is a prefix",
            "-----BEGIN PUBLIC KEY-----\nMII\n-----END PUBLIC KEY-----",
            "-----BEGIN CERTIFICATE-----",
        ] {
            assert!(all.hits(text).is_empty(), "{text}");
        }
    }
}
