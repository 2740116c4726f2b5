//! A glob matches what the slow and certain way says it matches, whatever it and the name are.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tapegate_policy::glob::Glob;

/// Which prefixes of the name are matched by what has been read of the glob, one star or letter at a time.
fn slow(glob: &[char], name: &[char]) -> Option<bool> {
    let mut reached = vec![false; name.len() + 1];
    reached[0] = true;
    let mut at = 0;
    while at < glob.len() {
        let mut next = vec![false; name.len() + 1];
        if glob[at] == '*' {
            let mut any = false;
            for (place, was) in reached.iter().enumerate() {
                any |= was;
                next[place] = any;
            }
            at += 1;
        } else {
            let (takes, length) = letter(&glob[at..])?;
            for place in 0..name.len() {
                next[place + 1] = reached[place] && takes(name[place]);
            }
            at += length;
        }
        reached = next;
    }
    reached.last().copied()
}

/// What one letter of a glob takes, and how long it is; `None` if it is a class, which is another story.
fn letter(glob: &[char]) -> Option<(Box<dyn Fn(char) -> bool>, usize)> {
    match glob[0] {
        '?' => Some((Box::new(|_| true), 1)),
        '[' => None,
        is => Some((Box::new(move |one| one == is), 1)),
    }
}

fuzz_target!(|texts: (String, String)| {
    let (text, name) = texts;
    let Ok(glob) = Glob::parse(&text) else { return };
    let found = glob.matches(&name);
    let (text, name): (Vec<char>, Vec<char>) = (text.chars().collect(), name.chars().collect());
    if let Some(wanted) = slow(&text, &name) {
        assert_eq!(found, wanted);
    }
});
