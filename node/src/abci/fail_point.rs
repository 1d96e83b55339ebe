//! Faults on demand, in builds with the `fail-points` feature: `CLOISTER_FAIL_POINT=finalize_block=error` (or `=panic`).

use crate::chain::Fatal;

/// Fails here if the environment says so.
#[cfg(feature = "fail-points")]
pub(super) fn hit(name: &str) -> Result<(), Fatal> {
    let Ok(wanted) = std::env::var("CLOISTER_FAIL_POINT") else {
        return Ok(());
    };
    match wanted.split_once('=') {
        Some((call, "panic")) if call == name => panic!("fail point {name}"),
        Some((call, "error")) if call == name => Err(Fatal {
            exit_code: crate::ending::EXIT_CONSENSUS,
            report: format!("fail point {name}"),
        }),
        _ => Ok(()),
    }
}

/// Nothing in other builds.
#[cfg(not(feature = "fail-points"))]
#[expect(clippy::unnecessary_wraps, reason = "the other build fails")]
pub(super) const fn hit(_: &str) -> Result<(), Fatal> {
    Ok(())
}
