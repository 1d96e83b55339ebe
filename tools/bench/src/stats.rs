//! Samples and what is quoted of them: median, minimum, maximum.

use serde::Serialize;

/// Milliseconds of repeated runs of one thing.
#[derive(Debug, Default)]
pub(crate) struct Samples(Vec<f64>);

/// What a table quotes.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Summary {
    pub(crate) runs: usize,
    pub(crate) median_ms: f64,
    pub(crate) min_ms: f64,
    pub(crate) max_ms: f64,
}

impl Samples {
    pub(crate) fn push(&mut self, duration: std::time::Duration) {
        self.0.push(duration.as_secs_f64() * 1e3);
    }

    pub(crate) fn summary(&self) -> Summary {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        Summary {
            runs: sorted.len(),
            median_ms: median(&sorted),
            min_ms: sorted.first().copied().unwrap_or(f64::NAN),
            max_ms: sorted.last().copied().unwrap_or(f64::NAN),
        }
    }
}

/// Median of sorted values; NaN of none.
fn median(sorted: &[f64]) -> f64 {
    match (sorted.len(), sorted.len() / 2) {
        (0, _) => f64::NAN,
        (odd, middle) if odd % 2 == 1 => sorted[middle],
        (_, middle) => (sorted[middle - 1] + sorted[middle]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::{Samples, median};
    use std::time::Duration;

    #[test]
    fn median_of_odd_even_and_none() {
        assert_eq!(median(&[1.0, 2.0, 9.0]), 2.0);
        assert_eq!(median(&[1.0, 2.0, 4.0, 9.0]), 3.0);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn summary_sorts() {
        let mut samples = Samples::default();
        for ms in [30, 10, 20] {
            samples.push(Duration::from_millis(ms));
        }
        let summary = samples.summary();
        assert_eq!(
            (
                summary.runs,
                summary.median_ms,
                summary.min_ms,
                summary.max_ms
            ),
            (3, 20.0, 10.0, 30.0)
        );
    }
}
