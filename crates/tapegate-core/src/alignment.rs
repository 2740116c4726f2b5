//! Aligns two sequences: corresponding items are paired in order, and the others stay alone.

/// One row of an alignment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AlignedRow {
    /// An item of the old sequence, and its match in the new one.
    Both(usize, usize),
    /// An item that only the old sequence has.
    Old(usize),
    /// An item that only the new sequence has.
    New(usize),
}

/// The maximum weight of a pair, so that no sum overflows.
pub const WEIGHT_MAX: u32 = 1 << 20;

/// Pairs the items of two sequences without crossing, so that the sum of the weights is maximal. A
/// weight of 0 keeps two items apart; [`WEIGHT_MAX`] means that they are the same.
///
/// The work is the product of the lengths after equal items were trimmed from both ends, and is
/// taken from `budget`. If that does not suffice, items are paired by index.
pub fn align(
    old: usize,
    new: usize,
    weight: impl Fn(usize, usize) -> u32,
    budget: &mut usize,
) -> Vec<AlignedRow> {
    let same = |one: usize, two: usize| weight(one, two) == WEIGHT_MAX;
    let shorter = old.min(new);
    let head = (0..shorter).take_while(|&at| same(at, at)).count();
    // Equal items at both ends are common and cost no table.
    let tail = (0..shorter - head).take_while(|&at| same(old - 1 - at, new - 1 - at)).count();
    let (rows, columns) = (old - head - tail, new - head - tail);
    let mut aligned: Vec<AlignedRow> = (0..head).map(|at| AlignedRow::Both(at, at)).collect();
    let cells = (rows + 1).saturating_mul(columns + 1);
    // The sum of this many maximal weights still fits.
    if cells <= *budget && rows.min(columns) < 1 << 11 {
        *budget -= cells;
        aligned.extend(
            heaviest(rows, columns, |row, column| weight(head + row, head + column)).map(|row| {
                match row {
                    AlignedRow::Both(one, two) => AlignedRow::Both(head + one, head + two),
                    AlignedRow::Old(one) => AlignedRow::Old(head + one),
                    AlignedRow::New(two) => AlignedRow::New(head + two),
                }
            }),
        );
    } else {
        let paired = rows.min(columns);
        aligned.extend((head..head + paired).map(|at| AlignedRow::Both(at, at)));
        aligned.extend((head + paired..head + rows).map(AlignedRow::Old));
        aligned.extend((head + paired..head + columns).map(AlignedRow::New));
    }
    aligned.extend((0..tail).rev().map(|at| AlignedRow::Both(old - 1 - at, new - 1 - at)));
    aligned
}

/// The alignment with the greatest weight.
fn heaviest(
    rows: usize,
    columns: usize,
    weight: impl Fn(usize, usize) -> u32,
) -> impl Iterator<Item = AlignedRow> {
    let width = columns + 1;
    // The maximum weight of the rest of both sequences, from each pair of positions on.
    let mut sums = vec![0u32; (rows + 1) * width];
    for row in (0..rows).rev() {
        for column in (0..columns).rev() {
            let pair = match weight(row, column) {
                0 => 0,
                pair => pair + sums[(row + 1) * width + column + 1],
            };
            let alone = sums[(row + 1) * width + column].max(sums[row * width + column + 1]);
            sums[row * width + column] = pair.max(alone);
        }
    }
    let (mut row, mut column) = (0, 0);
    std::iter::from_fn(move || {
        let best = *sums.get(row * width + column)?;
        if row < rows && best == sums[(row + 1) * width + column] {
            row += 1;
            return Some(AlignedRow::Old(row - 1));
        }
        if column < columns && best == sums[row * width + column + 1] {
            column += 1;
            return Some(AlignedRow::New(column - 1));
        }
        if row == rows || column == columns {
            return None;
        }
        (row, column) = (row + 1, column + 1);
        Some(AlignedRow::Both(row - 1, column - 1))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(old: &str, new: &str, mut budget: usize) -> String {
        let (old, new) = (old.as_bytes(), new.as_bytes());
        let weight = |one: usize, two: usize| match (old[one], new[two]) {
            (one, two) if one == two => WEIGHT_MAX,
            (one, two) if one.eq_ignore_ascii_case(&two) => 1,
            _ => 0,
        };
        let rows = align(old.len(), new.len(), weight, &mut budget);
        let letter = |byte: u8| char::from(byte);
        let row = |row: &AlignedRow| match *row {
            AlignedRow::Both(one, two) if old[one] == new[two] => format!("{}", letter(old[one])),
            AlignedRow::Both(one, two) => format!("{}{}", letter(old[one]), letter(new[two])),
            AlignedRow::Old(one) => format!("-{}", letter(old[one])),
            AlignedRow::New(two) => format!("+{}", letter(new[two])),
        };
        rows.iter().map(row).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_is_the_same_is_paired_in_order() {
        for (old, new, rows) in [
            ("", "", ""),
            ("", "ab", "+a +b"),
            ("ab", "", "-a -b"),
            ("abc", "abc", "a b c"),
            ("abc", "bc", "-a b c"),
            ("abc", "abxc", "a b +x c"),
            ("abcd", "axyd", "a -b -c +x +y d"),
            ("abc", "cab", "+c a b -c"),
        ] {
            assert_eq!(shown(old, new, 1000), rows, "{old} {new}");
        }
    }

    #[test]
    fn what_is_alike_is_paired_where_nothing_is_the_same() {
        assert_eq!(shown("xAy", "xay", 1000), "x Aa y");
        assert_eq!(shown("xBAy", "xaby", 1000), "x -B Aa +b y");
        // One equal pair outweighs any number of similar ones.
        assert_eq!(shown("ABCd", "dabc", 1000), "-A -B -C d +a +b +c");
    }

    #[test]
    fn over_the_budget_the_number_decides() {
        assert_eq!(shown("xabcy", "xbcay", 9), "x ab bc ca y");
        assert_eq!(shown("xabcy", "xbcay", 16), "x -a b c +a y");
        let mut budget = 100;
        align(9, 9, |_, _| 0, &mut budget);
        assert_eq!(budget, 0);
    }
}
