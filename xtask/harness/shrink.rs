//! Makes a history that fails shorter.

use anyhow::Result;

/// The shortest history found that still fails: parts are left out, half of it first, single steps last.
pub(crate) fn shrunk<Step: Copy>(
    mut steps: Vec<Step>,
    mut tries: usize,
    fails: impl Fn(&[Step]) -> Result<bool>,
) -> Result<Vec<Step>> {
    let mut size = steps.len() / 2;
    while size > 0 && tries > 0 {
        let mut at = 0;
        while at < steps.len() && tries > 0 {
            let end = (at + size).min(steps.len());
            let rest: Vec<Step> = steps.iter().take(at).chain(steps.iter().skip(end)).copied().collect();
            tries -= 1;
            if fails(&rest)? {
                steps = rest;
            } else {
                at = end;
            }
        }
        size /= 2;
    }
    Ok(steps)
}
