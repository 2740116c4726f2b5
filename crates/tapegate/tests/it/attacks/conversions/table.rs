//! Arguments by type, each with a rule about it and unusual ways to write it.

use serde_json::{Value, json};

/// A tool with one argument, a rule about it, and ways to write that argument.
pub(super) struct ConversionRow {
    pub(super) tool: &'static str,
    /// The condition of a rule, as YAML.
    pub(super) test: &'static str,
    /// Whether the rule covers the value that the server has read.
    pub(super) is_about: fn(&Value) -> bool,
    /// Ways to write the argument as JSON.
    pub(super) spellings: &'static [&'static str],
    /// Ways to write it that no server reads as a value the rule covers.
    pub(super) plain: &'static [&'static str],
}

pub(super) const TABLE: &[ConversionRow] = &[
    ConversionRow {
        tool: "a_bool",
        test: "value: true",
        is_about: |read| read == &json!(true),
        spellings: &[
            "true",
            "\"true\"",
            "\"True\"",
            "\"TRUE\"",
            "\"yes\"",
            "\"Y\"",
            "\"on\"",
            "\"t\"",
            "1",
            "1.0",
            "1e0",
            "\"1\"",
            "\" true \"",
            "[true]",
            "\"[true]\"",
            "\"\\\"true\\\"\"",
            "{\"a\":1}",
            "\"1.0\"",
            "\"enabled\"",
            "2",
            "-1",
            "\"false\"",
        ],
        plain: &["false", "0"],
    },
    ConversionRow {
        tool: "an_optional",
        test: "value: false",
        is_about: |read| read == &json!(false),
        spellings: &[
            "false",
            "\"false\"",
            "\"off\"",
            "\"N\"",
            "\"no\"",
            "\"f\"",
            "0",
            "0.0",
            "-0",
            "\"0\"",
            "null",
            "\"\"",
            "[]",
            "\"null\"",
        ],
        plain: &["true", "1"],
    },
    ConversionRow {
        tool: "an_int",
        test: "value: 5000",
        is_about: |read| read == &json!(5000),
        spellings: &[
            "5000",
            "5000.0",
            "5e3",
            "50000E-1",
            "\"5000\"",
            "\" 5000 \"",
            "\"+5000\"",
            "\"005000\"",
            "\"5_000\"",
            "\"5000.0\"",
            "\"5e3\"",
            "\"0x1388\"",
            "\"0b1001110001000\"",
            "\"0o11610\"",
            "[5000]",
            "\"[5000]\"",
            "[\"5000\"]",
            "\"5000\\n\"",
            "\"\u{ff15}\u{ff10}\u{ff10}\u{ff10}\"",
        ],
        plain: &["4999", "\"17\""],
    },
    ConversionRow {
        tool: "a_float",
        test: "value: { min: 1000 }",
        is_about: |read| number(read).is_some_and(|number| number >= 1000.0),
        spellings: &[
            "1000",
            "1e3",
            "1000.5",
            "\"5000\"",
            "\"5e3\"",
            "\" 5e3\"",
            "\"inf\"",
            "\"Infinity\"",
            "\"+inf\"",
            "\"1e400\"",
            "\"5_000\"",
            "\"5000.\"",
            "99999999999999999999999",
            "[5000]",
            "\"0x1388\"",
            "\"[5000]\"",
        ],
        plain: &["99.5", "\"12\""],
    },
    ConversionRow {
        tool: "a_str",
        test: "value: main",
        is_about: |read| read.as_str().is_some_and(|text| text.trim() == "main"),
        spellings: &[
            "\"main\"",
            "\" main\"",
            "\"main\\n\"",
            "\"m\\u0061in\"",
            "[\"main\"]",
            "[[\"main\"]]",
            "\"\\tmain \"",
        ],
        plain: &["\"topic\"", "\"mainline\"", "5"],
    },
    ConversionRow {
        tool: "a_list",
        test: "\"value[*]\": \"/etc/*\"",
        is_about: |read| {
            read.as_array().is_some_and(|all| {
                all.iter().any(|one| is_text(one, |text| text.starts_with("/etc/")))
            })
        },
        spellings: &[
            "[\"/etc/passwd\"]",
            "[\"/data/a\",\"/etc/passwd\"]",
            "\"[\\\"/etc/passwd\\\"]\"",
            "\"  [\\\"/data\\\", \\\"/etc/passwd\\\"]\"",
            "\"/etc/passwd\"",
            "\"/data/a,/etc/passwd\"",
            "\"/data/a , /etc/passwd\"",
            "[[\"/etc/passwd\"]]",
            "\"\\\"/etc/passwd\\\"\"",
            "{\"0\":\"/etc/passwd\"}",
        ],
        plain: &["[\"/data/a\"]", "[]", "\"[\\\"/data/a\\\"]\""],
    },
    ConversionRow {
        tool: "a_path",
        test: "value: { under: /etc }",
        is_about: |read| {
            // A `file:` URI counts as its path, even if a server takes it for a name.
            let path = read.as_str().unwrap_or_default();
            let path = path.strip_prefix("file:").unwrap_or(path);
            path == "/etc" || path.starts_with("/etc/") || path.starts_with("//etc/")
        },
        spellings: &[
            "\"/etc/passwd\"",
            "\"/etc\"",
            "\"/etc/\"",
            "\"//etc/passwd\"",
            "\"/./etc/passwd\"",
            "\"/data/../etc/passwd\"",
            "\"/data/..//./etc/passwd\"",
            "\"/../etc/passwd\"",
            "\"file:///etc/passwd\"",
            "\"file:///data/../etc/passwd\"",
            "\"/%65tc/passwd\"",
            "\"/data/%2e%2e/etc/passwd\"",
            "\"%2Fetc%2Fpasswd\"",
            "[\"/etc/passwd\"]",
            "\" /etc/passwd\"",
            "\"etc/passwd\"",
            "\"../etc/passwd\"",
        ],
        plain: &["\"/data/etc/a\"", "\"/etcetera\""],
    },
    ConversionRow {
        tool: "an_enum",
        test: "value: { in: [write, 5] }",
        is_about: |read| read == &json!("write") || read == &json!(5),
        spellings: &[
            "\"write\"",
            "\"wr\\u0069te\"",
            "\" write\"",
            "[\"write\"]",
            "5",
            "5.0",
            "\"5\"",
            "\"WRITE\"",
            "\"\\\"write\\\"\"",
        ],
        plain: &["\"read\""],
    },
    ConversionRow {
        tool: "a_model",
        test: "value.amount: { min: 1000 }",
        is_about: |read| number(&read["amount"]).is_some_and(|number| number >= 1000.0),
        spellings: &[
            "{\"amount\":5000}",
            "{\"amount\":\"5000\"}",
            "\"{\\\"amount\\\":5000}\"",
            "\"{\\\"amount\\\":\\\"5_000\\\"}\"",
            "{\"amount\":\" 5000\"}",
            "{\"amount\":5e3}",
            "\" {\\\"amount\\\": [5000]}\"",
            "[{\"amount\":5000}]",
            "{\"Amount\":5000}",
            "{\"amount\":[5000]}",
        ],
        plain: &["{\"amount\":5}", "\"{\\\"amount\\\":\\\"7\\\"}\""],
    },
];

fn number(read: &Value) -> Option<f64> {
    read.as_f64().or_else(|| read.as_str()?.parse().ok())
}

fn is_text(read: &Value, is: impl Fn(&str) -> bool) -> bool {
    read.as_str().is_some_and(is)
}
