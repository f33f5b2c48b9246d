//! What the server counts of itself, for Prometheus.
//!
//! The values belong to the process, as its descriptors and its memory do. A label's value is part of the program's text:
//! nothing that a caller sends becomes one, so that the number of series is bounded.

pub mod scrape;
mod table;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aptix_model::record::UnixMillis;

pub use self::table::{Description, Kind, Metric};
use crate::mint;

/// The values of one metric by the values of its labels.
type Series = BTreeMap<Vec<&'static str>, Value>;

static VALUES: [Mutex<Series>; Metric::ALL.len()] = [const { Mutex::new(Series::new()) }; Metric::ALL.len()];

#[derive(Clone, PartialEq, Debug, Default)]
struct Value {
    /// The number; of a histogram the sum of what was observed.
    number: f64,
    /// How many observations are in each bucket, and in the last one above all bounds; empty unless it is a histogram.
    buckets: Vec<u64>,
}

impl Metric {
    fn series(self) -> MutexGuard<'static, Series> {
        static NO_VALUES: Mutex<Series> = Mutex::new(Series::new());
        VALUES.get(self as usize).unwrap_or(&NO_VALUES).lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(self, labels: &[&'static str], change: impl FnOnce(&mut Value)) {
        let mut series = self.series();
        match series.get_mut(labels) {
            Some(value) => change(value),
            None => change(series.entry(labels.to_vec()).or_default()),
        }
    }

    /// Adds to a counter or a gauge.
    pub fn add(self, labels: &[&'static str], number: f64) {
        self.change(labels, |value| value.number += number);
    }

    /// Sets a gauge, or a counter whose count is kept elsewhere.
    pub fn set(self, labels: &[&'static str], number: f64) {
        self.change(labels, |value| value.number = number);
    }

    /// Observes a value for a histogram.
    pub fn observe(self, labels: &[&'static str], observed: f64) {
        let Kind::Histogram(bounds) = self.description().kind else { return };
        let bucket = bounds.iter().position(|bound| observed <= *bound).unwrap_or(bounds.len());
        self.change(labels, |value| {
            value.number += observed;
            value.buckets.resize(bounds.len() + 1, 0);
            if let Some(count) = value.buckets.get_mut(bucket) {
                *count += 1;
            }
        });
    }

    /// Observes how long something took.
    pub fn took(self, labels: &[&'static str], time: Duration) {
        self.observe(labels, time.as_secs_f64());
    }

    /// Counts one in until the answer is dropped.
    #[must_use]
    pub fn enter<const LABELS: usize>(self, labels: [&'static str; LABELS]) -> Entered<LABELS> {
        self.add(&labels, 1.0);
        Entered { metric: self, labels }
    }
}

/// One that is counted in a gauge.
#[derive(Debug)]
pub struct Entered<const LABELS: usize> {
    metric: Metric,
    labels: [&'static str; LABELS],
}

impl<const LABELS: usize> Drop for Entered<LABELS> {
    fn drop(&mut self) {
        self.metric.add(&self.labels, -1.0);
    }
}

/// Counts a call that was refused because this limit of its token or workspace was reached.
pub fn quota_refused(limit: &'static str) {
    Metric::QuotaRefusals.add(&[limit], 1.0);
}

/// Counts records of this kind that retention removed.
pub fn retention_removed(kind: &'static str, records: u64) {
    Metric::RetentionRemoved.add(&[kind], number(records));
}

/// Notes that a backup has ended in order.
pub fn backed_up() {
    Metric::BackupTime.set(&[], seconds(mint::now()));
}

/// Notes when the certificate that the server shows expires.
pub fn certificate_expires(at: UnixMillis) {
    Metric::CertificateExpiry.set(&[], seconds(at));
}

/// A count as the number that a metric takes.
#[must_use]
pub fn count(count: usize) -> f64 {
    number(count as u64)
}

/// A whole number as the number that a metric takes, which has 53 bits.
#[must_use]
pub fn number(number: u64) -> f64 {
    let [high, low] = [number >> 32, number & u64::from(u32::MAX)].map(|half| u32::try_from(half).unwrap_or(u32::MAX));
    f64::from(high) * 4_294_967_296.0 + f64::from(low)
}

/// Notes that the process begins to serve.
pub fn begin() {
    Metric::Build.set(&[env!("CARGO_PKG_VERSION")], 1.0);
    Metric::Started.set(&[], seconds(mint::now()));
}

/// When the last backup by this process ended, if there was one.
#[must_use]
pub fn last_backup() -> Option<UnixMillis> {
    time(Metric::BackupTime)
}

/// When the certificate that the server shows expires, if it shows one.
#[must_use]
pub fn certificate_expiry() -> Option<UnixMillis> {
    time(Metric::CertificateExpiry)
}

fn time(metric: Metric) -> Option<UnixMillis> {
    let seconds = metric.series().values().next()?.number;
    let time = Duration::try_from_secs_f64(seconds).ok()?;
    u64::try_from(time.as_millis()).ok().map(UnixMillis)
}

/// The sum of a metric's values over all labels.
#[must_use]
pub fn sum(metric: Metric) -> f64 {
    metric.series().values().map(|value| value.number).sum()
}

fn seconds(at: UnixMillis) -> f64 {
    Duration::from_millis(at.0).as_secs_f64()
}

/// All metrics in the text format of Prometheus, version 0.0.4. One without a value has only its description.
#[must_use]
pub fn text() -> String {
    let mut out = String::new();
    for metric in Metric::ALL {
        let Description { name, kind, help, .. } = metric.description();
        // Nothing in the table needs to be escaped, and writing to a string does not fail.
        let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {}", kind.word());
        for (values, value) in &*metric.series() {
            append(&mut out, metric.description(), values, value);
        }
    }
    out
}

fn append(out: &mut String, description: Description, values: &[&'static str], value: &Value) {
    let Description { name, kind, labels, .. } = description;
    let pairs: Vec<_> = labels.iter().zip(values).map(|(label, value)| format!("{label}=\"{value}\"")).collect();
    let braces = if pairs.is_empty() { String::new() } else { format!("{{{}}}", pairs.join(",")) };
    let Kind::Histogram(bounds) = kind else {
        let _ = writeln!(out, "{name}{braces} {}", value.number);
        return;
    };
    let mut below = 0;
    let bounds = bounds.iter().map(ToString::to_string).chain(["+Inf".to_owned()]);
    for (bound, count) in bounds.zip(&value.buckets) {
        below += count;
        let pairs = [&pairs[..], &[format!("le=\"{bound}\"")]].concat().join(",");
        let _ = writeln!(out, "{name}_bucket{{{pairs}}} {below}");
    }
    let _ = writeln!(out, "{name}_sum{braces} {}\n{name}_count{braces} {below}", value.number);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_counts_each_observation_in_the_buckets_at_and_above_it() {
        for observed in [0.001, 0.3, 0.5, 1000.0] {
            Metric::SweepSeconds.observe(&[], observed);
        }
        let text = text();
        for line in [
            "aptix_sweep_seconds_bucket{le=\"0.001\"} 1",
            "aptix_sweep_seconds_bucket{le=\"0.25\"} 1",
            "aptix_sweep_seconds_bucket{le=\"0.5\"} 3",
            "aptix_sweep_seconds_bucket{le=\"300\"} 3",
            "aptix_sweep_seconds_bucket{le=\"+Inf\"} 4",
            "aptix_sweep_seconds_sum 1000.801",
            "aptix_sweep_seconds_count 4",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in {text}");
        }
    }

    #[test]
    fn whole_numbers_are_kept() {
        for whole in [0, 1, u64::from(u32::MAX), 1 << 32, (1 << 50) + 1] {
            assert_eq!(format!("{}", number(whole)), whole.to_string());
        }
    }
}
