//! `tapegate stats`: counts the calls on tapes.

use std::io::Write;
use std::path::PathBuf;

use tapegate_core::tape::stats::TapeStats;
use tapegate_core::tape::timeline::{Timeline, TimelineOptions};

use crate::entry_limit::EntryArgs;
use crate::exit::Exit;
use crate::recorded_sessions;
use crate::screen::{self, ScreenArgs};
use crate::state_folder::StateArgs;
use crate::tape_rows::{self, tape_name};
use crate::views::stats as view;
use crate::zone::TimeZone;

/// Count the calls on tapes by tool, with latencies, bytes and errors
///
/// Several tapes are added up. Percentiles are exact below 64 ms and within 3 % above. Memory use
/// does not depend on the size of the tapes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tapegate stats session.jsonl
  tapegate stats last                the newest session; `show` lists them
  tapegate stats .tapegate/tapes/files/*.jsonl
  tapegate stats --format json session.jsonl | jq '.requests[] | {name, p99: .latency_ms.p99}'

Exit codes: 0 done, 2 a file is not a tape, 3 a file could not be read, 64 wrong usage.")]
pub(crate) struct Args {
    /// Tapes of any dialect, plain or gzip, folders of them, - for standard input, or sessions: `last`,
    /// or the start of an id
    #[arg(required = true, value_name = "TAPE")]
    tapes: Vec<PathBuf>,
    /// The output format
    #[arg(long, value_enum, default_value = "text")]
    format: StatsFormat,
    #[command(flatten)]
    state: StateArgs,
    #[command(flatten)]
    entries: EntryArgs,
    #[command(flatten)]
    screen: ScreenArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum StatsFormat {
    Text,
    Json,
}

/// The maximum length of names.
const NAME_CHARS_MAX: usize = 200;

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Exit> {
    args.entries.apply();
    let tapes = recorded_sessions::tapes(&args.tapes, &args.state)?;
    let mut stats = TapeStats::default();
    for path in &tapes {
        let timeline = Timeline::new(TimelineOptions {
            rows_max: 0,
            bytes_max: 0,
            chars_max: NAME_CHARS_MAX,
            whole: false,
            wanted: None,
        });
        tape_rows::read(path, timeline, &mut |row| {
            stats.row(&row);
            Ok(())
        })?;
    }
    match args.format {
        StatsFormat::Text => {
            let palette = args.screen.palette();
            let (zone, columns) = (TimeZone::system(), screen::columns());
            let text = view::text(&stats, tapes.len(), &zone, palette, columns);
            args.screen.pager(out).write_all(text.as_bytes())?;
        }
        StatsFormat::Json => {
            let names: Vec<String> = tapes.iter().map(|path| tape_name(path)).collect();
            out.write_all(&view::json(&stats, &names))?;
        }
    }
    Ok(Exit::Ok)
}
