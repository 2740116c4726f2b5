//! The file with metrics.

use std::convert::Infallible;
use std::path::Path;
use std::time::Duration;

use tapegate_bash::server::ToolHost;
use tapegate_store::atomic_file;

use crate::exit::{Exit, Failure};
use crate::terminal_output;

/// How often the file is written.
const INTERVAL: Duration = Duration::from_secs(5);

/// Writes the file once.
pub(super) fn write(path: &Path, host: &ToolHost) -> Result<(), Failure> {
    atomic_file::write(path, host.metrics_text().as_bytes()).map_err(|error| {
        Failure::new(Exit::Io, format!("cannot write `{}`: {error}", path.display()))
    })
}

/// Writes the file whenever something has changed. Never returns.
pub(super) async fn keep_writing(path: Option<&Path>, host: &ToolHost) -> Infallible {
    let Some(path) = path else { return std::future::pending().await };
    let mut written = String::new();
    loop {
        tokio::time::sleep(INTERVAL).await;
        let text = host.metrics_text();
        if text != written {
            if let Err(failure) = write(path, host) {
                terminal_output::warn(&failure.message);
            }
            written = text;
        }
    }
}
