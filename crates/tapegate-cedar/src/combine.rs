//! Combinations of the readings of several arguments.

use cedar_policy::RestrictedExpression;

use crate::value::{Alternatives, Arguments, Members, Misfit, Shown, record};

/// The maximum number of combinations for one call.
const COMBINATIONS_MAX: usize = 256;
/// How many characters of a reading a message shows.
const WORDS_MAX: usize = 80;

/// All combinations of readings, except the one in which every argument is read as written.
pub(crate) struct Combinations<'a> {
    alternatives: &'a [Alternatives],
    next: usize,
    count: usize,
}

/// One combination: the arguments that are read differently, each with its reading.
pub(crate) struct Combination<'a> {
    chosen: Vec<(&'a [String], &'a (String, RestrictedExpression))>,
}

impl<'a> Combinations<'a> {
    /// Removes all alternatives if they have too many combinations, and returns them as misfits.
    pub(crate) fn limit(alternatives: &mut Vec<Alternatives>) -> Vec<Misfit> {
        let count = count(alternatives);
        if count <= COMBINATIONS_MAX {
            return Vec::new();
        }
        let misfit = |one: Alternatives| Misfit {
            path: one.path,
            why: "it and others can be read in too many ways".to_owned(),
            climbs: false,
        };
        alternatives.drain(..).map(misfit).collect()
    }

    pub(crate) fn of(alternatives: &'a [Alternatives]) -> Self {
        Self { alternatives, next: 1, count: count(alternatives) }
    }
}

fn count(alternatives: &[Alternatives]) -> usize {
    let each = alternatives.iter().map(|one| one.readings.len() + 1);
    each.fold(1, usize::saturating_mul)
}

impl<'a> Iterator for Combinations<'a> {
    type Item = Combination<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut number = Some(self.next).filter(|next| *next < self.count)?;
        self.next += 1;
        let mut chosen = Vec::new();
        for one in self.alternatives {
            let options = one.readings.len() + 1;
            let reading = (number % options).checked_sub(1).and_then(|at| one.readings.get(at));
            chosen.extend(reading.map(|reading| (&one.path[..], reading)));
            number /= options;
        }
        Some(Combination { chosen })
    }
}

impl Combination<'_> {
    /// The arguments in this combination.
    pub(crate) fn readings(&self, made: &Arguments) -> Option<RestrictedExpression> {
        let mut members = made.members.clone();
        for (path, (_, value)) in &self.chosen {
            put(&mut members, path, value.clone());
        }
        record(members)
    }

    /// What is read differently, as text to follow "as".
    pub(crate) fn words(&self) -> String {
        let say = |(path, (words, _)): &(&[String], &(String, RestrictedExpression))| {
            let words: String = words.chars().take(WORDS_MAX).collect();
            format!("`{}` may be read as `{words}`", path.join("."))
        };
        self.chosen.iter().map(say).collect::<Vec<_>>().join(" and ")
    }
}

/// Sets the value at a path, replacing what is there.
pub(crate) fn put(members: &mut Members, path: &[String], value: RestrictedExpression) {
    let [name, rest @ ..] = path else { return };
    let at = members.iter().position(|(own, _)| own == name).unwrap_or_else(|| {
        members.push((name.clone(), Shown::Record(Vec::new())));
        members.len() - 1
    });
    match (&mut members[at].1, rest) {
        (shown, []) => *shown = Shown::One(value),
        (Shown::Record(inner), rest) => put(inner, rest, value),
        (shown, rest) => {
            let mut inner = Vec::new();
            put(&mut inner, rest, value);
            *shown = Shown::Record(inner);
        }
    }
}
