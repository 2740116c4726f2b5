//! Paths into JSON: `path.to[0].x`.

use std::borrow::Cow;

use tapegate_core::json::{self, JsonKind};

/// One step from a value to one of its children.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AccessStep {
    /// The member of an object, or with a number the element of an array.
    Key(String),
    /// The element of an array; from its end, if negative.
    Index(i64),
}

/// The JSON text at the end of the path, if it exists.
pub(crate) fn walk<'a>(text: &'a [u8], steps: &[AccessStep]) -> Option<&'a [u8]> {
    steps.iter().try_fold(text, |text, step| match step {
        AccessStep::Index(index) => element(text, *index),
        AccessStep::Key(key) => match text.first()? {
            b'[' => element(text, key.parse().ok()?),
            _ => json::member(text, key),
        },
    })
}

/// The element of an array; from its end, if `index` is negative.
fn element(text: &[u8], index: i64) -> Option<&[u8]> {
    let count = if index < 0 { elements(text)?.len() as i64 } else { 0 };
    let place = usize::try_from(index.checked_add(count)?).ok()?;
    json::elements(text).nth(place)?.ok()
}

/// The elements of an array.
pub(crate) fn elements(text: &[u8]) -> Option<Vec<&[u8]>> {
    let is_array = JsonKind::of(text).ok()? == JsonKind::Array;
    is_array.then(|| json::elements(text).collect::<Result<_, _>>().ok()).flatten()
}

/// How many members an object has.
pub(super) fn members(text: &[u8]) -> Option<usize> {
    let is_object = JsonKind::of(text).ok()? == JsonKind::Object;
    let count = || json::members(text).map(|member| member.map(|_| 1)).sum::<Result<_, _>>().ok();
    is_object.then(count).flatten()
}

/// A value as text: a string decoded, anything else as compact JSON.
pub(crate) fn as_text(text: &[u8]) -> Cow<'_, str> {
    match text.first() {
        Some(b'"') => json::string(text).unwrap_or_default(),
        Some(b'{' | b'[') => match json::compact(text) {
            Cow::Borrowed(text) => String::from_utf8_lossy(text),
            Cow::Owned(text) => Cow::Owned(String::from_utf8_lossy(&text).into_owned()),
        },
        _ => String::from_utf8_lossy(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str, steps: &[AccessStep]) -> Option<String> {
        walk(text.as_bytes(), steps).map(|found| String::from_utf8_lossy(found).into_owned())
    }

    #[test]
    fn steps_lead_into_objects_and_arrays_from_both_ends() {
        let key = |name: &str| AccessStep::Key(name.to_owned());
        let text = r#"{"a":[1,{"b":"x"},null]}"#;
        assert_eq!(at(text, &[key("a"), AccessStep::Index(0)]).as_deref(), Some("1"));
        assert_eq!(
            at(text, &[key("a"), AccessStep::Index(-2), key("b")]).as_deref(),
            Some("\"x\"")
        );
        assert_eq!(at(text, &[key("a"), key("2")]).as_deref(), Some("null"));
        for missing in
            [AccessStep::Index(3), AccessStep::Index(-4), AccessStep::Index(i64::MIN), key("x")]
        {
            assert_eq!(at(text, &[key("a"), missing]), None);
        }
        assert_eq!(at(text, &[AccessStep::Index(0)]), None);
    }
}
