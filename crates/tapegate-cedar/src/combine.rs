//! Combinations of the readings of several arguments.

use cedar_policy::RestrictedExpression;

use crate::value::{
    AlternativeReadings, CallArguments, CedarMembers, CedarValue, MisfitArgument, record,
};

/// The maximum number of combinations for one call.
const COMBINATIONS_MAX: usize = 256;
/// How many characters of a reading a message shows.
const WORDS_MAX: usize = 80;

/// All combinations of readings, except the one in which every argument is read as written.
pub(crate) struct ReadingCombinations<'a> {
    alternatives: &'a [AlternativeReadings],
    next: usize,
    count: usize,
}

/// One combination: the arguments that are read differently, each with its reading.
pub(crate) struct ReadingCombination<'a> {
    chosen: Vec<(&'a [String], &'a (String, RestrictedExpression))>,
}

impl<'a> ReadingCombinations<'a> {
    /// Removes all alternatives if they have too many combinations, and returns them as misfits.
    pub(crate) fn limit(alternatives: &mut Vec<AlternativeReadings>) -> Vec<MisfitArgument> {
        let count = count(alternatives);
        if count <= COMBINATIONS_MAX {
            return Vec::new();
        }
        let misfit = |one: AlternativeReadings| MisfitArgument {
            path: one.path,
            reason: "it and others can be read in too many ways".to_owned(),
            climbs: false,
        };
        // All of them, since no single one is to blame.
        alternatives.drain(..).map(misfit).collect()
    }

    pub(crate) fn of(alternatives: &'a [AlternativeReadings]) -> Self {
        // Combination 0, everything as written, is evaluated separately and first.
        Self { alternatives, next: 1, count: count(alternatives) }
    }
}

fn count(alternatives: &[AlternativeReadings]) -> usize {
    let each = alternatives.iter().map(|one| one.readings.len() + 1);
    each.fold(1, usize::saturating_mul)
}

impl<'a> Iterator for ReadingCombinations<'a> {
    type Item = ReadingCombination<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut number = Some(self.next).filter(|next| *next < self.count)?;
        self.next += 1;
        let mut chosen = Vec::new();
        for one in self.alternatives {
            // The number of a combination has one digit for each argument; digit 0 means as
            // written.
            let options = one.readings.len() + 1;
            let reading = (number % options).checked_sub(1).and_then(|at| one.readings.get(at));
            chosen.extend(reading.map(|reading| (&one.path[..], reading)));
            number /= options;
        }
        Some(ReadingCombination { chosen })
    }
}

impl ReadingCombination<'_> {
    /// The arguments in this combination.
    pub(crate) fn readings(&self, made: &CallArguments) -> Option<RestrictedExpression> {
        let mut members = made.members.clone();
        for (path, (_, value)) in &self.chosen {
            put(&mut members, path, value.clone());
        }
        record(members)
    }

    /// What is read differently, as text to follow "as".
    pub(crate) fn describe(&self) -> String {
        let say = |(path, (message, _)): &(&[String], &(String, RestrictedExpression))| {
            let message: String = message.chars().take(WORDS_MAX).collect();
            format!("`{}` may be read as `{message}`", path.join("."))
        };
        self.chosen.iter().map(say).collect::<Vec<_>>().join(" and ")
    }
}

/// Sets the value at a path, replacing what is there.
pub(crate) fn put(members: &mut CedarMembers, path: &[String], value: RestrictedExpression) {
    let [name, rest @ ..] = path else { return };
    let at = members.iter().position(|(own, _)| own == name).unwrap_or_else(|| {
        members.push((name.clone(), CedarValue::Record(Vec::new())));
        members.len() - 1
    });
    match (&mut members[at].1, rest) {
        (shown, []) => *shown = CedarValue::One(value),
        (CedarValue::Record(inner), rest) => put(inner, rest, value),
        (shown, rest) => {
            let mut inner = Vec::new();
            put(&mut inner, rest, value);
            *shown = CedarValue::Record(inner);
        }
    }
}
