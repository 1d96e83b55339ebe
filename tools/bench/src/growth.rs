//! Cost of a block must grow with the accounts it touches, not with the state: the same 1,000 transfers against a small
//! and a large allocation.

use crate::{execution, stats::Summary, workload::Kind};

/// What to measure.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Accounts in the small state
    #[arg(long, default_value_t = 10_000)]
    small: u64,
    /// Accounts in the large state
    #[arg(long, default_value_t = 1_000_000)]
    large: u64,
    /// Blocks measured on each
    #[arg(long, default_value_t = 20)]
    rounds: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, serde::Serialize)]
struct Report {
    small_accounts: u64,
    large_accounts: u64,
    small: Summary,
    large: Summary,
    /// large / small, of the medians.
    ratio: f64,
}

pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let of = |accounts| {
        execution::measure(&execution::Options {
            kind: Kind::Native,
            transactions: 1_000,
            accounts,
            rounds: options.rounds,
            sync: false,
            json: false,
        })
    };
    let (small, large) = (of(options.small)?.cloister, of(options.large)?.cloister);
    let report = Report {
        small_accounts: options.small,
        large_accounts: options.large,
        small,
        large,
        ratio: large.median_ms / small.median_ms,
    };
    let table = format!(
        "1,000 native transfers\n{:>9} accounts  median {:8.2} ms\n{:>9} accounts  median {:8.2} ms\nratio {:.2}\n",
        report.small_accounts,
        small.median_ms,
        report.large_accounts,
        large.median_ms,
        report.ratio
    );
    crate::output::print(options.json, &report, &table)
}
