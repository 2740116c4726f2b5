//! Writes the tables as a reference page.

use std::fmt::Write;

use super::schema::collect_tables;
use super::{Shape, Table, UnknownKeys, check};

/// All tables reachable from `top`, in Markdown, after `head`.
pub fn write(head: &str, top: &'static Table) -> String {
    let mut out = head.to_owned();
    let mut tables = Vec::new();
    collect_tables(top, &mut tables);
    for table in tables {
        let _ = write!(
            out,
            "\n## {}\n\n{}\n\n| key | takes | |\n|---|---|---|\n",
            table.name, table.about
        );
        for entry in table.entries() {
            let name = match entry.required {
                true => format!("**`{}`**", entry.name),
                false => format!("`{}`", entry.name),
            };
            let aliases: Vec<String> =
                entry.aliases.iter().map(|alias| format!(", `{alias}`")).collect();
            let ours = if entry.ours { " ⁺" } else { "" };
            let takes = shape_text(&entry.shape);
            let only: Vec<String> = entry.only.iter().map(|kind| format!("`{kind}`")).collect();
            let only =
                if only.is_empty() { String::new() } else { format!("{}: ", only.join(", ")) };
            let _ = writeln!(
                out,
                "| {name}{}{ours} | {takes} | {only}{} |",
                aliases.concat(),
                entry.about
            );
        }
        match table.rest {
            UnknownKeys::Refuse => {}
            UnknownKeys::Take => out.push_str("| … | anything | kept as it is |\n"),
            UnknownKeys::Pass => out.push_str("| … | anything | sent as it is |\n"),
        }
    }
    out
}

/// The values a shape accepts, with links to its tables.
fn shape_text(shape: &Shape) -> String {
    match shape {
        Shape::Table(table) => format!("[{0}](#{0})", table.name),
        Shape::List(inner) => format!("list of {}", shape_text(inner)),
        Shape::MapOf(inner) => format!("map to {}", shape_text(inner)),
        Shape::Elsewhere(inner) => shape_text(inner),
        Shape::Either(shapes) => shapes.iter().map(shape_text).collect::<Vec<_>>().join(" or "),
        Shape::Whole(least, most) if least == most => format!("{least}"),
        Shape::Whole(least, u64::MAX) => format!("whole number from {least}"),
        Shape::Whole(least, most) => format!("whole number, {least} to {most}"),
        shape => check::name(shape),
    }
}
