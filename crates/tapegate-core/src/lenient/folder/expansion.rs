//! Shell expansion of paths, as done by a shell or by a server that expands paths itself.
//!
//! Most servers open a path as it is. So variables, braces and wildcards are taken literally, unless their
//! expansion could lead out of a folder that permits calls or into one that blocks them. The values of
//! variables are unknown; they are assumed to be names without `..`, or empty.

use crate::wildcard::{self, UnclosedBracket};

/// Whether the expansion of a path may lead elsewhere than the path seems to.
pub(super) fn may_lead_elsewhere(path: &str) -> bool {
    // Most paths have nothing to expand, and no quotes to remove.
    if !path.bytes().any(is_syntax) {
        return false;
    }
    let climbs = || path.split('/').any(|step| step == "..");
    runs_code(path)
        || braces(path).is_some_and(|braces| braces.contains('.'))
        || path.split('/').any(|step| is_brace_of_dots(step) || expands_to_dots(step))
        || path.split('/').any(may_be_anything) && climbs()
}

fn is_syntax(byte: u8) -> bool {
    matches!(byte, b'$' | b'`' | b'{' | b'*' | b'?' | b'[' | b'%' | b'"' | b'\'' | b'\\')
}

/// Whether a step of a path may expand to another name, several steps, or none.
fn may_be_anything(step: &str) -> bool {
    step.contains(['$', '`'])
        || step.contains("**")
        // A choice may continue in the next step.
        || step.contains(['{', '}']) && (step.contains(',') || !step.contains('}'))
        || has_percent_name(step)
}

/// Whether a shell would compute a part of a path: by a command, or by more than a variable name.
fn runs_code(path: &str) -> bool {
    let computed = |(at, _): (usize, &str)| {
        let body = &path[at + 2..];
        body.find('}').is_none_or(|end| !body[..end].chars().all(is_name_letter))
    };
    path.contains('`') || path.contains("$(") || path.match_indices("${").any(computed)
}

/// Everything from the first brace to the last, if it is a choice or a sequence.
fn braces(path: &str) -> Option<&str> {
    let (start, end) = (path.find('{')?, path.rfind('}')?);
    let inside = path.get(start..end)?;
    (inside.contains(',') || inside.contains("..")).then_some(inside)
}

/// Whether a choice with dots around it may expand to `..`: `.{,a}.`.
fn is_brace_of_dots(step: &str) -> bool {
    step.contains('{') && (step.contains("..") || step.contains('.') && step.contains(','))
}

/// Whether a step is `.` or `..` if variables are empty and wildcards match dots.
fn expands_to_dots(step: &str) -> bool {
    let rest = without_syntax(step);
    rest.len() < step.len() && !rest.is_empty() && rest.bytes().all(|byte| byte == b'.')
}

/// A step without variables, wildcards, braces and quotes.
fn without_syntax(step: &str) -> String {
    let mut out = String::new();
    let mut rest = step;
    while let Some(letter) = rest.chars().next() {
        let after = &rest[letter.len_utf8()..];
        let name_end = |text: &str| text.find(|one| !is_name_letter(one)).unwrap_or(text.len());
        rest = match letter {
            '$' if after.starts_with('{') => after.split_once('}').map_or("", |(_, rest)| rest),
            '$' => &after[name_end(after)..],
            '%' if has_percent_name(rest) && name_end(after) > 0 => {
                after[name_end(after)..].strip_prefix('%').unwrap_or(after)
            }
            '[' => after.split_once(']').map_or(after, |(_, rest)| rest),
            '*' | '?' | '{' | '}' | ',' | '"' | '\'' | '\\' => after,
            letter => {
                out.push(letter);
                after
            }
        };
    }
    out
}

/// Whether there is a variable in Windows notation: `%NAME%`.
fn has_percent_name(step: &str) -> bool {
    step.match_indices('%').any(|(at, _)| {
        let name = step[at + 1..].split_once('%').map_or("", |(name, _)| name);
        name.starts_with(|first: char| first.is_ascii_alphabetic())
            && name.chars().all(is_name_letter)
    })
}

fn is_name_letter(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '_' | ':')
}

/// Whether the expansion of a path may lead to a folder or into it. Both are given as folded steps.
pub(super) fn may_lead_into(folder: &[String], steps: &[String]) -> bool {
    let mut steps = steps.iter();
    for wanted in folder {
        match steps.next() {
            Some(step) if may_be_anything(step) => return true,
            Some(step) if may_be(step, wanted) => {}
            _ => return false,
        }
    }
    true
}

/// Whether a step with wildcards may match this name.
fn may_be(step: &str, name: &str) -> bool {
    if step == name || !step.contains(['*', '?', '[']) {
        return step == name;
    }
    wildcard::matches(&wildcard::shell(step, UnclosedBracket::Literal), name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_strays_if_what_it_expands_to_may_lead_up() {
        for path in [
            "/data/{x,../../etc}/passwd",
            "/data/{a/b,..}/x",
            "/data/.{,x}./etc",
            "/data/.$x./etc",
            "/data/.${x}./etc",
            "/data/..$x/etc",
            "/data/.%x%./etc",
            "/data/${x:-..}/etc",
            "/data/$(echo ..)/etc",
            "/data/`echo ..`/etc",
            "/data/$x/../etc",
            "/data/**/../etc",
            "/data/{,x}/../etc",
            "/data/%x%/../etc",
            "/data/.?/etc",
            "/data/.*/etc",
            "/data/.[.]/etc",
            "/data/.\"\"./etc",
            "/data/.\\./etc",
        ] {
            assert!(may_lead_elsewhere(path), "{path}");
        }
        for path in [
            "/data/a",
            "/data/../a",
            "/data/$id.tsx",
            "/data/[id]/page.tsx",
            "/data/[...slug]/a",
            "/data/Foo$Bar.class",
            "/data/{{name}}.txt",
            "/data/${name}.txt",
            "/data/*.txt",
            "/data/[id]/../x",
            "/data/a%20b/../c",
            "/data/100%",
            "/data/it's",
            "/data/a?b=c",
            "/data/.../x",
        ] {
            assert!(!may_lead_elsewhere(path), "{path}");
        }
    }

    #[test]
    fn wildcards_may_be_the_names_that_they_match() {
        let lead = |folder: &str, path: &str| {
            let steps = |text: &str| text.split('/').map(str::to_owned).collect::<Vec<_>>();
            may_lead_into(&steps(folder), &steps(path))
        };
        for path in [
            "et?/x",
            "e*",
            "*/x",
            "[e]tc",
            "**",
            "$x/y",
            "a{b,c}",
            "{etc/x,y}",
            "%x%/y",
            "`x`",
            "etc",
        ] {
            assert!(lead("etc", path), "{path}");
        }
        for path in ["et?x", "?/etc", "a*", "etcetera", "[e", "{{x}}", "%x/y"] {
            assert!(!lead("etc", path), "{path}");
        }
        assert!(lead("home/me/.ssh", "home/*/.s*/id") && !lead("home/me/.ssh", "home/*"));
        assert!(lead("[id]", "[id]") && !lead("[id]", "[ie]"));
    }
}
