//! One reading of a name or URI, to be matched against globs.

use std::ops::Deref;

use super::PolicyCall;
use crate::command_rules::CommandSubject;
use crate::glob::Glob;
use crate::uri::other_host_form;

/// One reading of a name or URI.
#[derive(Debug, Clone)]
pub(crate) struct NameReading<'a> {
    read: &'a str,
    /// The name as written in the call.
    written: &'a str,
    /// Shorter forms of a URI that many servers treat as the same: without fragment, query and
    /// trailing slash.
    shortened: [Option<&'a str>; 3],
    is_uri: bool,
}

impl<'a> NameReading<'a> {
    pub(crate) fn new(read: &'a str, written: &'a str, is_uri: bool) -> Self {
        // A text without a scheme or path is a plain name to every reader, and names have no query.
        let is_path = |short: &&str| short.contains([':', '/']);
        let shortened = if is_uri { shortened_forms_of(read) } else { [None; 3] };
        let shortened = shortened.map(|short| short.filter(is_path));
        Self { read, written, shortened, is_uri }
    }

    /// The shorter forms of a URI that many servers treat as the same.
    pub(super) fn shortened_forms(&self) -> impl Iterator<Item = &'a str> {
        self.shortened.into_iter().flatten()
    }

    /// Whether a glob that permits calls matches: exactly, as written. Another reading may also
    /// match what the glob becomes when it is read in the same way.
    pub(crate) fn must_match(&self, glob: &Glob) -> bool {
        // A permit is about the written text: a lenient comparison here would widen an allowlist.
        if self.read == self.written {
            return glob.matches(self.read);
        }
        // A glob that spells out the whole name permits it under every reading.
        glob.matches_decoded(self.read)
            || glob.is_plain() && glob.matches(self.written)
            || self.read.strip_suffix('/').is_some_and(|read| glob.matches_decoded(read))
            || self.other_form().is_some_and(|other| glob.matches_decoded(&other))
    }

    /// Whether a glob that stops calls matches, in any spelling.
    pub(crate) fn may_match(&self, glob: &Glob) -> bool {
        glob.matches_decoded(self.read)
            || self.shortened.iter().flatten().any(|short| glob.matches_decoded(short))
            || self.other_style().is_some_and(|other| glob.matches_decoded(&other))
            || self.other_form().is_some_and(|other| {
                let mut short = shortened_forms_of(&other).into_iter().flatten();
                glob.matches_decoded(&other) || short.any(|short| glob.matches_decoded(short))
            })
    }

    /// The other name of a tool of `tapegate bash`, which answers to both.
    fn other_style(&self) -> Option<String> {
        let rest = self.read.strip_prefix("bash_recorder").filter(|_| !self.is_uri)?;
        match rest.split_at_checked(1)? {
            (".", tool) => Some(format!("bash_recorder_{tool}")),
            ("_", tool) => Some(format!("bash_recorder.{tool}")),
            _ => None,
        }
    }

    /// The same URI with its host in the other form, Unicode or Punycode.
    fn other_form(&self) -> Option<String> {
        if self.is_uri { other_host_form(self.read) } else { None }
    }
}

/// The shorter forms of a URI that many servers treat as the same.
pub(crate) fn shortened_forms_of(uri: &str) -> [Option<&str>; 3] {
    let mut rest = uri;
    let mut cut = |end: Option<usize>| {
        rest = &rest[..end?];
        Some(rest)
    };
    let fragment = cut(uri.find('#'));
    let query = cut(fragment.unwrap_or(uri).find('?'));
    let path = query.or(fragment).unwrap_or(uri);
    [fragment, query, cut(path.ends_with('/').then(|| path.trim_end_matches('/').len()))]
}

/// A call under one reading of its name.
#[derive(Debug, Clone)]
pub(super) struct NamedCall<'a> {
    call: PolicyCall<'a>,
    /// The reading of its name.
    pub(super) as_read: NameReading<'a>,
    /// The command of the call that is decided about, if it has any.
    pub(super) command: Option<&'a CommandSubject>,
}

impl<'a> NamedCall<'a> {
    /// The call with its name as written.
    pub(super) fn as_written(call: &PolicyCall<'a>, is_uri: bool) -> Self {
        let as_read = NameReading::new(call.name, call.name, is_uri);
        Self { call: call.clone(), as_read, command: None }
    }

    /// The same call, as far as it runs this command.
    pub(super) fn about(&self, command: &'a CommandSubject) -> Self {
        Self { command: Some(command), ..self.clone() }
    }

    /// The call with this reading of its name.
    pub(super) fn read(call: &PolicyCall<'a>, reading: &'a str, is_uri: bool) -> Self {
        let as_read = NameReading::new(reading, call.name, is_uri);
        Self { call: PolicyCall { name: reading, ..call.clone() }, as_read, command: None }
    }
}

impl<'a> Deref for NamedCall<'a> {
    type Target = PolicyCall<'a>;

    fn deref(&self) -> &PolicyCall<'a> {
        &self.call
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_many_servers_ignore_of_a_uri_is_cut_off() {
        for (uri, cuts) in [
            ("x://a", [None, None, None]),
            ("x://a#b?c", [Some("x://a"), None, None]),
            ("x://a?b#c", [Some("x://a?b"), Some("x://a"), None]),
            ("x://a/?b#c", [Some("x://a/?b"), Some("x://a/"), Some("x://a")]),
            ("x://a//", [None, None, Some("x://a")]),
        ] {
            assert_eq!(shortened_forms_of(uri), cuts, "{uri}");
        }
    }

    #[test]
    fn a_glob_that_stops_takes_any_spelling_and_one_that_forwards_the_written_one() {
        for (glob, read, written, must, may) in [
            ("x://a b", "x://a b", "x://a b", true, true),
            ("x://a%20b", "x://a b", "x://a b", false, true),
            ("x://a%20b", "x://a b", "x://a%20b", true, true),
            ("x://a%20b/*", "x://a b/c", "x://a%20b/c", true, true),
            ("x://a+b", "x://z", "x://a+b", true, false),
            ("x://a", "x://a?b", "x://a?b", false, true),
            ("x://a?b", "x://a", "x://a", false, false),
            ("*.münchen.de/x", "http://a.xn--mnchen-3ya.de/x", "http://a.münchen.de/x", true, true),
            ("*.münchen.de/x", "http://a.xn--mnchen-3ya.de/x?y", "", false, true),
            ("x://*.xn--mnchen-3ya.de", "x://a.münchen.de", "x://a.münchen.de", false, true),
            ("a", "a?b", "a?b", false, false),
            ("a", "a/", "a/", false, false),
            ("/a", "/a?b", "/a?b", false, true),
        ] {
            let glob = Glob::parse(glob).unwrap();
            let name = NameReading::new(read, written, true);
            assert_eq!((name.must_match(&glob), name.may_match(&glob)), (must, may), "{glob:?}");
        }
    }
}
