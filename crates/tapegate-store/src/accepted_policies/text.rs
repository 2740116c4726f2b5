//! An accepted policy as a JSON object. Its hash covers the names and texts.

use std::collections::BTreeMap;
use std::path::PathBuf;

use tapegate_core::json::{JsonFault, JsonObject, string, whole_object};

use super::{Acceptance, AcceptedPolicy, KnownPath};

/// The hash of a policy's texts: hexadecimal, over every name and text with its length.
pub(super) fn hash(texts: &BTreeMap<String, String>) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in texts.iter().flat_map(|(name, text)| [name, text]) {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.finalize().to_hex().to_string()
}

/// How a copy begins, up to its path, and what follows the path.
const HEAD: &str = "{\"format\":1,\"path\":";
const LINK: &str = ",\"by_link\":";

/// The path of a copy, from its first bytes.
pub(super) fn known_path(head: &[u8]) -> Option<KnownPath> {
    let rest = head.strip_prefix(HEAD.as_bytes())?;
    let mut escaped = false;
    let end = rest.iter().skip(1).position(|byte| {
        let ends = *byte == b'"' && !escaped;
        escaped = *byte == b'\\' && !escaped;
        ends
    })?;
    let (path, rest) = rest.split_at(end + 2);
    let by_link = rest.strip_prefix(LINK.as_bytes()).is_some_and(|rest| rest.starts_with(b"true"));
    Some(KnownPath { path: PathBuf::from(string(path)?.into_owned()), by_link })
}

pub(super) fn write(accepted: &AcceptedPolicy) -> Vec<u8> {
    let texts = accepted.texts.iter();
    let texts = texts.fold(JsonObject::new(), |texts, (name, text)| texts.text(name, text));
    let mut out = JsonObject::new()
        .number("format", 1)
        .text("path", &accepted.path.to_string_lossy())
        .flag("by_link", accepted.by_link)
        .text("how", accepted.how.as_str())
        .text("hash", &accepted.hash())
        .flag("by_person", accepted.by_person)
        .number("accepted_us", accepted.accepted_us)
        .object("texts", texts)
        .finish();
    out.push(b'\n');
    out
}

/// Parses a copy; the error says what is wrong with it.
pub(super) fn read(bytes: &[u8]) -> Result<AcceptedPolicy, &'static str> {
    let not_ours = "it is not JSON as Tapegate writes it";
    let members = members(bytes).map_err(|_| not_ours)?;
    let raw = |key: &str| members.iter().find(|(name, _)| name == key).map(|(_, raw)| *raw);
    let text = |key: &str| raw(key).and_then(string).ok_or(not_ours);
    let number = |key: &str| {
        let number = raw(key).and_then(|raw| std::str::from_utf8(raw).ok());
        number.and_then(|number| number.parse::<i64>().ok()).ok_or(not_ours)
    };
    if number("format")? != 1 {
        return Err("it was written by a newer version of Tapegate");
    }
    let mut texts = BTreeMap::new();
    for (name, raw) in self::members(raw("texts").ok_or(not_ours)?).map_err(|_| not_ours)? {
        texts.insert(name, string(raw).ok_or(not_ours)?.into_owned());
    }
    if text("hash")? != hash(&texts) {
        return Err("its hash does not match its texts");
    }
    let how = Acceptance::from_str_opt(&text("how")?).ok_or(not_ours)?;
    Ok(AcceptedPolicy {
        path: PathBuf::from(text("path")?.into_owned()),
        by_link: raw("by_link") == Some(b"true"),
        accepted_us: number("accepted_us")?,
        how,
        // Earlier versions did not record this for changes that only tighten.
        by_person: raw("by_person").map_or_else(|| how.is_by_person(), |raw| raw == b"true"),
        texts,
    })
}

fn members(text: &[u8]) -> Result<Vec<(String, &[u8])>, JsonFault> {
    let members = whole_object(text)?.into_iter();
    Ok(members.map(|(key, value)| (key.decode().into_owned(), value)).collect())
}
