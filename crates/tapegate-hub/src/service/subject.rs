//! What a message is about, as far as a decision needs it.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

/// The name or URI that a call is about, and its arguments.
#[derive(Debug)]
pub(super) struct Subject<'a> {
    pub(super) name: Cow<'a, str>,
    pub(super) arguments: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Named<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Located<'a> {
    #[serde(borrow)]
    uri: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Completed<'a> {
    #[serde(borrow, rename = "ref")]
    about: About<'a>,
}

#[derive(Deserialize)]
struct About<'a> {
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    uri: Option<Cow<'a, str>>,
}

/// What a gated call is about; `None` if a method is not gated, an error if it is and does not say.
pub(super) fn subject<'a>(
    method: &str,
    params: Option<&'a RawValue>,
) -> Option<Result<Subject<'a>, String>> {
    let text = params.map_or("{}", RawValue::get);
    let found = match method {
        "tools/call" | "prompts/get" => serde_json::from_str(text)
            .map(|Named { name, arguments }| Subject { name, arguments }),
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => {
            serde_json::from_str(text).map(|Located { uri }| Subject { name: uri, arguments: None })
        }
        "completion/complete" => serde_json::from_str(text).and_then(|Completed { about }| {
            let missing = || serde::de::Error::custom("`ref` has neither name nor uri");
            let name = about.name.or(about.uri).ok_or_else(missing)?;
            Ok(Subject { name, arguments: None })
        }),
        _ => return None,
    };
    Some(found.map_err(|error| error.to_string()))
}
