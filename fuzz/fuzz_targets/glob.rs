//! A glob matches exactly what a slow, simple matcher matches.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tapegate_policy::glob::Glob;

/// Matches one star or letter of the glob at a time, and keeps which prefixes of the name match so far.
fn slow_match(glob: &[char], name: &[char]) -> Option<bool> {
    let mut reached = vec![false; name.len() + 1];
    reached[0] = true;
    let mut at = 0;
    while at < glob.len() {
        let mut next = vec![false; name.len() + 1];
        if glob[at] == '*' {
            let mut any = false;
            for (place, was_reached) in reached.iter().enumerate() {
                any |= was_reached;
                next[place] = any;
            }
            at += 1;
        } else {
            let (matches, length) = letter(&glob[at..])?;
            for place in 0..name.len() {
                next[place + 1] = reached[place] && matches(name[place]);
            }
            at += length;
        }
        reached = next;
    }
    reached.last().copied()
}

/// The test for one letter of a glob, and its length; `None` for a class, which is not modelled here.
fn letter(glob: &[char]) -> Option<(Box<dyn Fn(char) -> bool>, usize)> {
    match glob[0] {
        '?' => Some((Box::new(|_| true), 1)),
        '[' => None,
        literal => Some((Box::new(move |letter| letter == literal), 1)),
    }
}

fuzz_target!(|texts: (String, String)| {
    let (text, name) = texts;
    let Ok(glob) = Glob::parse(&text) else { return };
    let matched = glob.matches(&name);
    let (text, name): (Vec<char>, Vec<char>) = (text.chars().collect(), name.chars().collect());
    if let Some(expected) = slow_match(&text, &name) {
        assert_eq!(matched, expected);
    }
});
