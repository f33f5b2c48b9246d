//! What benches measure, held to goals.

use std::fmt;

use anyhow::{Result, ensure};

/// A measured ratio and what it must be.
pub(crate) struct Goal {
    name: String,
    measured: f64,
    limit: f64,
    is_least: bool,
}

impl Goal {
    pub(crate) fn at_least(name: impl Into<String>, measured: f64, limit: f64) -> Self {
        Self { name: name.into(), measured, limit, is_least: true }
    }

    pub(crate) fn at_most(name: impl Into<String>, measured: f64, limit: f64) -> Self {
        Self { name: name.into(), measured, limit, is_least: false }
    }

    fn holds(&self) -> bool {
        if self.is_least { self.measured >= self.limit } else { self.measured <= self.limit }
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.holds() { "ok    " } else { "MISSED" };
        let side = if self.is_least { "least" } else { "most" };
        write!(f, "{verdict} {:<62} {:>7.2}  (at {side} {})", self.name, self.measured, self.limit)
    }
}

/// Prints goals that are not gates: one that is missed is shown as such.
pub(crate) fn report(goals: &[Goal]) {
    goals.iter().for_each(|goal| println!("{goal}"));
}

/// Prints the goals.
///
/// # Errors
/// When one is missed.
pub(crate) fn check(goals: &[Goal]) -> Result<()> {
    report(goals);
    let missed = goals.iter().filter(|goal| !goal.holds()).count();
    ensure!(missed == 0, "{missed} of {} goals missed", goals.len());
    Ok(())
}

pub(crate) fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples.get(samples.len() / 2).copied().unwrap_or_default()
}
