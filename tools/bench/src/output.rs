//! One way to print a result: a table for people, JSON for programs.

use serde::Serialize;
use std::io::Write;

/// Writes `table`, or `report` as JSON, to standard output.
pub(crate) fn print(json: bool, report: &impl Serialize, table: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    if json {
        serde_json::to_writer_pretty(&mut out, report)?;
        writeln!(out)?;
    } else {
        write!(out, "{table}")?;
    }
    Ok(())
}
