//! Suggests the name that was probably meant.

/// The largest edit distance of a suggestion.
const DISTANCE_MAX: usize = 3;

/// The name most similar to `name`, if any is similar enough.
pub fn nearest_name<'n>(name: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    nearest_name_within(DISTANCE_MAX, name, names)
}

/// The name most similar to `name` with an edit distance of at most `most`.
pub fn nearest_name_within<'n>(
    most: usize,
    name: &str,
    names: impl IntoIterator<Item = &'n str>,
) -> Option<&'n str> {
    let wanted: Vec<char> = name.chars().take(64).collect();
    // A short name is near to too many others.
    let most = most.min(wanted.len() / 2);
    let near = names.into_iter().filter_map(|known| {
        let distance = distance(&wanted, &known.chars().take(64).collect::<Vec<_>>(), most)?;
        Some((distance, known))
    });
    near.min_by_key(|(distance, _)| *distance).map(|(_, known)| known)
}

/// The number of insertions, deletions, replacements and swaps of neighbours; `None` if more than
/// `most`.
fn distance(one: &[char], two: &[char], most: usize) -> Option<usize> {
    // Each letter more is an insertion, so the table need not be filled.
    if one.len().abs_diff(two.len()) > most {
        return None;
    }
    let folded = |c: char| c.to_ascii_lowercase();
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=two.len()).collect();
    for (i, a) in one.iter().enumerate() {
        let mut row = Vec::with_capacity(two.len() + 1);
        row.push(i + 1);
        for (j, b) in two.iter().enumerate() {
            let change = usize::from(folded(*a) != folded(*b));
            let mut least = (last[j] + change).min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *a == two[j - 1] && one[i - 1] == *b {
                least = least.min(before[j - 1] + 1);
            }
            row.push(least);
        }
        // Later rows are computed from these two and are never smaller. Every start compares the
        // whole environment with our variables, so most pairs must end here.
        if row.iter().chain(&last).all(|distance| *distance > most) {
            return None;
        }
        before = std::mem::replace(&mut last, row);
    }
    last.last().copied().filter(|distance| *distance <= most)
}

#[cfg(test)]
mod tests {
    use super::nearest_name;

    #[test]
    fn the_nearest_name_is_found() {
        let names = ["content", "contents", "match", "sequence", "on_exhausted"];
        for (typed, meant) in [
            ("contnet", Some("content")),
            ("Contents", Some("contents")),
            ("sequense", Some("sequence")),
            ("onExhausted", Some("on_exhausted")),
            ("macth", Some("match")),
            ("x", None),
            ("description", None),
        ] {
            assert_eq!(nearest_name(typed, names), meant, "{typed}");
        }
    }
}
